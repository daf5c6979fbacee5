package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func indexOf(t testing.TB, server string, tools ...Tool) *Index {
	t.Helper()
	x, err := Join(t.Context(), []*Part{NewPart(server, tools)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func search(t testing.TB, x *Index, query string) []string {
	t.Helper()
	hits, err := x.Search(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range hits {
		names = append(names, x.tools[slices.IndexFunc(x.tools, func(p place) bool { return p.part == h.Part && p.tool == h.Tool })].name)
	}
	return names
}

func TestWords(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"create creates created creating creation", "creat creat creat creat creat"},
		{"listIssues list_issues list-issues LIST.ISSUES", "list issu list issu list issu list issu"},
		{"getHTTPResponse2 PRs URLs", "get http response2 pr url"},
		{"committed stopping passed files queries boxes address status", "commit stop pass file query box address status"},
		{"the of what I should", ""},
		{"Größe der Dateien 名前", "größ der dateien 名前"},
		{"", ""},
	} {
		if got := strings.Join(words(tc.text), " "); got != tc.want {
			t.Errorf("%q has the words %q, want %q", tc.text, got, tc.want)
		}
	}
}

// TestFirst: what has to be the first hit, whatever else fits.
func TestFirst(t *testing.T) {
	x := indexOf(t, "shop",
		Tool{Name: "get", Description: "Get an order."},
		Tool{Name: "get_order", Description: "Orders."},
		Tool{Name: "get_order_items", Description: "Get order, get order items, get order, get order items of an order."},
		Tool{Name: "zap", Description: "Get order. Get order. Get order."},
		Tool{Name: "sendInvoice", Description: "Send an invoice.", InputSchema: []byte(`{"properties":{"recipientAddress":{"description":"who is billed"}}}`)},
		Tool{Name: "screenshot"},
		Tool{Name: "odd", InputSchema: []byte(`{"properties":7}`)},
		Tool{Name: "odder", InputSchema: []byte(`true`)},
	)
	for _, tc := range []struct{ query, want string }{
		{"get_order", "get_order"},
		{"GET ORDER", "get_order"},
		{"shop get", "get"},
		{"shop.zap", "zap"},
		{"how is get_order_items called?", "get_order_items"},
		{"sendInvoice", "sendInvoice"},
		{"invoices", "sendInvoice"},
		{"inovice", "sendInvoice"},
		{"invocie", "sendInvoice"},
		{"recipient", "sendInvoice"},
		{"billed", "sendInvoice"},
		{"sendinvoice", "sendInvoice"},
		{"screen shot", "screenshot"},
		{"orderitems", "get_order_items"},
		{"odder", "odder"},
	} {
		if got := search(t, x, tc.query); len(got) == 0 || got[0] != tc.want {
			t.Errorf("%q finds %v, want %s first", tc.query, got, tc.want)
		}
	}
	for _, query := range []string{"", "the of a", "zzzzzz", "?!"} {
		if got := search(t, x, query); len(got) != 0 {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

// TestWordsInTwo: two words of a query that the tools write as one are that one, too, whatever the ending is that one loses.
func TestWordsInTwo(t *testing.T) {
	x := indexOf(t, "shop", Tool{Name: "show", Description: "The filename, and a screenshot."})
	for query, want := range map[string]string{"file name": "filenam file name", "file names": "filenam file name", "screen shots": "screenshot screen shot", "file shot": "file shot"} {
		if got := strings.Join(x.asked(query), " "); got != want {
			t.Errorf("%q asks for %q, want %q", query, got, want)
		}
	}
}

// TestOwnWords: what nearly all names of a server's tools have in common says nothing of one of them.
func TestOwnWords(t *testing.T) {
	tools := []Tool{{Name: "git_add"}, {Name: "git_log"}, {Name: "git_show_commit"}}
	p := NewPart("vcs", tools)
	for i, want := range []string{"add", "log", "show commit"} {
		if got := strings.Join(p.tools[i].own, " "); got != want {
			t.Errorf("%s: its own are %q, want %q", tools[i].Name, got, want)
		}
	}
	if p := NewPart("vcs", tools[:2]); strings.Join(p.tools[0].own, " ") != "git add" {
		t.Errorf("two tools don't tell: %q", p.tools[0].own)
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"abc", "acb", 1}, {"screenshot", "screnshot", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(tc.a, tc.b); got != tc.want || distance(tc.b, tc.a) != tc.want {
			t.Errorf("from %q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// wordy are tools that have n words of their own each.
func wordy(tools, n int) []Tool {
	var list []Tool
	for i := range tools {
		var text strings.Builder
		for j := range n {
			fmt.Fprintf(&text, "w%dx%d ", i, j)
		}
		list = append(list, Tool{Name: fmt.Sprint("tool_", i), Description: text.String()})
	}
	return list
}

// TestBounds: what a server lists, and what is asked, decide neither the size of the index nor how long a search goes on; every tool
// is found by its name all the same.
func TestBounds(t *testing.T) {
	const tools = 300
	x := indexOf(t, "wordy", wordy(tools, 1000)...)
	if most := maxIndexed + tools*maxNameWords; len(x.words) > most {
		t.Errorf("%d words are indexed, more than %d", len(x.words), most)
	}
	if got := search(t, x, "tool 299"); len(got) == 0 || got[0] != "tool_299" {
		t.Errorf("the last tool isn't found by its name: %v", got[:min(len(got), 3)])
	}
	var query strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&query, "word%d word%d ", i, i)
	}
	if asked := x.asked(query.String()); len(asked) != maxQuery || asked[1] == asked[0] {
		t.Errorf("%d words are looked for: %v", len(asked), asked)
	}
	if got := x.prefixed("w1"); len(got) != 0 {
		t.Errorf("two letters are the beginning of %d words", len(got))
	}
	if got := x.prefixed("w10"); len(got) != maxPrefixed {
		t.Errorf("three letters are the beginning of %d words, want the first %d", len(got), maxPrefixed)
	}
	if len(x.alike("w1x1000", true)) == 0 || len(x.alike("qqqqqqqqq", true)) != 0 {
		t.Error("misspellings are taken for nothing, or anything for a misspelling")
	}
	if len(x.alike("v1x1", true)) == 0 || len(x.alike("v1x1", false)) != 0 {
		t.Error("misspellings are not looked for where they are asked for, and there only")
	}
}

// TestSameOrder: the same tools in another order, even ones that fit as well as each other, are found in the same order.
func TestSameOrder(t *testing.T) {
	tools := []Tool{{Name: "read_b"}, {Name: "read_a"}, {Name: "read_c"}}
	want := []string{"read_a", "read_b", "read_c"}
	for range 3 {
		if got := search(t, indexOf(t, "files", tools...), "read"); !slices.Equal(got, want) {
			t.Errorf("%v in the order %v", got, tools)
		}
		tools = append(tools[1:], tools[0])
	}
}

func TestEndsWithItsContext(t *testing.T) {
	parts := []*Part{NewPart("wordy", wordy(3, 3))}
	x, err := Join(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := x.Search(ended, "tool"); !errors.Is(err, context.Canceled) {
		t.Errorf("a search whose context is over: %v", err)
	}
	if _, err := Join(ended, parts); !errors.Is(err, context.Canceled) {
		t.Errorf("an index whose context is over: %v", err)
	}
}

// TestSynonymsAreKnown: every line of the table says something.
func TestSynonymsAreKnown(t *testing.T) {
	table := synonyms()
	if len(table.any) < 100 || len(table.all) < 5 {
		t.Fatalf("%d synonyms, %d abbreviations", len(table.any), len(table.all))
	}
	for _, meanings := range []map[string][]string{table.any, table.all} {
		for word, others := range meanings {
			if word == "" || len(others) == 0 || slices.Contains(others, word) {
				t.Errorf("%q stands for %q", word, others)
			}
		}
	}
}

// BenchmarkHostile is what the bounds leave: twenty unknown words, over a server with as many words as are indexed.
func BenchmarkHostile(b *testing.B) {
	x := indexOf(b, "wordy", wordy(1000, 1000)...)
	query := ""
	for i := range maxQuery {
		query += fmt.Sprintf("w%dy%dz ", i, i)
	}
	for b.Loop() {
		search(b, x, query)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("create an issue", "get_order_items", "Get the items of an order.", []byte(`{"properties":{"id":{"description":"of the order"}}}`))
	f.Add("PRs", "list-PRs", "", []byte(`[]`))
	f.Fuzz(func(t *testing.T, query, name, description string, schema []byte) {
		x := indexOf(t, "s", Tool{Name: name, Description: description, InputSchema: schema}, Tool{Name: "other"})
		search(t, x, query)
		if got := search(t, x, name); len(words(name)) > 0 && len(name) < maxText && (len(got) == 0 || fold(got[0]) != fold(name)) {
			t.Errorf("%q isn't found by its name: %v", name, got)
		}
	})
}
