// Package policy decides which tools of which servers a run may call: allow, ask or deny, and how
// often, with how much.
//
// A policy is read from a file of the user's. Its rules name tools by globs over the server's and
// the tool's real names, never by the aliases that code uses; where no rule speaks of a tool, what
// its server hints of it may decide; else the default does. The strictest rule that matches wins,
// wherever it stands, so that adding a rule never loosens another one. docs/policy.md has it all.
//
// The package calls nothing and asks no user: it doesn't know of guests, MCP or configuration files
// of hosts.
package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Verdict says what becomes of a call. A greater one is stricter; the zero value is not a
// verdict.
type Verdict int

// The verdicts.
const (
	Allow Verdict = iota + 1
	Ask           // the user says
	Deny
)

var verdictNames = []string{Allow: "allow", Ask: "ask", Deny: "deny"}

// String returns the word that a policy file has for it.
func (v Verdict) String() string {
	if v >= Allow && v <= Deny {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", int(v))
}

// A Tool is what is judged. Names are the real ones: as the server is configured, and as it lists
// the tool.
type Tool struct {
	Server, Name string
	Annotations  json.RawMessage // as the server sent them: what it says of itself; nil for none
	Method       bool            // Name is one of MCP's methods, which only read whatever a server says
	Also         []string        // further names of the server: what the policy says of any of them holds
}

// String returns what patterns are matched against: SERVER.TOOL.
func (t Tool) String() string { return t.Server + "." + t.Name }

// A Decision is a verdict and where it is from.
type Decision struct {
	Verdict Verdict
	Source  string // what decided, as a clause: `rule "github.*" (policy.toml, line 4)`
	Reason  string // the rule's own words for people; empty where it has none
}

// Why returns the source, with the rule's reason where it has one.
func (d Decision) Why() string {
	if d.Reason == "" {
		return d.Source
	}
	return d.Source + ": " + d.Reason
}

// A Policy is the rules of one file that hold for one principal: for Local, unless For says so. It
// never changes and is safe for concurrent use. The zero value allows everything.
type Policy struct {
	path   string
	text   []byte
	file   *tables // all of the file's, of which For takes those of a principal
	rules  []rule
	limits []limit
	hints  []hint
	base   Decision // where nothing else decides; its zero verdict means Allow

	packages Packages
	waiting  []*Policy // see Tightened
}

// rule is a verdict on the tools that it matches.
type rule struct {
	who     principals
	tools   selection
	verdict Verdict
	reason  string
	line    int
}

// hint is a verdict on the tools whose servers say this of them.
type hint struct {
	key     string // in the file
	says    func(annotations) bool
	verdict Verdict
	line    int
}

// Path returns the file that the policy is from; empty for none.
func (p *Policy) Path() string { return p.path }

// Text returns what the file held when it was read.
func (p *Policy) Text() []byte { return p.text }

// Tightened returns p with all in which another policy is stricter that waits for the user's yes,
// as others may already: its verdicts where they are, its limits, and packages that it doesn't
// allow. It loosens nothing, and says nothing in its own words, since anybody may have written it.
func (p *Policy) Tightened(waiting *Policy) *Policy {
	out := *p
	out.waiting = append(slices.Clone(p.waiting), waiting)
	out.limits = slices.Clone(p.limits)
	for _, l := range waiting.limits {
		l.waiting = true
		out.limits = append(out.limits, l)
	}
	out.packages.OnDemand = p.packages.OnDemand && waiting.packages.OnDemand
	out.packages.waiting = append(slices.Clone(p.packages.waiting), waiting.packages)
	return &out
}

// unapproved says of a source that it isn't the user's yet.
const unapproved = "a change that waits for the user's approval"

// Decide returns the verdict on a tool: the strictest of the rules that match it; else the
// strictest of the hints that apply; else the default. Of several rules that are equally strict,
// the first in the file is named.
func (p *Policy) Decide(t Tool) Decision {
	found := p.decide(t)
	own, looser := found.Verdict, false
	for _, w := range p.waiting {
		switch verdict := w.decide(t).Verdict; {
		case verdict > found.Verdict:
			found = Decision{verdict, p.at(unapproved, 0), ""}
		case verdict < own:
			looser = true
		}
	}
	if looser && found.Verdict == own {
		found.Source += ", as the file was before " + unapproved
	}
	return found
}

func (p *Policy) decide(t Tool) Decision {
	var found Decision
	for _, r := range p.rules {
		if r.verdict > found.Verdict {
			if g, ok := r.match(t); ok {
				found = Decision{r.verdict, p.at(fmt.Sprintf("rule %q", g.text), r.line), r.reason}
			}
		}
	}
	if found.Verdict != 0 {
		return found
	}
	if len(p.hints) > 0 {
		said, who := readAnnotations(t.Annotations), "which the server claims"
		if len(t.Annotations) == 0 {
			who = "which a tool is of which nothing is said"
		}
		if t.Method {
			said, who = annotations{ReadOnly: true, Idempotent: true, OpenWorld: true}, "as MCP's methods only read"
		}
		for _, h := range p.hints {
			if h.verdict > found.Verdict && h.says(said) {
				found = Decision{h.verdict, p.at("hints."+h.key+", "+who, h.line), ""}
			}
		}
	}
	switch {
	case found.Verdict != 0:
		return found
	case p.base.Verdict != 0:
		return p.base
	}
	return Decision{Verdict: Allow, Source: "no policy is set"}
}

// at returns a source with its place.
func (p *Policy) at(what string, line int) string {
	if line == 0 {
		return fmt.Sprintf("%s (%s)", what, p.path)
	}
	return fmt.Sprintf("%s (%s, line %d)", what, p.path, line)
}

// Unused returns the patterns that fit none of these servers, a clause each: most likely they are
// misspelt.
func (p *Policy) Unused(servers []string) []string {
	var out []string
	for _, s := range p.selections() {
		for _, g := range s.in {
			if len(g.serversOf(servers)) == 0 {
				out = append(out, p.at(fmt.Sprintf("pattern %q is of no server that is configured", g.text), g.line))
			}
		}
	}
	return out
}

// Missing returns the patterns, those of exceptions among them, that name one tool which none of
// their servers has, one clause each. why is asked for the reason; it is empty where one of the
// servers has the tool, or that isn't known.
func (p *Policy) Missing(servers []string, why func(servers []string, tool string) string) []string {
	var out []string
	for _, s := range p.selections() {
		for _, g := range slices.Concat(s.in, s.except) {
			of := g.serversOf(servers)
			if g.tool.wild != nil || len(of) == 0 {
				continue
			}
			if reason := why(of, g.tool.name); reason != "" {
				out = append(out, p.at(fmt.Sprintf("pattern %q is of no tool: %s", g.text, reason), g.line))
			}
		}
	}
	return out
}

// selections returns those of all rules and limits, in the order of the file's tables.
func (p *Policy) selections() []selection {
	var out []selection
	if p.file != nil {
		for _, r := range p.file.rules {
			out = append(out, r.tools)
		}
		for _, l := range p.file.limits {
			out = append(out, l.tools)
		}
	}
	return out
}

// serversOf returns those of the servers that a pattern's first half matches.
func (g glob) serversOf(servers []string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return !g.server.match(s) })
}

// annotations are a server's hints on a tool, with MCP's defaults for those it doesn't give.
type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// readAnnotations takes what can't be read for nothing: the defaults are the careful ones.
func readAnnotations(raw json.RawMessage) annotations {
	usual := annotations{Destructive: true, OpenWorld: true}
	a := usual
	if json.Unmarshal(raw, &a) != nil {
		a = usual
	}
	if a.ReadOnly { // the other two say something only of a tool that changes things (MCP, ToolAnnotations)
		a.Destructive, a.Idempotent = false, true
	}
	return a
}

// hintKeys are the keys of [hints] with what each asks for.
var hintKeys = []struct {
	key  string
	says func(annotations) bool
}{
	{"read_only", func(a annotations) bool { return a.ReadOnly }},
	{"destructive", func(a annotations) bool { return a.Destructive }},
	{"idempotent", func(a annotations) bool { return a.Idempotent }},
	{"open_world", func(a annotations) bool { return a.OpenWorld }},
}

// selection is tools by patterns: those that one of in matches and none of except.
type selection struct{ in, except []glob }

// match returns the pattern by which the rule speaks of t. An allow leaves out what it excepts
// under any of the server's names, so that a further name, from another host's file, doesn't give
// what the rule leaves out.
func (r rule) match(t Tool) (glob, bool) {
	if r.verdict == Allow && slices.ContainsFunc(t.names(), r.tools.excepts) {
		return glob{}, false
	}
	return r.tools.match(t)
}

// names returns the tool under each of its server's names.
func (t Tool) names() []Tool {
	out := []Tool{{Server: t.Server, Name: t.Name}}
	for _, server := range t.Also {
		out = append(out, Tool{Server: server, Name: t.Name})
	}
	return out
}

// match returns the first pattern that has t under one of its names, and does not except it under
// the same.
func (s selection) match(t Tool) (glob, bool) {
	for _, name := range t.names() {
		for _, g := range s.in {
			if g.match(name) {
				if s.excepts(name) {
					break
				}
				return g, true
			}
		}
	}
	return glob{}, false
}

// excepts reports whether one of the exceptions has t, under its first name.
func (s selection) excepts(t Tool) bool {
	return slices.ContainsFunc(s.except, func(x glob) bool { return x.match(t) })
}

// String returns the patterns as people read them.
func (s selection) String() string {
	texts := make([]string, 0, len(s.in))
	for _, g := range s.in {
		texts = append(texts, g.text)
	}
	return strings.Join(texts, ", ")
}

// Hinted reports whether it may depend on the tool's annotations what Decide says of it.
func (p *Policy) Hinted(t Tool) bool {
	if slices.ContainsFunc(p.waiting, func(w *Policy) bool { return w.Hinted(t) }) {
		return true
	}
	return len(p.hints) > 0 && !slices.ContainsFunc(p.rules, func(r rule) bool {
		_, ok := r.match(t)
		return ok
	})
}

// Size returns how many rules and limits the file has.
func (p *Policy) Size() (rules, limits int) {
	if p.file == nil {
		return 0, 0
	}
	return len(p.file.rules), len(p.file.limits)
}
