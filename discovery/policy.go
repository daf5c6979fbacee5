package discovery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// policy is what Claude Code's settings say about which servers it uses.
//
// It is about Claude Code's own servers. Where the bridge is run by Claude Code, what the administrator and the settings
// deny or don't allow holds for every other host's servers too: the bridge must not be the way around it.
type policy struct {
	blind       *Source // rules of an administrator that couldn't be read
	exclusive   *Source // managed-mcp.json: only its servers
	pluginsOnly *Source // strictPluginOnlyCustomization

	denied      []rule
	allowed     []rule
	allowedSet  *Source // where allowedMcpServers is; nil means that everything is allowed
	managedOnly bool    // only the administrator's allowedMcpServers counts

	disabled map[string]Source // servers switched off for this project
	rejected map[string]Source // servers of .mcp.json, by plain name
	anywhere approved          // by settings, which count in a trusted project only
	here     approved          // by this project's own entry of ~/.claude.json
	trusted  []string          // folders that the working directory is in; trust in one says nothing of what is above it

	plugins       map[string]pluginWord     // by id
	pluginOptions map[string]*hujson.Object // by id
	marketplaces  *Source                   // the administrator's rules about where plugins come from
	tools         []ToolRule                // tools that are denied, by their names in Claude Code

	projects   []projectEntry // what ~/.claude.json says about this project, what counts first
	projectsOf Source
}

// approved are servers of .mcp.json that the user has said yes to.
type approved struct {
	names map[string]bool
	all   bool // enableAllProjectMcpServers
}

func (a approved) has(name string) bool { return a.all || a.names[name] }

// rule is one entry of allowedMcpServers or deniedMcpServers: exactly one of its matches is set.
type rule struct {
	source  Source
	name    string
	command []string
	url     string // a pattern, in which * stands for anything
}

// word is how far a settings file is believed.
type word int

const (
	guest   word = iota // it lies in a project that isn't trusted: it may take away, not give
	user                // the user's own
	manager             // the administrator's
)

// reserved are names that Claude Code keeps for servers of its own and skips elsewhere.
var reserved = []string{"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"}

// readPolicy reads Claude Code's settings files and what ~/.claude.json says about this project.
func (s *scan) readPolicy() policy {
	p := policy{disabled: map[string]Source{}, rejected: map[string]Source{}, anywhere: approved{names: map[string]bool{}},
		plugins: map[string]pluginWord{}, pluginOptions: map[string]*hujson.Object{}}
	for _, path := range s.places.expand(managed("managed-mcp.json")) {
		src := Source{claudeCode, "managed", path}
		if f := s.load(src, true, false); f.root != nil {
			p.exclusive = &src
		} else if f.broken {
			p.blind = &src
		}
	}
	seen := map[string]bool{}
	settings := func(scope, path string, w word) {
		if !seen[path] {
			seen[path] = true
			s.settings(&p, Source{claudeCode, scope, path}, w)
		}
	}
	for _, path := range s.places.expand(managed("managed-settings.json")) {
		settings("managed settings", path, manager)
	}
	for _, dir := range s.places.expand(managed("managed-settings.d")) {
		src := Source{claudeCode, "managed settings", dir}
		names, err := s.list(dir, ".json")
		if err != nil {
			if reason, next := unreadable(err, false); reason != "" {
				s.problem(src, "", reason, next)
				p.blind = &src
			}
		}
		for _, name := range names {
			settings("managed settings", dir+s.places.native("/"+name), manager)
		}
	}
	for _, path := range s.places.expand(all("{claude}/settings.json")) {
		settings("user settings", path, user)
	}
	projects, src, exposed := s.projects()
	if !exposed {
		p.trusted = s.trusted(projects)
		s.claude.trusted = p.trusted
	}
	for _, name := range []string{"settings", "settings.local"} {
		for _, path := range s.places.expand(all("{workspace}/.claude/" + name + ".json")) {
			w := guest
			if s.claudeTrusts(s.places.projectOf(path)) {
				w = user
			}
			settings(map[string]string{"settings": "project", "settings.local": "local"}[name]+" settings", path, w)
		}
	}
	known := s.project(projects)
	for i, o := range known {
		if yes := s.approvals(&p, src, o.Object); i == 0 && !exposed {
			p.here = yes
		}
		for _, name := range s.strings(src, o.Object, "disabledMcpServers") {
			p.disabled[name] = src
		}
	}
	if !exposed {
		p.projects, p.projectsOf = known, src
	}
	return p
}

// settings reads one settings file. What a file with comments gives is not taken, as Claude Code may reject such a file;
// what it takes away is.
func (s *scan) settings(p *policy, src Source, w word) {
	f := s.load(src, false, false)
	if f.broken && w == manager {
		p.blind = &src
	}
	root := f.rules
	if root == nil {
		return
	}
	if f.exposed {
		w = guest
	}
	denied, ok := s.rules(src, root, "deniedMcpServers")
	p.denied = append(p.denied, denied...)
	if !ok && w == manager {
		p.blind = &src
	}
	if v := get(root, "allowedMcpServers"); v != nil && kind(v) != "null" && (w == manager || !p.managedOnly) {
		if p.allowedSet == nil {
			p.allowedSet = &src
		}
		if allowed, _ := s.rules(src, root, "allowedMcpServers"); w == manager || w == user && f.standard {
			p.allowed = append(p.allowed, allowed...)
		}
	}
	if w == manager {
		if kind(get(root, "allowManagedMcpServersOnly")) == "true" {
			p.managedOnly = true
		}
		v := get(root, "strictPluginOnlyCustomization")
		if kind(v) == "true" || kind(v) == "an array" && slices.Contains(s.strings(src, root, "strictPluginOnlyCustomization"), "mcp") {
			p.pluginsOnly = &src
		}
	}
	s.pluginSettings(p, src, f, w)
	s.toolSettings(p, src, root)
	if yes := s.approvals(p, src, root); w != guest && f.standard {
		p.anywhere.all = p.anywhere.all || yes.all
		maps.Copy(p.anywhere.names, yes.names)
	}
}

// approvals reads the user's answers about the servers of .mcp.json. It notes what is rejected, and leaves it to the caller
// whether what is approved counts.
func (s *scan) approvals(p *policy, src Source, o *hujson.Object) approved {
	for _, name := range s.strings(src, o, "disabledMcpjsonServers") {
		if _, ok := p.rejected[plain(name)]; !ok {
			p.rejected[plain(name)] = src
		}
	}
	yes := approved{map[string]bool{}, kind(get(o, "enableAllProjectMcpServers")) == "true"}
	for _, name := range s.strings(src, o, "enabledMcpjsonServers") {
		yes.names[name] = true
	}
	return yes
}

// rules reads a list of rules; false if it is no list.
func (s *scan) rules(src Source, o *hujson.Object, key string) ([]rule, bool) {
	v := get(o, key)
	if k := kind(v); k == "nothing" || k == "null" {
		return nil, true
	}
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		s.problem(src, "", `its "`+key+`" is `+kind(v)+", not an array", "correct it")
		return nil, false
	}
	var rules []rule
	for i := range list.Elements {
		r, ok := ruleOf(&list.Elements[i])
		if !ok {
			s.problem(src, "", fmt.Sprintf(`entry %d of its "%s" is not understood`, i+1, key),
				"give it exactly one of serverName, serverCommand and serverUrl")
			continue
		}
		r.source = src
		rules = append(rules, r)
	}
	return rules, true
}

func ruleOf(v *hujson.Value) (r rule, ok bool) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return r, false
	}
	if name, ok := stringOf(get(o, "serverName")); ok && name != "" {
		r.name = name
		return r, true
	}
	if list, ok := stringsOf(get(o, "serverCommand")); ok && len(list) > 0 {
		r.command = list
		return r, true
	}
	r.url, ok = stringOf(get(o, "serverUrl"))
	return r, ok && r.url != ""
}

// strings reads a list of strings under a key, none if there is none.
func (s *scan) strings(src Source, o *hujson.Object, key string) []string {
	v := get(o, key)
	if k := kind(v); k == "nothing" || k == "null" {
		return nil
	}
	list, ok := stringsOf(v)
	if !ok {
		s.problem(src, "", `its "`+key+`" is not an array of strings`, "correct it")
	}
	return list
}

// stringsOf is the strings of an array; false if it holds others too, or is none.
func stringsOf(v *hujson.Value) (list []string, ok bool) {
	if v == nil {
		return nil, false
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	for i := range a.Elements {
		if t, isString := stringOf(&a.Elements[i]); isString {
			list = append(list, t)
		} else {
			ok = false
		}
	}
	return list, ok
}

// forbidden says why the host's settings keep a server back, if they do.
func (s *scan) forbidden(r row, d definition) refusal {
	p := &s.claude
	at := r.host == claudeCode
	if at || s.env.Getenv("CLAUDECODE") != "" {
		if bad := p.withheld(d, at && r.scope == "managed", s.env.Getenv); bad != (refusal{}) {
			return bad
		}
	}
	switch {
	case r.host == gemini:
		return s.gemini.forbid(d.Name)
	case r.host == qwen:
		return s.qwen.forbid(d.Name)
	case r.host == amp:
		return s.amp.forbid(d)
	case r.host == codex:
		return s.codexForbids(d)
	case r.form.access && r.host != own: // a file that MCP_BRIDGE_CONFIG lists needs nobody else's word
		return s.codeAccess(r.host, d.Source.Path)
	case !at:
		return refusal{}
	}
	if slices.Contains(reserved, d.Name) {
		return refusal{"Claude Code keeps this name for a server of its own and skips it", "give it another name"}
	}
	if r.scope == pluginScope {
		return p.pluginForbidden()
	}
	if p.pluginsOnly != nil && r.scope != "managed" {
		return refusal{"Claude Code's administrator allows only servers of plugins, in " + p.pluginsOnly.String(), "ask the administrator"}
	}
	return refusal{}
}

// withheld says what the settings keep back of any scope's servers. The allow list isn't for those of the administrator.
func (p *policy) withheld(d definition, managed bool, getenv func(string) string) refusal {
	const ask = "ask the administrator"
	switch {
	case p.blind != nil:
		return blindTo(claudeCode, *p.blind)
	case p.exclusive != nil && !managed:
		return refusal{"Claude Code's administrator allows only the servers of " + p.exclusive.String(), ask}
	}
	for _, r := range p.denied {
		if r.name == d.Name || r.meets(d, getenv) {
			return refusal{"Claude Code's settings deny it, in " + r.source.String(), "take it out of deniedMcpServers there to use it"}
		}
	}
	if p.allowedSet == nil || managed || p.allows(d, getenv) {
		return refusal{}
	}
	return refusal{"Claude Code's settings don't allow it: it is not in allowedMcpServers of " + p.allowedSet.String(), "add it there to use it"}
}

// blindTo is why no server is used of a host whose administrator's rules can't be read, or mean nothing.
func blindTo(host string, rules Source) refusal {
	return refusal{"it can't be told whether " + host + "'s administrator allows it: " + rules.String() + " can't be used", "correct that file"}
}

// allows says whether the allow list has a server. Names count only while the list has no rule for what the server is.
func (p *policy) allows(d definition, getenv func(string) string) bool {
	byKind := slices.ContainsFunc(p.allowed, func(r rule) bool {
		return d.Transport == Stdio && r.command != nil || d.Transport != Stdio && r.url != ""
	})
	return slices.ContainsFunc(p.allowed, func(r rule) bool {
		if byKind {
			return r.meets(d, getenv)
		}
		return r.name != "" && r.name == d.Name && d.Source.Scope != pluginScope // their names are none that the list takes
	})
}

// meets says whether a rule is about the command line or the URL of a server, as it is written or as it is filled in.
func (r rule) meets(d definition, getenv func(string) string) bool {
	if d.Transport != Stdio {
		return r.url != "" && (wildcard(r.url, d.URL) || wildcard(r.url, d.address))
	}
	if r.command == nil {
		return false
	}
	expanded := expand(r.command, getenv)
	argv := append([]string{d.Command}, d.Args...)
	return slices.Equal(r.command, argv) || slices.Equal(expanded, argv) || slices.Equal(r.command, d.written) || slices.Equal(expanded, d.written)
}

// wildcard says whether all of a text is as a pattern, in which * stands for anything. Case counts for nothing: hosts have none.
func wildcard(pattern, text string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	rest, ok := strings.CutPrefix(strings.ToLower(text), parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// expand fills in variables in the way of Claude Code. One that isn't set and has no default stays as it is.
func expand(argv []string, getenv func(string) string) []string {
	out := make([]string, 0, len(argv))
	for _, a := range argv {
		out = append(out, braces.ref.ReplaceAllStringFunc(a, func(ref string) string {
			m := braces.ref.FindStringSubmatch(ref)
			if v := getenv(m[1]); v != "" {
				return v
			}
			if m[2] != "" {
				return m[3]
			}
			return ref
		}))
	}
	return out
}
