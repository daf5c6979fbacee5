package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// quiet is a Config of which nothing is kept or logged.
var quiet = Config{Log: slog.New(slog.DiscardHandler)}

// toolsetOf returns the toolset of a server of this name.
func toolsetOf(server string, tools ...upstream.Tool) *Toolset {
	c := New(quiet, []discovery.Server{{Name: server}}, nil)
	return c.Listed(c.servers[0], tools)
}

func indexOf(t testing.TB, server string, tools ...upstream.Tool) *index {
	t.Helper()
	x, err := newIndex(t.Context(), []*Toolset{toolsetOf(server, tools...)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func search(t testing.TB, x *index, query string) []string {
	t.Helper()
	hits, err := x.search(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range hits {
		names = append(names, h.tool.Name)
	}
	return names
}

func TestWords(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"create creates created creating", "creat creat creat creat"},
		{"listIssues list_issues list-issues LIST.ISSUES", "list issu list issu list issu list issu"},
		{"getHTTPResponse2 PRs URLs", "get http response2 pr url"},
		{"passed files queries boxes address status", "pass file query box address status"},
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
		upstream.Tool{Name: "get", Description: "Get an order."},
		upstream.Tool{Name: "get_order", Description: "Orders."},
		upstream.Tool{Name: "get_order_items", Description: "Get order, get order items, get order, get order " +
			"items of an order."},
		upstream.Tool{Name: "zap", Description: "Get order. Get order. Get order."},
		upstream.Tool{Name: "sendInvoice", Description: "Send an invoice.",
			InputSchema: []byte(`{"properties":{"recipientAddress":{"description":"who is billed"}}}`)},
		upstream.Tool{Name: "screenshot"},
		upstream.Tool{Name: "odd", InputSchema: []byte(`{"properties":7}`)},
		upstream.Tool{Name: "odder", InputSchema: []byte(`true`)},
	)
	for _, tc := range []struct{ query, want string }{
		{"get_order", "get_order"},
		{"GET ORDER", "get_order"},
		{"shop get", "get"},
		{"shop.zap", "zap"},
		{"how is get_order_items called?", "get_order_items"},
		{"sendInvoice", "sendInvoice"},
		{"invoices", "sendInvoice"},
		{"recipient", "sendInvoice"},
		{"billed", "sendInvoice"},
		{"sendinvoice", "sendInvoice"},
		{"screen shot", "screenshot"},
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

// wordy returns tools that have n words of their own each.
func wordy(tools, n int) []upstream.Tool {
	var list []upstream.Tool
	for i := range tools {
		var text strings.Builder
		for j := range n {
			fmt.Fprintf(&text, "w%dx%d ", i, j)
		}
		list = append(list, upstream.Tool{Name: fmt.Sprint("tool_", i), Description: text.String()})
	}
	return list
}

// TestIndexBounds: what a server lists, and what is asked, decide neither the size of the index nor
// how long a search goes on; every tool is found by its name all the same.
func TestIndexBounds(t *testing.T) {
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
	if asked := asked(query.String()); len(asked) != maxQuery || asked[1] == asked[0] {
		t.Errorf("%d words are looked for: %v", len(asked), asked)
	}
}

// TestSameOrder: the same tools in another order, even ones that fit as well as each other, are
// found in the same order.
func TestSameOrder(t *testing.T) {
	tools := []upstream.Tool{{Name: "read_b"}, {Name: "read_a"}, {Name: "read_c"}}
	want := []string{"read_a", "read_b", "read_c"}
	for range 3 {
		if got := search(t, indexOf(t, "files", tools...), "read"); !slices.Equal(got, want) {
			t.Errorf("%v in the order %v", got, tools)
		}
		tools = append(tools[1:], tools[0])
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	x := indexOf(t, "wordy", wordy(3, 3)...)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := x.search(ended, "tool"); !errors.Is(err, context.Canceled) {
		t.Errorf("a search whose context is over: %v", err)
	}
	if _, err := newIndex(ended, []*Toolset{toolsetOf("wordy", wordy(3, 3)...)}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("an index whose context is over: %v", err)
	}
}

// TestIndexIsMadeOnce: while the servers' lists stay the same, searches share an index; with
// another list the search is another.
func TestIndexIsMadeOnce(t *testing.T) {
	sets := []*Toolset{toolsetOf("a", wordy(2, 2)...), toolsetOf("b", wordy(2, 2)...)}
	var r ranking
	first, err := r.of(t.Context(), sets)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := r.of(t.Context(), slices.Clone(sets)); second != first {
		t.Error("the same tools were indexed again")
	}
	if other, _ := r.of(t.Context(), sets[1:]); other == first {
		t.Error("another set of servers has the same index")
	}
}

// TestSynonymsAreKnown: every line of the table says something.
func TestSynonymsAreKnown(t *testing.T) {
	if n := len(synonyms()); n < 100 {
		t.Fatalf("%d synonyms", n)
	}
	for word, others := range synonyms() {
		if word == "" || len(others) == 0 || slices.Contains(others, word) {
			t.Errorf("%q stands for %q", word, others)
		}
	}
}

// BenchmarkHostile is what the bounds leave: twenty unknown words, over a server with as many words
// as are indexed.
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
	f.Add("create an issue", "get_order_items", "Get the items of an order.",
		[]byte(`{"properties":{"id":{"description":"of the order"}}}`))
	f.Add("PRs", "list-PRs", "", []byte(`[]`))
	f.Fuzz(func(t *testing.T, query, name, description string, schema []byte) {
		x := indexOf(t, "s", upstream.Tool{Name: name, Description: description, InputSchema: schema},
			upstream.Tool{Name: "other"})
		search(t, x, query)
		if got := search(t, x, name); len(words(name)) > 0 && len(name) < maxText &&
			(len(got) == 0 || fold(got[0]) != fold(name)) {
			t.Errorf("%q isn't found by its name: %v", name, got)
		}
	})
}
