package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// label is one line of a file of testdata.
type label struct {
	text string
	want []string
}

func queries(t testing.TB, file string) []label {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []label
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		asked, want, ok := strings.Cut(line, " | ")
		if !ok {
			t.Fatalf("a query without its tools: %s", line)
		}
		all = append(all, label{asked, strings.Fields(want)})
	}
	return all
}

// server is the recorded tools of one.
type server struct {
	name  string
	tools []upstream.Tool
}

func (s server) full(tool int) string { return s.name + "." + s.tools[tool].Name }

// recorded are the tools of the public servers that entrypoint/stubs keeps.
func recorded(t testing.TB) []server {
	t.Helper()
	paths, err := filepath.Glob("../../entrypoint/stubs/testdata/servers/*.json")
	if err != nil || len(paths) < 12 {
		t.Fatalf("%d recorded servers, %v", len(paths), err)
	}
	var servers []server
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []upstream.Tool }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, server{strings.TrimSuffix(filepath.Base(path), ".json"), list.Tools})
	}
	return servers
}

func joined(t testing.TB, servers []server) *index {
	t.Helper()
	var sets []*Toolset
	for _, s := range servers {
		sets = append(sets, toolsetOf(s.name, s.tools...))
	}
	x, err := newIndex(t.Context(), sets)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// finder returns the full names of the tools that a query finds, best first.
type finder func(query string) []string

func ranked(t testing.TB, x *index) finder {
	return func(query string) []string {
		hits, err := x.search(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, h := range hits {
			names = append(names, h.set.Server.Name+"."+h.tool.Name)
		}
		return names
	}
}

// score is how well a finder does.
type score struct {
	queries          int
	first, five, mrr float64       // recall among the first one and five, and the mean of 1/rank
	each             time.Duration // for a query
}

func measure(find finder, asked []label, missed func(q label, found []string)) score {
	s := score{queries: len(asked)}
	var took time.Duration
	for _, q := range asked {
		began := time.Now()
		found := find(q.text)
		took += time.Since(began)
		rank := slices.IndexFunc(found, func(name string) bool { return slices.Contains(q.want, name) })
		if rank == 0 {
			s.first++
		}
		if rank >= 0 && rank < 5 {
			s.five++
		} else if missed != nil {
			missed(q, found[:min(len(found), 5)])
		}
		if rank >= 0 {
			s.mrr += 1 / float64(rank+1)
		}
	}
	n := float64(len(asked))
	s.first, s.five, s.mrr, s.each = s.first/n, s.five/n, s.mrr/n, took/time.Duration(len(asked))
	return s
}

// TestQuality measures the ranking over the labelled queries and holds it where it is. -v prints
// the table, and what isn't found among the first five.
func TestQuality(t *testing.T) {
	servers := recorded(t)
	all, fresh, kept := queries(t, "queries.txt"), queries(t, "fresh.txt"), queries(t, "held.txt")
	if len(all) < 150 {
		t.Fatalf("%d queries", len(all))
	}
	names := map[string]bool{}
	for _, s := range servers {
		for i := range s.tools {
			names[s.full(i)] = true
		}
	}
	for _, q := range slices.Concat(all, fresh, kept) {
		for _, want := range q.want {
			if !names[want] {
				t.Errorf("%q wants %s, which is no tool", q.text, want)
			}
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-28s %8s %9s %9s %7s %10s\n", fmt.Sprintf("%d tools of %d servers", len(names),
		len(servers)),
		"queries", "recall@1", "recall@5", "MRR", "per query")
	find := ranked(t, joined(t, servers))
	for _, tc := range []struct {
		name             string
		queries          []label
		first, five, mrr float64 // at least
	}{
		{"queries.txt, tuned to", all, 0.82, 0.95, 0.88},
		{"fresh.txt, half of it seen", fresh, 0.46, 0.71, 0.57},
		{"held.txt, not looked at", kept, 0.48, 0.81, 0.62},
	} {
		s := measure(find, tc.queries, func(q label, found []string) {
			if tc.name[0] == 'q' {
				t.Logf("missed: %q: %v, not %v", q.text, found, q.want)
			}
		})
		fmt.Fprintf(&table, "%-28s %8d %9.3f %9.3f %7.3f %10v\n", tc.name, s.queries, s.first, s.five, s.mrr,
			s.each.Round(time.Microsecond))
		if s.first < tc.first || s.five < tc.five || s.mrr < tc.mrr {
			t.Errorf("%s: the ranking is worse than it was: go test -v -run TestQuality shows the table", tc.name)
		}
	}
	t.Log("\n" + table.String())
}

// TestNothingFits holds how often a search is taken to have found nothing: for what no tool does,
// and, wrongly, for what one does. -v prints the queries that are judged wrongly.
func TestNothingFits(t *testing.T) {
	text, err := os.ReadFile("testdata/absent.txt")
	if err != nil {
		t.Fatal(err)
	}
	var absent []label
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			absent = append(absent, label{text: line})
		}
	}
	x := joined(t, recorded(t))
	for _, tc := range []struct {
		name        string
		queries     []label
		least, most float64 // share of the queries for which nothing is taken to fit
	}{
		{"absent", absent, 0.80, 1},
		{"queries", queries(t, "queries.txt"), 0, 0.05},
		{"fresh", queries(t, "fresh.txt"), 0, 0.24},
		{"held", queries(t, "held.txt"), 0, 0.11},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nothing := 0
			for _, q := range tc.queries {
				hits, err := x.search(t.Context(), q.text)
				if err != nil {
					t.Fatal(err)
				}
				if fits := fitting(hits); !fits {
					nothing++
				} else if q.want == nil {
					t.Logf("said to fit: %q", q.text)
				}
			}
			share := float64(nothing) / float64(len(tc.queries))
			t.Logf("nothing fits %.3f of %d queries", share, len(tc.queries))
			if len(tc.queries) < 25 || share < tc.least || share > tc.most {
				t.Errorf("nothing fits %.3f of %d queries, want %.2f to %.2f", share, len(tc.queries), tc.least, tc.most)
			}
		})
	}
}
