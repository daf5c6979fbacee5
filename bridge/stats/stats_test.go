package stats

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const ok = audit.OutcomeOK

func call(run, client, server, outcome string, bytes int) audit.Record {
	return audit.Record{Time: noon, Kind: audit.KindCall, Run: run, Client: client, Server: server,
		Verdict: "allow", Outcome: outcome, TookMs: 500, ResultBytes: bytes}
}

func ran(run, client string, printed int) audit.Record {
	return audit.Record{Time: noon.Add(time.Second), Kind: audit.KindRun, Run: run, Client: client,
		Outcome: ok, ResultBytes: printed}
}

func TestCounter(t *testing.T) {
	const host = "claude-code"
	asked, early := call("a", host, "github", "denied", 0), call("a", host, "github", ok, 5)
	asked.Asked, asked.Verdict, early.Time = true, "ask", noon.Add(-time.Hour)
	stray, gone := call("a", host, "nonsense", "validation_error", 0), call("a", host, "gone", ok, 8)
	stray.Verdict = ""
	n := 100
	for _, tt := range []struct {
		name    string
		records []audit.Record
		want    []Row
		totals  Totals
	}{
		{"nothing", nil, nil, Totals{}},
		{"all stayed out", []audit.Record{call("a", host, "github", ok, 1000), ran("a", host, 0)},
			[]Row{{Host: host, Server: "github", Definitions: &n, Calls: 1, Seconds: .5, ResultBytes: 1000,
				KeptBytes: 1000}},
			Totals{Runs: 1, Calls: 1, ResultBytes: 1000, KeptBytes: 1000}},
		{"tools of sandboxes are no server's",
			[]audit.Record{{Time: noon, Kind: audit.KindSandbox, Run: "b", Client: host,
				Sandbox: "k7f2", Tool: "sandbox_exec", Outcome: ok, ResultBytes: 500}, ran("a", host, 0)}, nil,
			Totals{Runs: 1}},
		{"each server has its share of what was printed", []audit.Record{call("a", host, "github", ok, 3000),
			call("a", host, "gone", ok, 1000), ran("a", host, 400)},
			[]Row{{Host: host, Server: "github", Definitions: &n, Calls: 1, Seconds: .5, ResultBytes: 3000,
				KeptBytes: 2700}, {Host: host, Server: "gone", Calls: 1, Seconds: .5, ResultBytes: 1000, KeptBytes: 900}},
			Totals{Runs: 1, Calls: 2, ResultBytes: 4000, KeptBytes: 3600}},
		{"more was printed than there were results", []audit.Record{call("a", host, "github", ok, 10),
			ran("a", host, 4000)},
			[]Row{{Host: host, Server: "github", Definitions: &n, Calls: 1, Seconds: .5, ResultBytes: 10}},
			Totals{Runs: 1, Calls: 1, ResultBytes: 10}},
		{"runs side by side", []audit.Record{call("a", host, "github", ok, 10),
			call("b", "codex", "github", ok, 10), ran("b", "codex", 10), ran("a", host, 0)},
			[]Row{{Host: host, Server: "github", Definitions: &n, Calls: 1, Seconds: .5, ResultBytes: 10,
				KeptBytes: 10},
				{Host: "codex", Server: "github", Definitions: &n, Calls: 1, Seconds: .5, ResultBytes: 10}},
			Totals{Runs: 2, Calls: 2, ResultBytes: 20, KeptBytes: 10}},
		{"a command's output is read by no model", []audit.Record{call("a", audit.Command, "github", ok, 10),
			ran("a", audit.Command, 0)},
			[]Row{{Host: audit.Command, Server: "github", Definitions: &n, Calls: 1, Seconds: .5, ResultBytes: 10}},
			Totals{Runs: 1, Calls: 1, ResultBytes: 10}},
		{"asked and failed", []audit.Record{asked, stray},
			[]Row{{Host: host, Calls: 1, Failed: 1, Seconds: .5},
				{Host: host, Server: "github", Definitions: &n, Calls: 1, Failed: 1, Asked: 1, Seconds: .5}},
			Totals{Calls: 2, Asked: 1}},
		{"before the time that was asked for", []audit.Record{early, gone},
			[]Row{{Host: host, Server: "gone", Calls: 1, Seconds: .5, ResultBytes: 8, KeptBytes: 8}},
			Totals{Calls: 1, ResultBytes: 8, KeptBytes: 8}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(noon.Add(-time.Minute), []Definition{{Server: "github", Tokens: n, Known: true}}, 7)
			for _, r := range tt.records {
				c.Add(r)
			}
			got := c.Report()
			var rows []Row
			for _, r := range got.Rows {
				if r.Calls > 0 {
					rows = append(rows, r)
				}
			}
			if d := cmp.Diff(tt.want, rows); d != "" {
				t.Error(d)
			}
			tt.totals.Servers, tt.totals.Definitions, tt.totals.Own = 1, n, 7
			if d := cmp.Diff(tt.totals, got.Totals); d != "" {
				t.Error(d)
			}
			if (got.From == nil) != (tt.records == nil) {
				t.Errorf("from %v", got.From)
			}
		})
	}
}

// TestDefinitions tells what stays out of conversations from what hosts load all the same, and from
// what isn't known.
func TestDefinitions(t *testing.T) {
	c := New(time.Time{}, []Definition{{Server: "a", Tokens: 1200, Known: true}, {Server: "new"},
		{Server: "b", Tokens: 30, Known: true, Hosts: []string{"Cursor"}}}, 650)
	c.Add(call("a", "x", "b", ok, 12_000))
	r := c.Report()
	want := Totals{Servers: 3, Unknown: 1, Loaded: 1, Definitions: 1200, StillLoaded: 30, Own: 650, Calls: 1,
		ResultBytes: 12_000, KeptBytes: 12_000}
	if d := cmp.Diff(want, r.Totals); d != "" {
		t.Error(d)
	}
	b, a := 30, 1200
	rows := []Row{
		{Host: "x", Server: "b", Definitions: &b, LoadedBy: []string{"Cursor"}, Calls: 1, Seconds: .5,
			ResultBytes: 12_000, KeptBytes: 12_000},
		{Server: "a", Definitions: &a}, {Server: "new"},
	}
	if d := cmp.Diff(rows, r.Rows); d != "" {
		t.Error(d)
	}
	said := strings.Join(r.Lines(), "\n")
	for _, words := range []string{"about 1,200 tokens (servers: 2); the bridge's own take 650",
		"about 30 tokens (servers: 1); mcp-bridge adopt moves them behind the bridge",
		"since " + noon.Local().Format(time.DateOnly) + ": 12 kB of 12 kB (calls: 1, asked about: 0)"} {
		if !strings.Contains(said, words) {
			t.Errorf("%q is missing in\n%s", words, said)
		}
	}
}
