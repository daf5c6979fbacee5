package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// startJSON is what would be run or connected to, without secrets.
type startJSON struct {
	Command string     `json:"command,omitempty"`
	Args    []string   `json:"args,omitempty"`
	Env     []string   `json:"env,omitempty"` // names only
	Dir     string     `json:"dir,omitempty"`
	URL     string     `json:"url,omitempty"`
	Socket  string     `json:"socket,omitempty"`
	Headers []string   `json:"headers,omitempty"` // names only
	Secrets []string   `json:"secrets,omitempty"` // names only
	Hides   []hideJSON `json:"hides,omitempty"`
}

// hideJSON is what one file says of the server's tools.
type hideJSON struct {
	By   string   `json:"by"`
	Only []string `json:"only,omitempty"`
	None bool     `json:"none,omitempty"` // no tool at all
	Not  []string `json:"not,omitempty"`
}

// startOf returns what would be run or connected to.
func startOf(s discovery.Server) startJSON {
	shown := upstream.Shown(s)
	out := startJSON{Command: shown(s.Command), Dir: s.Dir, URL: shown(s.URL), Socket: s.Socket,
		Secrets: s.Given()}
	out.Env, out.Headers = slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(s.Headers))
	for _, a := range s.Args {
		out.Args = append(out.Args, shown(a))
	}
	if s.BearerTokenEnv != "" {
		out.Headers = append(out.Headers, "Authorization: the variable "+s.BearerTokenEnv)
	}
	if s.HeadersHelper != "" {
		out.Headers = append(out.Headers, "printed by "+shown(s.HeadersHelper))
	}
	out.Hides = append(out.Hides, hides(s.Source, s.Tools)...)
	for _, t := range s.Twins {
		out.Hides = append(out.Hides, hides(t.Source, t.Tools)...)
	}
	return out
}

// hides returns what a filter hides, or nothing.
func hides(from discovery.Source, f discovery.Filter) (out []hideJSON) {
	if f.Allow != nil || f.Deny != nil {
		none := f.Allow != nil && len(f.Allow) == 0
		out = append(out, hideJSON{By: from.String(), Only: f.Allow, None: none, Not: f.Deny})
	}
	var files []discovery.Source // whose rules hide some, in their order
	hidden := map[discovery.Source][]string{}
	for _, l := range f.Rules {
		for _, r := range l.Rules {
			tool, own := strings.CutPrefix(r.Pattern, l.Prefix)
			head, _, any := strings.Cut(r.Pattern, "*")
			if r.Deny && (own || any && strings.HasPrefix(l.Prefix, head)) { // others are of other servers
				if hidden[r.From] == nil {
					files = append(files, r.From)
				}
				hidden[r.From] = append(hidden[r.From], tool)
			}
		}
	}
	for _, file := range files {
		out = append(out, hideJSON{By: file.String(), Not: hidden[file]})
	}
	return out
}

// printServer shows all that is known of one server without starting it.
func printServer(out *terminal.Output, c discovery.Catalog) error {
	s := out.Screen()
	for _, srv := range c.Servers {
		fmt.Fprintf(out, "%s: used, as mcp_%s in code, by %s\n", srv.Name, aliases(c)[srv.Name], srv.Transport)
		for _, line := range details(srv) {
			s.Lines(2, 4, line)
		}
	}
	showProblems(s, c.Problems)
	return nil
}

// details returns what would be run or connected to, from which file, and what is hidden, a line
// each.
func details(srv discovery.Server) []string {
	start := startOf(srv)
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+": "+strings.ReplaceAll(value, "\n", `\n`)) // what is foreign adds no line
		}
	}
	add("description", srv.Description)
	words := []string{}
	for _, w := range append([]string{start.Command}, start.Args...) {
		words = append(words, text.ShellWord(w))
	}
	if start.Command != "" {
		add("runs", strings.Join(words, " "))
	}
	add("connects to", start.URL)
	add("over the socket", start.Socket)
	add("variables", strings.Join(start.Env, ", "))
	add("headers", strings.Join(start.Headers, ", "))
	add("secrets", strings.Join(start.Secrets, ", "))
	switch {
	case start.Dir != "":
		add("in", start.Dir)
	case start.Command != "":
		add("in", "the directory that mcp-bridge is started in")
	}
	add("from", srv.Source.String())
	for _, also := range srv.Also {
		add("also in", also.String())
	}
	for _, h := range start.Hides {
		if h.None {
			add("all tools hidden by", h.By)
		}
		if len(h.Only) > 0 {
			add("tools", "only "+strings.Join(h.Only, ", ")+", by "+h.By)
		}
		if len(h.Not) > 0 {
			add("tools", "not "+strings.Join(h.Not, ", ")+", by "+h.By)
		}
	}
	return out
}
