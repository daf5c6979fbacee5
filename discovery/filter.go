package discovery

import (
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
	AnyCase bool // upper and lower case are the same
}

// A ToolRule shows or hides the tools whose names are as Pattern, in which * stands for any characters and ? for one.
type ToolRule struct {
	Pattern string
	Deny    bool
}

// Allows says whether a tool passes the filter. A malformed pattern denies what it stands in Deny for, and allows nothing.
func (f Filter) Allows(tool string) bool {
	if slices.ContainsFunc(f.Deny, func(name string) bool { return f.match(name, tool, true) }) {
		return false
	}
	if slices.ContainsFunc(f.Rules, func(l RuleList) bool { return l.hides(tool) }) {
		return false
	}
	return f.Allow == nil || slices.ContainsFunc(f.Allow, func(name string) bool { return f.match(name, tool, false) })
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

func (l RuleList) hides(tool string) bool {
	name := l.Prefix + plain(tool)
	for _, r := range slices.Backward(l.Rules) {
		if r.matches(name, l.AnyCase) {
			return r.Deny
		}
	}
	return false
}

// hidesAll says whether the list hides every tool there can be.
func (l RuleList) hidesAll() bool {
	for _, r := range slices.Backward(l.Rules) {
		head, _, open := strings.Cut(strings.ReplaceAll(r.Pattern, "?", "*"), "*")
		prefix := l.Prefix
		if l.AnyCase {
			head, prefix = strings.ToLower(head), strings.ToLower(prefix)
		}
		switch {
		case !strings.HasPrefix(prefix, head) && !strings.HasPrefix(head, prefix): // it is about none of them
		case !r.Deny:
			return false // some may be shown
		case open && strings.HasPrefix(prefix, head) && strings.Trim(r.Pattern[len(head):], "*") == "":
			return true
		}
	}
	return false
}

// matches says whether the rule is about a name.
func (r ToolRule) matches(name string, anyCase bool) bool {
	pattern := strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(r.Pattern)
	if anyCase {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	ok, err := glob(pattern, name)
	return ok && err == nil
}
