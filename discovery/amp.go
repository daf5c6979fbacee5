package discovery

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ampRules are what Amp's settings say of servers and of their tools. Amp makes one list of those
// of all files; here each file has a list, and a server or a tool has to pass all of them, so that
// no file shows what another one hides.
type ampRules struct {
	blind   *Source // an administrator's file that couldn't be read
	unclear refusal // why it can't be told which servers are blocked
	servers [][]ampRule
	tools   []ampTools
}

// ampRule is one of amp.mcpPermissions. Of each list of patterns one has to match.
type ampRule struct {
	from               Source
	command, args, url []string
	reject             bool
}

// ampTools are the rules of one file: about the names mcp__SERVER__TOOL, and about tools' own
// names.
type ampTools struct{ full, bare []ToolRule }

func (s *scan) readAmp() ampRules {
	var a ampRules
	for i := range sources {
		r := &sources[i]
		if r.host != amp {
			continue
		}
		for _, p := range s.places.expand(r.where) {
			src := Source{amp, r.scope, p}
			f := s.load(src, false, false)
			if f.broken && r.scope == "managed" {
				a.blind = &src
			}
			if f.rules == nil {
				continue
			}
			a.readServers(src, f.rules)
			a.tools = append(a.tools, s.ampTools(src, f.rules))
		}
	}
	return a
}

func (a *ampRules) readServers(src Source, root *hujson.Object) {
	const key = "amp.mcpPermissions"
	v := get(root, key)
	if k := kind(v); k == "nothing" || k == "null" {
		return
	}
	list, ok := arrayOf(v)
	if !ok || len(list.Elements) > maxRules {
		a.unclear = ampUnclear(fmt.Sprintf("%s in %s is not a list of at most %d rules", key, src, maxRules))
		return
	}
	rules := make([]ampRule, 0, len(list.Elements))
	for i := range list.Elements {
		rule, ok := ampRuleOf(&list.Elements[i])
		if !ok {
			a.unclear = ampUnclear(fmt.Sprintf("rule %d of %s in %s is not understood", i+1, key, src))
		}
		rule.from = src
		rules = append(rules, rule)
	}
	a.servers = append(a.servers, rules)
}

func ampUnclear(why string) refusal {
	return refusal{"it can't be told whether Amp blocks it: " + why, "correct it"}
}

func ampRuleOf(v *hujson.Value) (r ampRule, ok bool) {
	o, _ := objectOf(v)
	if o == nil {
		return r, false
	}
	for _, m := range objectIn(o, "matches").Members {
		patterns, isList := stringsOf(&m.Value)
		if one, isString := stringOf(&m.Value); isString {
			patterns, isList = []string{one}, true
		}
		switch name := nameOf(m); {
		case !isList:
			return r, false
		case name == "command":
			r.command = patterns
		case name == "args":
			r.args = patterns
		case name == "url":
			r.url = patterns
		default:
			return r, false
		}
	}
	action, _ := stringOf(get(o, "action"))
	r.reject = action == "reject"
	return r, (r.reject || action == "allow") && (r.command != nil || r.args != nil || r.url != nil)
}

// forbid says why Amp's settings block a server, if they do. In each file the first rule that
// matches counts.
func (a ampRules) forbid(d definition) refusal {
	switch {
	case a.blind != nil:
		return blindTo(amp, *a.blind)
	case a.unclear != (refusal{}):
		return a.unclear
	}
	for _, rules := range a.servers {
		i := slices.IndexFunc(rules, func(r ampRule) bool { return r.matches(d) })
		if i >= 0 && rules[i].reject {
			return refusal{"Amp blocks it, in " + rules[i].from.String(), "change amp.mcpPermissions there to use it"}
		}
	}
	return refusal{}
}

// matches says whether a rule is about a server. What rejects is about it also as it is written,
// before anything was filled in, and by its whole command line; what allows, only as it is started.
func (r ampRule) matches(d definition) bool {
	any := func(patterns []string, texts ...string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return r.match(p, t) })
		})
	}
	if d.Transport != Stdio {
		urls := []string{d.URL}
		if r.reject {
			urls = append(urls, d.address)
		}
		return r.url != nil && r.command == nil && r.args == nil && any(r.url, urls...)
	}
	words := [][]string{append([]string{d.Command}, d.Args...)}
	if r.reject && len(d.written) > 0 {
		words = append(words, d.written)
	}
	return r.url == nil && slices.ContainsFunc(words, func(w []string) bool {
		line := strings.Join(w, " ")
		args := strings.Join(w[1:], " ")
		return (r.command == nil || any(r.command, w[0], line)) && (r.args == nil || any(r.args, args))
	})
}

// match says whether a text is as a pattern, with * for any characters, or an expression between
// slashes. One that Go doesn't have rejects everything and allows nothing.
func (r ampRule) match(pattern, text string) bool {
	if len(pattern) > 1 && pattern[0] == '/' && pattern[len(pattern)-1] == '/' {
		e, err := regexp.Compile(pattern[1 : len(pattern)-1])
		if err != nil {
			return r.reject
		}
		return e.MatchString(text)
	}
	if r.reject {
		return wildcard(pattern, text)
	}
	return pattern == text || !strings.Contains(pattern, "?") && ToolRule{Pattern: pattern}.matches(text)
}

// ampTools reads which tools one file disables, enables and rejects. A permission that asks, or
// leaves it to a program, hides nothing; nor does one about what a tool is called with.
func (s *scan) ampTools(src Source, root *hujson.Object) (t ampTools) {
	if k := kind(get(root, "amp.tools.enable")); k != "nothing" && k != "null" {
		t.full = append(t.full, ToolRule{"*", true, src})
		for _, name := range s.strings(src, root, "amp.tools.enable") {
			t.full = append(t.full, ToolRule{name, false, src})
		}
	}
	permissions, _ := arrayOf(get(root, "amp.permissions"))
	if permissions != nil {
		// The first that matches counts there, the last here.
		for _, v := range slices.Backward(permissions.Elements) {
			o, _ := objectOf(&v)
			if o == nil || get(o, "matches") != nil || get(o, "context") != nil {
				continue
			}
			if tool, ok := stringOf(get(o, "tool")); ok {
				action, _ := stringOf(get(o, "action"))
				t.full = append(t.full, ToolRule{tool, action == "reject", src})
			}
		}
	}
	for _, name := range s.strings(src, root, "amp.tools.disable") {
		if strings.HasPrefix(name, "builtin:") {
			continue
		}
		t.full = append(t.full, ToolRule{name, true, src})
		parts := strings.Split(name, "*")
		for i := range parts {
			parts[i] = plain(parts[i])
		}
		t.bare = append(t.bare, ToolRule{strings.Join(parts, "*"), true, src})
	}
	if len(t.full) > maxRules {
		why := fmt.Sprintf("it has more than %d rules about tools; all tools of Amp's servers are hidden", maxRules)
		s.problem(src, "", why, "take out what isn't needed")
		return ampTools{full: []ToolRule{{"*", true, src}}}
	}
	return t
}

// of is the lists for one server.
func (a ampRules) of(server string) (lists []RuleList) {
	for _, t := range a.tools {
		if t.full != nil {
			lists = append(lists, RuleList{Prefix: "mcp__" + plain(server) + "__", Rules: t.full})
		}
		if t.bare != nil {
			lists = append(lists, RuleList{Rules: t.bare})
		}
	}
	return lists
}
