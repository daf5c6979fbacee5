package discovery

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const (
	own        = "mcp-bridge"
	claudeCode = "Claude Code"
)

// A row is one source: where its files are and how its host reads them. Where is by GOOS, with linux for all that aren't
// named. It holds patterns, for places.expand; a pattern that ends in /*.json is a directory.
type row struct {
	host, scope string
	where       map[string][]string
	pick        func(*scan, *hujson.Object) []servers // nil means the objects under form.keys
	form        form
}

// servers is an object of entries and what its file says about all of them.
type servers struct {
	entries     *hujson.Object
	description string
}

// form is how a host reads its files: its dialect, and no other host's.
type form struct {
	keys     []string // of the root object's members that hold servers
	foreign  string   // a key that other hosts use for the same and that this one doesn't read
	strict   bool     // plain JSON: a file with a comment or a trailing comma is rejected whole
	typedURL bool     // an entry with a url and without a type is skipped as invalid
	switches bool     // disabled and enabled are heeded
	cwd      bool     // cwd is heeded
	nullEnv  bool     // a variable that is null is left out
	single   bool     // a file may hold one entry, named after the file
	gate     gate
	cannot   []cannot
}

// cannot is a member of an entry that the host heeds and the bridge can't.
type cannot struct {
	key     string
	refusal refusal
}

// gate is which servers of a source the host wants its user's approval for, and where that is written.
type gate int

const (
	open    gate = iota // none: the user wrote the file
	asked               // .mcp.json: Claude Code asks, and writes the answer where policy finds it
	unknown             // the host asks, and keeps the answer where it can't be read
)

// sources is every source, the first to define a name wins. What the files are and how they are read was seen in the hosts
// themselves (Claude Code) or taken from their documentation (the others).
var sources = []row{
	{claudeCode, "managed", managed("managed-mcp.json"), nil, claudeForm},
	{claudeCode, "local", all("{claude.json}"), pickLocal, claudeForm},
	{claudeCode, "project", all("{up}/.mcp.json"), nil, form{keys: claudeForm.keys, foreign: "servers", strict: true, typedURL: true, gate: asked}},
	{claudeCode, "user", all("{claude.json}"), nil, claudeForm},
	{"Claude Desktop", "user", perOS("Claude/claude_desktop_config.json"), nil,
		form{keys: []string{"mcpServers"}, foreign: "servers", strict: true, switches: true}},
	{"Cursor", "project", all("{workspace}/.cursor/mcp.json"), nil, cursorForm(unknown)},
	{"Cursor", "user", all("{home}/.cursor/mcp.json"), nil, cursorForm(open)},
	{"VS Code", "workspace", all("{workspace}/.vscode/mcp.json"), nil, codeForm(unknown)},
	{"VS Code", "user", perOS("Code/User/mcp.json"), nil, codeForm(open)},
	{"VS Code Insiders", "user", perOS("Code - Insiders/User/mcp.json"), nil, codeForm(open)},
	{"VS Code Server", "user", all("{home}/.vscode-server/data/User/mcp.json"), nil, codeForm(open)},
	{own, "user", all("{config}/mcp/servers/*.json"), nil, ownForm},
}

// claudeForm heeds neither disabled nor cwd, as Claude Code does not.
var claudeForm = form{keys: []string{"mcpServers"}, strict: true, typedURL: true}

// ownForm is of the bridge's own files: either key, or a single entry.
var ownForm = form{keys: []string{"mcpServers", "servers"}, switches: true, cwd: true, nullEnv: true, single: true, cannot: []cannot{noEnvFile}}

var (
	noEnvFile = cannot{"envFile", refusal{"its envFile is not read yet", "write the variables into its env"}}
	noSandbox = cannot{"sandboxEnabled", refusal{"VS Code runs it in a sandbox of its own, which the bridge can't do", "list it in a file of MCP_BRIDGE_CONFIG to run it without"}}
)

func cursorForm(g gate) form {
	return form{keys: []string{"mcpServers"}, foreign: "servers", switches: true, gate: g, cannot: []cannot{noEnvFile}}
}

func codeForm(g gate) form {
	return form{keys: []string{"servers"}, foreign: "mcpServers", switches: true, cwd: true, nullEnv: true, gate: g, cannot: []cannot{noEnvFile, noSandbox}}
}

func all(pattern string) map[string][]string { return map[string][]string{"linux": {pattern}} }

// perOS is a file below the directory where the system's programs keep their users' settings.
func perOS(file string) map[string][]string {
	return map[string][]string{
		"linux":   {"{config}/" + file},
		"darwin":  {"{home}/Library/Application Support/" + file},
		"windows": {"{appdata}/" + file},
	}
}

// managed is a file of Claude Code's administrator.
func managed(file string) map[string][]string {
	return map[string][]string{
		"linux":   {"/etc/claude-code/" + file},
		"darwin":  {"/Library/Application Support/ClaudeCode/" + file},
		"windows": {"C:/Program Files/ClaudeCode/" + file},
	}
}

// places are the directories that patterns are about. Paths in it are with slashes, on windows too.
type places struct {
	windows bool
	by      map[string][]string // name of the placeholder → directories, nearest first
	where   string              // the key of row.where to use
}

func newPlaces(s *scan) places {
	p := places{windows: s.env.GOOS == "windows", where: s.env.GOOS, by: map[string][]string{}}
	home, dir := p.clean(s.env.Home), p.clean(s.env.Dir)
	config, appdata, claude := p.clean(s.env.ConfigHome), p.clean(s.env.AppData), p.clean(s.env.Getenv("CLAUDE_CONFIG_DIR"))
	if home != "" {
		if config == "" {
			config = path.Join(home, ".config")
		}
		if appdata == "" {
			appdata = path.Join(home, "AppData/Roaming")
		}
		p.set("home", home)
		p.set("claude.json", path.Join(home, ".claude.json"))
		p.set("claude", path.Join(home, ".claude"))
	}
	if claude != "" {
		p.set("claude.json", path.Join(claude, ".claude.json"))
		p.set("claude", claude)
	}
	p.set("config", config)
	p.set("appdata", appdata)
	if dir != "" {
		p.by["up"] = ancestors(dir)
		p.set("workspace", dir)
		for _, d := range p.by["up"] {
			if _, err := s.stat(path.Join(d, ".git")); err == nil {
				if d != dir {
					p.by["workspace"] = append(p.by["workspace"], d)
				}
				break
			}
		}
	}
	return p
}

func (p places) set(name, dir string) {
	if dir != "" {
		p.by[name] = []string{dir}
	}
}

// clean makes a path one with slashes, cleaned; empty if it isn't absolute.
func (p places) clean(native string) string {
	if p.windows {
		native = strings.ReplaceAll(native, `\`, "/")
		if len(native) < 3 || native[1] != ':' || native[2] != '/' {
			return "" // a UNC path among them: no home of a host is there
		}
		return path.Clean(native)
	}
	if !path.IsAbs(native) {
		return ""
	}
	return path.Clean(native)
}

// native is a path as the system writes it.
func (p places) native(slashed string) string {
	if p.windows {
		return strings.ReplaceAll(slashed, "/", `\`)
	}
	return slashed
}

// ancestors is dir and every directory above it, nearest first, without the root: what lies there is nobody's project.
func ancestors(dir string) []string {
	var up []string
	for d := dir; ; d = path.Dir(d) {
		if d == "/" || d == "." || strings.HasSuffix(d, ":") || strings.HasSuffix(d, ":/") {
			return up
		}
		up = append(up, d)
	}
}

// expand is the paths that a row's patterns stand for, as the system writes them. A pattern about a place that isn't known
// stands for none.
func (p places) expand(where map[string][]string) []string {
	patterns, ok := where[p.where]
	if !ok {
		patterns = where["linux"]
	}
	var out []string
	for _, pattern := range patterns {
		rest, placed := strings.CutPrefix(pattern, "{")
		if !placed {
			out = append(out, p.native(pattern))
			continue
		}
		name, tail, _ := strings.Cut(rest, "}")
		for _, dir := range p.by[name] {
			out = append(out, p.native(dir+tail))
		}
	}
	return out
}

// row reads the files of one row.
func (s *scan) row(r row) {
	for _, p := range s.places.expand(r.where) {
		if dir, ok := strings.CutSuffix(p, s.places.native("/*.json")); ok {
			s.directory(r, dir, false)
			continue
		}
		if r.form.gate == unknown && s.usersOwn(r.host, p) {
			continue // in the home directory, a project's file is the user's
		}
		if !s.listing[p] || r.pick != nil { // what the user has listed needs no host's word
			s.file(r, p, false)
		}
	}
}

// usersOwn says whether a file is one that the user wrote for all projects.
func (s *scan) usersOwn(host, p string) bool {
	return slices.ContainsFunc(sources, func(r row) bool {
		return r.host == host && r.form.gate == open && slices.Contains(s.places.expand(r.where), p)
	})
}

// listed reads a path of MCP_BRIDGE_CONFIG, which has to be there.
func (s *scan) listed(p string) {
	r := row{host: own, scope: "MCP_BRIDGE_CONFIG", form: ownForm}
	if rest, ok := strings.CutPrefix(p, "~"); ok && s.env.Home != "" && (rest == "" || rest[0] == '/' || s.places.windows && rest[0] == '\\') {
		p = s.env.Home + rest
	}
	abs := s.places.clean(p)
	if abs == "" && !strings.HasPrefix(p, "/") && s.env.Dir != "" {
		abs = s.places.clean(s.env.Dir + "/" + p)
	}
	src := Source{Host: r.host, Scope: r.scope, Path: p}
	if p == "" {
		return
	}
	if abs == "" {
		s.problem(src, "", "it is not an absolute path, and there is no working directory that it could count from", "write the whole path into MCP_BRIDGE_CONFIG")
		return
	}
	p = s.places.native(abs)
	s.listing[p] = true
	if info, err := s.stat(abs); err == nil && info.IsDir() {
		s.directory(r, p, true)
		return
	}
	s.file(r, p, true)
}

// A catalog is for people and models to read: beyond these a file isn't one that a host wrote.
const (
	maxFiles   = 1000 // of one directory
	maxEntries = 1000 // of one file
)

// directory reads the *.json files of a directory, by name.
func (s *scan) directory(r row, dir string, required bool) {
	src := Source{Host: r.host, Scope: r.scope, Path: dir}
	names, err := s.list(dir)
	if err != nil {
		if reason, next := unreadable(err, required); reason != "" {
			s.problem(src, "", reason, next)
		}
		return
	}
	if len(names) > maxFiles {
		s.problem(src, "", "it holds more files than are read from one directory; the ones that come last by name were left out", fmt.Sprintf("keep at most %d *.json files in it", maxFiles))
		names = names[:maxFiles]
	}
	for _, name := range names {
		p := strings.TrimRight(dir, `/\`) + s.places.native("/"+name)
		if required {
			s.listing[p] = true
		} else if s.listing[p] {
			continue
		}
		s.file(r, p, required)
	}
}

// file reads one file of a row and all its entries.
func (s *scan) file(r row, p string, required bool) {
	src := Source{Host: r.host, Scope: r.scope, Path: p}
	f := s.load(src, r.form.strict, required)
	if f.root == nil {
		return
	}
	if r.pick != nil {
		for _, group := range r.pick(s, f.root) {
			s.entries(r, src, group)
		}
		return
	}
	description, _ := stringOf(get(f.root, "description"))
	found := false
	for _, key := range r.form.keys {
		group, ok := s.objectAt(src, f.root, key)
		found = found || ok
		if group != nil {
			s.entries(r, src, servers{group, description})
		}
	}
	if found {
		return
	}
	if r.form.single && (get(f.root, "command") != nil || get(f.root, "url") != nil) {
		name := strings.TrimSuffix(path.Base(strings.ReplaceAll(p, `\`, "/")), ".json")
		s.entry(r, src, name, hujson.Value{Value: f.root}, "")
		return
	}
	if r.form.single {
		s.problem(src, "", `it holds no servers: there is neither an object "mcpServers" nor a "command"`, `write {"mcpServers": {"name": {"command": "…"}}}`)
	} else if r.form.foreign != "" && get(f.root, r.form.foreign) != nil {
		s.problem(src, "", `it has "`+r.form.foreign+`" but no "`+r.form.keys[0]+`", which is the only one that `+r.host+" reads", `rename it to "`+r.form.keys[0]+`"`)
	}
}

// objectAt is the object under a key, nil if there is none to be read. It says whether the key is there at all.
func (s *scan) objectAt(src Source, o *hujson.Object, key string) (*hujson.Object, bool) {
	v := get(o, key)
	if v == nil {
		return nil, false
	}
	if n := count(o, key); n > 1 {
		s.problem(src, "", `it has "`+key+`" more than once; only the last one counts`, "merge them into one")
	}
	group, ok := v.Value.(*hujson.Object)
	if !ok && kind(v) != "null" {
		s.problem(src, "", `its "`+key+`" is `+kind(v)+", not an object", `write {"`+key+`": {"name": {"command": "…"}}}`)
	}
	return group, true
}

// entries reads every entry of an object. Of two with one name the last counts, as in every JSON reader of a host.
func (s *scan) entries(r row, src Source, group servers) {
	members := group.entries.Members
	if len(members) > maxEntries {
		s.problem(src, "", fmt.Sprintf("it has %d servers, more than are read from one file; those after the first %d were left out", len(members), maxEntries),
			"split it, and take out what isn't used")
		members = members[:maxEntries]
	}
	last := map[string]int{}
	for i, m := range members {
		last[nameOf(m)] = i
	}
	for i, m := range members {
		name := nameOf(m)
		if last[name] != i {
			s.problem(src, display(name), "the file has this name more than once; only the last one counts", "give them different names")
			continue
		}
		s.entry(r, src, name, m.Value, group.description)
	}
}
