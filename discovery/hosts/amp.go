package hosts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var amp = &config.Host{Name: "Amp", Files: ampFiles, Rules: readAmp}

var ampFiles = []config.File{
	{Scope: "managed", Format: ampFormat, Paths: config.PerSystem("/etc/ampcode/managed-settings.json",
		"/Library/Application Support/ampcode/managed-settings.json",
		"C:/ProgramData/ampcode/managed-settings.json")},
	{Scope: "workspace", Format: ampFormat, Approval: config.HostAsks,
		Paths: config.Everywhere("{workspace}/.amp/settings.json", "{workspace}/.amp/settings.jsonc")},
	{Scope: "user", Format: ampFormat, Paths: config.Paths{
		Linux:   []string{"{config}/amp/settings.json", "{config}/amp/settings.jsonc"},
		Windows: []string{"{appdata}/amp/settings.json", "{appdata}/amp/settings.jsonc"}}},
}

var ampFormat = config.Plain(func(f *config.Format) {
	f.Keys, f.Foreign, f.References = []string{"amp.mcpServers"}, "mcpServers", config.Braces
	f.Tools = config.ToolLists{Allow: "includeTools", Patterns: true}
})

// ampRules is what Amp's settings say of servers and of their tools. Amp makes one list of those of
// all files; here each file has a list, and a server or a tool has to pass all of them, so that no
// file shows what another one hides.
type ampRules struct {
	unreadable *config.Source // an administrator's file
	unclear    config.Refusal // why it can't be told which servers are blocked
	servers    [][]ampRule
	tools      []ampTools
}

// ampRule is one of amp.mcpPermissions. Of each list of patterns one has to match.
type ampRule struct {
	from               config.Source
	command, args, url []string
	reject             bool
}

// ampTools is the rules of one file: about the names mcp__SERVER__TOOL, and about tools' own names.
type ampTools struct{ full, bare []config.ToolRule }

func readAmp(r *config.Reader) config.Rules {
	a := &ampRules{}
	for _, file := range ampFiles {
		for _, p := range r.Expand(file.Paths) {
			src := config.Source{Host: "Amp", Scope: file.Scope, Path: p}
			f := r.Rule(src, false)
			if f.Broken && file.Scope == "managed" {
				a.unreadable = &src
			}
			if f.Rules != nil {
				a.readServers(src, f.Rules)
				a.tools = append(a.tools, readAmpTools(r, src, f.Rules))
			}
		}
	}
	return config.Rules{Denied: a.denied, Tools: a.of}
}

func (a *ampRules) readServers(src config.Source, root config.Object) {
	const key = "amp.mcpPermissions"
	v := root.Get(key)
	if v.Absent() {
		return
	}
	unclear := func(why string) {
		a.unclear = config.Refuse("it can't be told whether Amp blocks it: "+why, "correct it")
	}
	list, ok := v.Array()
	if !ok || len(list) > config.MaxRules {
		unclear(fmt.Sprintf("%s in %s is not a list of at most %d rules", key, src, config.MaxRules))
		return
	}
	rules := make([]ampRule, 0, len(list))
	for i, v := range list {
		rule, ok := ampRuleOf(v)
		if !ok {
			unclear(fmt.Sprintf("rule %d of %s in %s is not understood", i+1, key, src))
		}
		rule.from = src
		rules = append(rules, rule)
	}
	a.servers = append(a.servers, rules)
}

func ampRuleOf(v config.Value) (r ampRule, ok bool) {
	o, _ := v.Object()
	for _, m := range o.Object("matches") {
		patterns, isList := m.Value.Strings()
		if one, isText := m.Value.Text(); isText {
			patterns, isList = []string{one}, true
		}
		to := map[string]*[]string{"command": &r.command, "args": &r.args, "url": &r.url}[m.Name]
		if to == nil || !isList {
			return r, false
		}
		*to = patterns
	}
	action := o.Text("action")
	r.reject = action == "reject"
	return r, (r.reject || action == "allow") && (r.command != nil || r.args != nil || r.url != nil)
}

// denied refuses a server that Amp's settings block. In each file the first rule that matches
// counts.
func (a *ampRules) denied(e *config.Entry) config.Refusal {
	switch {
	case a.unreadable != nil:
		return config.Unclear("Amp", *a.unreadable)
	case a.unclear.Refused():
		return a.unclear
	}
	for _, rules := range a.servers {
		i := slices.IndexFunc(rules, func(r ampRule) bool { return r.matches(e) })
		if i >= 0 && rules[i].reject {
			return config.Refuse("Amp blocks it, in "+rules[i].from.String(),
				"change amp.mcpPermissions there to use it")
		}
	}
	return config.Refusal{}
}

// matches reports whether a rule is about a server. What rejects is about it also as it is written,
// before anything was filled in, and by its whole command line; what allows, only as it is started.
func (r ampRule) matches(e *config.Entry) bool {
	any := func(patterns []string, texts ...string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return r.match(p, t) })
		})
	}
	if e.Transport != config.Stdio {
		urls := []string{e.URL}
		if r.reject {
			urls = append(urls, e.WrittenURL)
		}
		return r.url != nil && r.command == nil && r.args == nil && any(r.url, urls...)
	}
	words := [][]string{append([]string{e.Command}, e.Args...)}
	if r.reject && len(e.Argv) > 0 {
		words = append(words, e.Argv)
	}
	return r.url == nil && slices.ContainsFunc(words, func(w []string) bool {
		line, args := strings.Join(w, " "), strings.Join(w[1:], " ")
		return (r.command == nil || any(r.command, w[0], line)) && (r.args == nil || any(r.args, args))
	})
}

// match reports whether a text is as a pattern, with * for any characters, or an expression between
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
	return pattern == text || !strings.Contains(pattern, "?") && config.MatchStars(pattern, text)
}

// readAmpTools reads which tools one file disables, enables and rejects. A permission that asks, or
// leaves it to a program, hides nothing; nor does one about what a tool is called with.
func readAmpTools(r *config.Reader, src config.Source, root config.Object) (t ampTools) {
	rule := func(pattern string, deny bool) {
		t.full = append(t.full, config.ToolRule{Pattern: pattern, Deny: deny, From: src})
	}
	if !root.Get("amp.tools.enable").Absent() {
		rule("*", true)
		for _, name := range r.Strings(src, root, "amp.tools.enable") {
			rule(name, false)
		}
	}
	permissions, _ := root.Get("amp.permissions").Array()
	for _, v := range slices.Backward(permissions) { // the first that matches counts there, the last here
		o, _ := v.Object()
		tool, ok := o.Get("tool").Text()
		if ok && o.Get("matches").Is("nothing") && o.Get("context").Is("nothing") {
			rule(tool, o.Text("action") == "reject")
		}
	}
	for _, name := range r.Strings(src, root, "amp.tools.disable") {
		if strings.HasPrefix(name, "builtin:") {
			continue
		}
		rule(name, true)
		parts := strings.Split(name, "*")
		for i := range parts {
			parts[i] = config.ToolName(parts[i])
		}
		t.bare = append(t.bare, config.ToolRule{Pattern: strings.Join(parts, "*"), Deny: true, From: src})
	}
	if len(t.full) > config.MaxRules {
		r.Problem(src, "", fmt.Sprintf("it has more than %d rules about tools; all tools of Amp's servers "+
			"are hidden", config.MaxRules),
			"take out what isn't needed")
		return ampTools{full: []config.ToolRule{{Pattern: "*", Deny: true, From: src}}}
	}
	return t
}

// of returns the lists for one server.
func (a *ampRules) of(e *config.Entry) (lists []config.RuleList) {
	for _, t := range a.tools {
		if t.full != nil {
			lists = append(lists, config.RuleList{Prefix: "mcp__" + config.ToolName(e.Name) + "__",
				Rules: t.full})
		}
		if t.bare != nil {
			lists = append(lists, config.RuleList{Rules: t.bare})
		}
	}
	return lists
}

// wildcard reports whether all of a text is as a pattern, in which * stands for anything and case
// counts for nothing.
func wildcard(pattern, text string) bool {
	literal := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(pattern), `\`, `\\`), "?", `\?`)
	ok, err := config.Match(strings.ReplaceAll(literal, "[", `\[`), strings.ToLower(text))
	return ok && err == nil
}
