package hosts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var amp = &config.Host{Name: "Amp", Format: ampFormat, Files: ampFiles, Rules: readAmp,
	Install: &config.Install{ID: "amp", Program: "amp", User: []string{"user"}, Project: "workspace",
		Command: []string{"amp", "mcp", "add", config.Own, "--env", "{env}", "--", "{command}"},
		Next:    "amp tools list shows the bridge"}}

var ampFiles = []config.File{
	{Scope: "managed", Paths: config.PerSystem("/etc/ampcode/managed-settings.json",
		"/Library/Application Support/ampcode/managed-settings.json",
		"C:/ProgramData/ampcode/managed-settings.json")},
	{Scope: "workspace", Approval: config.HostAsks,
		Paths: config.Everywhere("{workspace}/.amp/settings.json(c)")},
	{Scope: "user",
		Paths: config.OnWindows("{config}/amp/settings.json(c)", "{appdata}/amp/settings.json(c)")},
}

var ampFormat = config.Plain(func(f *config.Format) {
	f.Key, f.Foreign, f.References = "amp.mcpServers", "mcpServers", config.Braces
	f.Tools = config.ToolLists{Allow: "includeTools", Patterns: true}
})

// ampRules is what Amp's settings say of servers and of their tools. Amp makes one list of those of
// all files; here each file has a list, and a server or a tool has to pass all of them, so that no
// file shows what another one hides.
type ampRules struct {
	unclear config.Refusal // why it can't be told which servers are blocked
	servers [][]ampRule
	tools   []ampTools
}

// ampRule is one of amp.mcpPermissions: a server has to match one pattern of each key.
type ampRule struct {
	patterns map[string][]string // by command, args or url
	reject   bool
}

// ampTools is the rules of one file: about the names mcp__SERVER__TOOL, and about tools' own names.
type ampTools struct{ full, bare []config.ToolRule }

func readAmp(r *config.Reader) config.Rules {
	a := &ampRules{}
	var sources []config.Source
	for _, s := range r.Settings("Amp", ampFiles) {
		if s.Broken && s.File.Scope == "managed" {
			a.unclear = config.Unclear("Amp", s.Source)
		}
		if s.Rules != nil {
			sources = append(sources, s.Source)
			a.servers = append(a.servers, a.readServers(s.Source, s.Rules))
			a.tools = append(a.tools, readAmpTools(r, s.Source, s.Rules))
		}
	}
	denied := func(e *config.Entry) config.Refusal {
		if a.unclear.Refused() {
			return a.unclear
		}
		for i, rules := range a.servers { // in each file the first rule that matches counts
			first := slices.IndexFunc(rules, func(r ampRule) bool { return r.matches(e) })
			if first >= 0 && rules[first].reject {
				return config.Refuse("Amp blocks it, in "+sources[i].String(),
					"change amp.mcpPermissions there to use it")
			}
		}
		return config.Refusal{}
	}
	return config.Rules{Denied: denied, Tools: a.of}
}

func (a *ampRules) readServers(src config.Source, root config.Object) (rules []ampRule) {
	const key = "amp.mcpPermissions"
	unclear := func(why string) {
		a.unclear = config.Refuse("it can't be told whether Amp blocks it: "+why, "correct it")
	}
	list, ok := root.Get(key).Array()
	if !ok && !root.Get(key).Absent() || len(list) > config.MaxRules {
		unclear(fmt.Sprintf("%s in %s is not a list of at most %d rules", key, src, config.MaxRules))
		return nil
	}
	for i, v := range list {
		o, _ := v.Object()
		rule := ampRule{map[string][]string{}, o.Text("action") == "reject"}
		ok := rule.reject || o.Text("action") == "allow"
		for _, m := range o.Object("matches") {
			patterns, isList := m.Value.Strings()
			if one, isText := m.Value.Text(); isText {
				patterns, isList = []string{one}, true
			}
			ok = ok && isList && slices.Contains([]string{"command", "args", "url"}, m.Name)
			rule.patterns[m.Name] = patterns
		}
		if !ok || len(rule.patterns) == 0 {
			unclear(fmt.Sprintf("rule %d of %s in %s is not understood", i+1, key, src))
		}
		rules = append(rules, rule)
	}
	return rules
}

// matches reports whether a rule is about a server. What rejects is about it also as it is written,
// before anything was filled in, and by its whole command line; what allows, only as it is started.
func (r ampRule) matches(e *config.Entry) bool {
	filledIn := ampTexts(append([]string{e.Command}, e.Args...), e.URL)
	written := ampTexts(e.Argv, e.WrittenURL)
	for key, patterns := range r.patterns {
		texts := filledIn[key]
		if r.reject {
			texts = append(texts, written[key]...)
		}
		if !slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return r.match(p, text) })
		}) {
			return false
		}
	}
	return true
}

// ampTexts returns what the patterns of each key are compared with.
func ampTexts(words []string, url string) map[string][]string {
	if url != "" {
		return map[string][]string{"url": {url}}
	}
	return map[string][]string{"command": {words[0], strings.Join(words, " ")},
		"args": {strings.Join(words[1:], " ")}}
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
	rule := func(pattern string, deny bool) config.ToolRule {
		return config.ToolRule{Pattern: pattern, Deny: deny, From: src}
	}
	if !root.Get("amp.tools.enable").Absent() {
		t.full = append(t.full, rule("*", true))
		for _, name := range r.Strings(src, root, "amp.tools.enable") {
			t.full = append(t.full, rule(name, false))
		}
	}
	permissions, _ := root.Get("amp.permissions").Array()
	for _, v := range slices.Backward(permissions) { // the first that matches counts there, the last here
		o, _ := v.Object()
		tool, ok := o.Get("tool").Text()
		if ok && o.Get("matches").Is("nothing") && o.Get("context").Is("nothing") {
			t.full = append(t.full, rule(tool, o.Text("action") == "reject"))
		}
	}
	for _, name := range r.Strings(src, root, "amp.tools.disable") {
		if !strings.HasPrefix(name, "builtin:") {
			t.full = append(t.full, rule(name, true))
			t.bare = append(t.bare, rule(config.ToolPattern(name), true))
		}
	}
	t.full = r.Bounded(src, t.full)
	return t
}

// of returns the lists for one server.
func (a *ampRules) of(e *config.Entry) (lists []config.RuleList) {
	for _, t := range a.tools {
		prefix := "mcp__" + config.ToolName(e.Name) + "__"
		lists = append(lists, config.RuleList{Prefix: prefix, Rules: t.full}, config.RuleList{Rules: t.bare})
	}
	return slices.DeleteFunc(lists, func(l config.RuleList) bool { return l.Rules == nil })
}

// wildcard reports whether all of a text is as a pattern, in which * stands for anything and case
// counts for nothing.
func wildcard(pattern, text string) bool {
	literal := strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`).Replace(strings.ToLower(pattern))
	ok, err := config.Match(literal, strings.ToLower(text))
	return ok && err == nil
}
