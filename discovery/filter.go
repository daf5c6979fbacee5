package discovery

import (
	"fmt"
	"slices"
	"strings"
)

// Filter is which tools of a server may be used. Deny goes before Allow, and what Rules hide nothing else shows.
type Filter struct {
	Allow []string // by their real names; nil: all; not nil and empty: none
	Deny  []string
	Globs bool // the names are patterns of path.Match, but that * and ? stand for slashes too, which a tool's name may have
	Rules []RuleList
}

// A RuleList is what a host's settings say of the tools of all its servers, by the names that tools have there: Prefix, and then
// the tool's own with _ for each character that is neither a letter, a digit, _ nor -. Of the rules that match a name the last
// counts; what none matches may be used.
type RuleList struct {
	Prefix  string
	Rules   []ToolRule
	AnyCase bool // upper and lower case are the same; Prefix and the patterns are in lower case then
}

// A ToolRule shows or hides the tools whose names are as Pattern, in which * stands for any characters and ? for one.
type ToolRule struct {
	Pattern string
	Deny    bool
	From    Source // the file that says so
}

// String leaves out the file.
func (r ToolRule) String() string { return fmt.Sprintf("{%s %v}", r.Pattern, r.Deny) }

// Allows says whether a tool passes the filter. A malformed pattern denies what it stands in Deny for, and allows nothing.
func (f Filter) Allows(tool string) bool {
	_, hidden := f.hides(tool)
	return !hidden
}

// hides reports whether the filter hides a tool, and the file of the rule that does; a zero Source is the entry's own.
func (f Filter) hides(tool string) (by Source, hidden bool) {
	if slices.ContainsFunc(f.Deny, func(name string) bool { return f.match(name, tool, true) }) {
		return Source{}, true
	}
	for _, l := range f.Rules {
		if r, ok := l.last(tool); ok && r.Deny {
			return r.From, true
		}
	}
	return Source{}, f.Allow != nil && !slices.ContainsFunc(f.Allow, func(name string) bool { return f.match(name, tool, false) })
}

func (f Filter) match(name, tool string, broken bool) bool {
	if !f.Globs {
		return name == tool
	}
	ok, err := glob(name, tool)
	if err != nil {
		return broken
	}
	return ok
}

// says says whether the filter has anything to say.
func (f Filter) says() bool { return f.Allow != nil || f.Deny != nil || f.Rules != nil }

// last returns the rule that counts for a tool.
func (l RuleList) last(tool string) (ToolRule, bool) {
	name := l.Prefix + plain(tool)
	if l.AnyCase {
		name = strings.ToLower(name)
	}
	for _, r := range slices.Backward(l.Rules) {
		if r.matches(name) {
			return r, true
		}
	}
	return ToolRule{}, false
}

// hidesAll says whether the list hides every tool there can be.
func (l RuleList) hidesAll() bool {
	for _, r := range slices.Backward(l.Rules) {
		head, rest := r.Pattern, ""
		if i := strings.IndexAny(r.Pattern, "*?"); i >= 0 {
			head, rest = r.Pattern[:i], r.Pattern[i:]
		}
		switch {
		case !strings.HasPrefix(l.Prefix, head) && !strings.HasPrefix(head, l.Prefix): // it is about none of them
		case !r.Deny:
			return false // some may be shown
		case rest != "" && strings.HasPrefix(l.Prefix, head) && strings.Trim(rest, "*") == "":
			return true
		}
	}
	return false
}

// matches says whether the rule is about a name, which is of ASCII. There may be many of both: it takes no memory, and time in
// proportion to the product of both lengths at most.
func (r ToolRule) matches(name string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(r.Pattern) && r.Pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(r.Pattern) && (r.Pattern[p] == '?' || r.Pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0: // only the last star takes one more
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(r.Pattern[p:], "*") == ""
}

// plain is a name as Claude Code compares it when a server is rejected, and as it and OpenCode call servers and tools: with _ for
// every other character, and for each half of one beyond 16 bits.
func plain(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case inName(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// inName says whether a character may be in what Claude Code and OpenCode call a tool.
func inName(r rune) bool {
	return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
