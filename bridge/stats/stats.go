// Package stats adds up what the bridge has kept out of its hosts' contexts: the definitions of the
// configured servers' tools, and the results of calls that code has not printed. It knows what an
// audit log's records say and what definitions take; it reads no file and sends nothing anywhere.
package stats

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// A Definition is what a configured server's tools take of the context of a host that loads them.
type Definition struct {
	Server string
	Tokens int
	Known  bool     // the server has listed its tools before
	Hosts  []string // that have the server enabled themselves, and so load them all the same
}

// A Row is what one host has had of one server.
type Row struct {
	Host        string   `json:"host"`   // as the client calls itself; empty where that isn't recorded
	Server      string   `json:"server"` // empty for calls of servers that don't exist
	Definitions *int     `json:"definition_tokens,omitempty"`
	LoadedBy    []string `json:"loaded_by,omitempty"` // hosts whose own files have the server too
	Calls       int      `json:"calls"`
	Failed      int      `json:"failed"` // of these, denied ones included
	Asked       int      `json:"asked"`  // of these: the user was asked about them
	Seconds     float64  `json:"seconds"`
	ResultBytes int64    `json:"result_bytes"`
	KeptBytes   int64    `json:"kept_out_bytes"` // of these: they were not printed into the host's context
}

// Totals are over all hosts and servers.
type Totals struct {
	Servers     int   `json:"servers"`           // that are configured
	Unknown     int   `json:"servers_unknown"`   // of these: their tools aren't known yet
	Loaded      int   `json:"servers_loaded"`    // of these: a host loads them too
	Definitions int   `json:"definition_tokens"` // of those that no host loads
	StillLoaded int   `json:"loaded_tokens"`     // of the others
	Own         int   `json:"own_tokens"`        // of the bridge's own tools and instructions
	Runs        int   `json:"runs"`
	Calls       int   `json:"calls"`
	Asked       int   `json:"asked"`
	ResultBytes int64 `json:"result_bytes"`
	KeptBytes   int64 `json:"kept_out_bytes"`
}

// A Report is what a Counter has counted.
type Report struct {
	From   *time.Time `json:"from,omitempty"` // of the first record; nil for none
	Totals Totals     `json:"totals"`
	Rows   []Row      `json:"rows"` // by host and server, those without a host last
}

// A Counter adds up the records of an audit log, which are given to Add in their order. It is made
// by New, and not for concurrent use.
type Counter struct {
	since  time.Time
	tokens map[string]Definition
	own    int
	from   time.Time
	runs   int
	rows   map[key]*Row
	open   map[string]map[*Row]int64 // by run: the bytes of its calls' results, until it has ended
}

type key struct{ host, server string }

// New returns a Counter of what was done since a time. own is what the bridge's own definitions
// take.
func New(since time.Time, definitions []Definition, own int) *Counter {
	c := &Counter{since: since, own: own, tokens: map[string]Definition{}, rows: map[key]*Row{},
		open: map[string]map[*Row]int64{}}
	for _, d := range definitions {
		c.tokens[d.Server] = d
	}
	return c
}

// Add counts a record.
func (c *Counter) Add(r audit.Record) {
	if r.Time.Before(c.since) {
		return
	}
	if c.from.IsZero() || r.Time.Before(c.from) {
		c.from = r.Time
	}
	if r.Kind == audit.KindRun {
		c.runs++
		c.printed(r.Run, int64(r.ResultBytes))
		return
	}
	if r.Kind == audit.KindSandbox {
		return // no server has worked for it
	}
	if _, configured := c.tokens[r.Server]; !configured && r.Verdict == "" {
		r.Server = "" // code may ask for any name
	}
	row := c.row(r.Client, r.Server)
	row.Calls++
	if r.Outcome != audit.OutcomeOK {
		row.Failed++
	}
	if r.Asked {
		row.Asked++
	}
	row.Seconds += r.TookMs / 1000
	row.ResultBytes += int64(r.ResultBytes)
	if r.Client == audit.Command {
		return // no model reads what it prints
	}
	row.KeptBytes += int64(r.ResultBytes)
	if c.open[r.Run] == nil {
		c.open[r.Run] = map[*Row]int64{}
	}
	c.open[r.Run][row] += int64(r.ResultBytes)
}

// printed takes what a run has printed from what stayed out of the context. What was printed of
// which result isn't known, so each server has its share.
func (c *Counter) printed(run string, printed int64) {
	all := int64(0)
	for _, n := range c.open[run] {
		all += n
	}
	for row, n := range c.open[run] {
		if all > 0 {
			row.KeptBytes -= min(n, int64(float64(n)*float64(printed)/float64(all)))
		}
	}
	delete(c.open, run)
}

func (c *Counter) row(host, server string) *Row {
	k := key{host, server}
	if c.rows[k] == nil {
		c.rows[k] = &Row{Host: host, Server: server}
		d := c.tokens[server]
		c.rows[k].LoadedBy = d.Hosts
		if d.Known {
			c.rows[k].Definitions = &d.Tokens
		}
	}
	return c.rows[k]
}

// Report returns what was counted, with a row for each configured server that nothing was called
// of.
func (c *Counter) Report() Report {
	t := Totals{Own: c.own, Servers: len(c.tokens), Runs: c.runs}
	called := map[string]bool{}
	for k, row := range c.rows {
		called[k.server] = true
		t.Calls += row.Calls
		t.Asked += row.Asked
		t.ResultBytes += row.ResultBytes
		t.KeptBytes += row.KeptBytes
	}
	for name, d := range c.tokens {
		if !d.Known {
			t.Unknown++
		}
		if len(d.Hosts) > 0 {
			t.Loaded++
			t.StillLoaded += d.Tokens
		} else {
			t.Definitions += d.Tokens
		}
		if !called[name] {
			c.row("", name)
		}
	}
	report := Report{Totals: t, Rows: []Row{}}
	if !c.from.IsZero() {
		report.From = &c.from
	}
	for _, row := range c.rows {
		report.Rows = append(report.Rows, *row)
	}
	slices.SortFunc(report.Rows, func(a, b Row) int {
		if (a.Host == "") != (b.Host == "") {
			return strings.Compare(b.Host, a.Host)
		}
		return strings.Compare(a.Host+"\x00"+a.Server, b.Host+"\x00"+b.Server)
	})
	return report
}

// Lines returns the totals for a person.
func (r Report) Lines() []string {
	t := r.Totals
	count := func(n int) string { return text.Count(int64(n)) }
	lines := []string{fmt.Sprintf("definitions that stay out of every conversation: about %s tokens "+
		"(servers: %d); the bridge's own take %s", count(t.Definitions), t.Servers-t.Loaded, count(t.Own))}
	if t.Loaded > 0 {
		tokens := "about " + count(t.StillLoaded) + " tokens"
		if t.StillLoaded == 0 {
			tokens = "not known before mcp-bridge tools has listed them"
		}
		lines = append(lines, fmt.Sprintf("definitions that hosts load all the same: %s "+
			"(servers: %d); mcp-bridge adopt moves them behind the bridge", tokens, t.Loaded))
	}
	if r.From != nil {
		lines = append(lines, fmt.Sprintf("results that stayed out since %s: %s of %s (calls: %s, asked about: %s)",
			r.From.Local().Format(time.DateOnly), text.Size(t.KeptBytes), text.Size(t.ResultBytes), count(t.Calls),
			count(t.Asked)))
	}
	return lines
}
