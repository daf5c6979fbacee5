package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Filter is which tools of a server may be used. Deny goes before Allow, and what Rules hide
// nothing else shows.
type Filter struct {
	Allow []string // by their real names; nil: all; not nil and empty: none
	Deny  []string
	Globs bool // the names are patterns, as Match takes them
	Rules []RuleList
}

// A RuleList is what a host's settings say of the tools of all its servers, by the names that tools
// have there: Prefix, and then the tool's own as ToolName returns it. Of the rules that match a
// name the last counts; what none matches may be used.
type RuleList struct {
	Prefix  string
	Rules   []ToolRule
	AnyCase bool // upper and lower case are the same
}

// A ToolRule shows or hides the tools whose names are as Pattern, in which * stands for any
// characters and ? for one.
type ToolRule struct {
	Pattern string
	Deny    bool
	From    Source // the file that says so
}

// MaxRules bounds the rules about tools that each name is compared with; with more, all tools are
// hidden.
const MaxRules = 1000

// String leaves out the file.
func (r ToolRule) String() string { return fmt.Sprintf("{%s %v}", r.Pattern, r.Deny) }

// Allows reports whether a tool passes the filter. A malformed pattern denies what it stands in
// Deny for, and allows nothing.
func (f Filter) Allows(tool string) bool {
	_, hidden := f.Hides(tool)
	return !hidden
}

// Hides reports whether the filter hides a tool, and the file of the rule that does; a zero Source
// is the entry's own.
func (f Filter) Hides(tool string) (by Source, hidden bool) {
	if slices.ContainsFunc(f.Deny, func(name string) bool { return f.match(name, tool, true) }) {
		return Source{}, true
	}
	for _, l := range f.Rules {
		if r, ok := l.last(tool); ok && r.Deny {
			return r.From, true
		}
	}
	allowed := f.Allow == nil || slices.ContainsFunc(f.Allow, func(name string) bool {
		return f.match(name,
			tool, false)
	})
	return Source{}, !allowed
}

func (f Filter) match(name, tool string, malformed bool) bool {
	if !f.Globs {
		return name == tool
	}
	ok, err := Match(name, tool)
	return ok || err != nil && malformed
}

// Says reports whether the filter has anything to say.
func (f Filter) Says() bool { return f.Allow != nil || f.Deny != nil || f.Rules != nil }

// last returns the rule that counts for a tool.
func (l RuleList) last(tool string) (ToolRule, bool) {
	fold := func(s string) string { return s }
	if l.AnyCase {
		fold = strings.ToLower
	}
	name := fold(l.Prefix + ToolName(tool))
	for _, r := range slices.Backward(l.Rules) {
		if MatchStars(fold(r.Pattern), name) {
			return r, true
		}
	}
	return ToolRule{}, false
}

// HidesAll reports whether the list hides every tool there can be.
func (l RuleList) HidesAll() bool {
	for _, r := range slices.Backward(l.Rules) {
		head, rest := r.Pattern, ""
		if i := strings.IndexAny(r.Pattern, "*?"); i >= 0 {
			head, rest = r.Pattern[:i], r.Pattern[i:]
		}
		switch {
		case !strings.HasPrefix(l.Prefix, head) && !strings.HasPrefix(head, l.Prefix): // about none of them
		case !r.Deny:
			return false // some may be shown
		case rest != "" && strings.HasPrefix(l.Prefix, head) && strings.Trim(rest, "*") == "":
			return true
		}
	}
	return false
}

// noSlashes has path.Match take a slash for a character like any other.
var noSlashes = strings.NewReplacer("/", "\x00")

// Match is path.Match for names that aren't paths: * and ? stand for slashes too.
func Match(pattern, name string) (bool, error) {
	return path.Match(noSlashes.Replace(pattern), noSlashes.Replace(name))
}

// literals are the characters that path.Match acts on, except the stars.
var literals = strings.NewReplacer(`[`, `\[`, `\`, `\\`)

// MatchStars is Match for patterns in which only * and ? stand for others.
func MatchStars(pattern, name string) bool {
	ok, err := Match(literals.Replace(pattern), name)
	return ok && err == nil
}

// ToolName returns a name as Claude Code and OpenCode call servers and tools: with _ for every
// character that InName doesn't take, and for each half of one beyond 16 bits.
func ToolName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case InName(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// ToolPattern is ToolName for a pattern, in which stars stay.
func ToolPattern(pattern string) string {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = ToolName(parts[i])
	}
	return strings.Join(parts, "*")
}

// InName reports whether a character may be in what Claude Code and OpenCode call a tool.
func InName(r rune) bool {
	return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
