// Package install puts the bridge's own entry into the files of hosts, and takes it out again.
//
// A Plan says which files would hold what. Nothing is written before Write, which replaces each
// file at once and only if it still is as it was read, with a backup beside it and a note in the
// Journal, from which Undo plans the way back. A file that is a link, doesn't parse or belongs to
// somebody else is refused. The package starts no program and opens no connection.
package install

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
	"github.com/mcp-bridge/mcp-bridge/discovery/hosts"
)

// Config is what plans depend on.
type Config struct {
	FS       fs.FS             // whose root is that of the file system
	Env      discovery.Env     // where the hosts' files are
	Command  []string          // how a host starts the bridge
	Vars     []string          // the bridge's variables that the entry sets, as NAME=VALUE
	Ask      bool              // the host is to ask before it calls a tool
	Project  bool              // plan for the files of the project, not the user's
	Show     bool              // plans are only shown, so that links and read-only files are planned for too
	LookPath func(string) bool // reports whether a command is on PATH
}

// An Installer plans.
type Installer struct {
	cfg    Config
	reader *config.Reader
	own    []discovery.Problem // the bridge's entries
	broken []discovery.Problem // files that can't be read
}

// New returns an Installer for what the file system holds now.
func New(cfg Config) *Installer {
	in := &Installer{cfg: cfg, reader: config.NewReader(cfg.FS, cfg.Env, hosts.Dirs(), nil)}
	for _, p := range discovery.Scan(cfg.FS, cfg.Env).Problems {
		switch {
		case p.State == discovery.Itself:
			in.own = append(in.own, p)
		case p.State == discovery.Broken && p.Server == "":
			in.broken = append(in.broken, p)
		}
	}
	return in
}

// A Host is one that the bridge can be installed into.
type Host struct {
	ID, Name string
	Found    bool // it is on this machine
	host     *config.Host
}

// Known returns all hosts that the bridge can be installed into. It looks for none of them.
func Known() (all []Host) {
	for _, h := range hosts.All {
		if h.Install != nil {
			all = append(all, Host{ID: h.Install.ID, Name: h.Name, host: h})
		}
	}
	return all
}

// Hosts returns Known, and which of them are on this machine.
func (in *Installer) Hosts() []Host {
	all := Known()
	for i := range all {
		all[i].Found = in.found(all[i].host)
	}
	return all
}

func (in *Installer) found(h *config.Host) bool {
	if h.Install.Program != "" && in.cfg.LookPath != nil && in.cfg.LookPath(h.Install.Program) {
		return true
	}
	marks := in.reader.Expand(h.Install.Marks)
	if len(marks) == 0 {
		_, paths := in.usersFiles(h)
		for _, p := range paths {
			marks = append(marks, filepath.Dir(p))
		}
	}
	return slices.ContainsFunc(marks, func(p string) bool {
		_, err := in.reader.Stat(p)
		return err == nil
	})
}

// usersFiles returns the files that may take the user's entry, in the order of preference.
func (in *Installer) usersFiles(h *config.Host) (format *config.Format, paths []string) {
	for _, scope := range h.Install.User {
		for i := range h.Files {
			if h.Files[i].Scope == scope {
				format = h.Files[i].Format
				paths = append(paths, in.reader.Expand(h.Files[i].Paths)...)
			}
		}
	}
	return format, paths
}

// place returns the file that takes the entry, and its scope.
func (in *Installer) place(h *config.Host) (format *config.Format, scopes []string, path string, err error) {
	var paths []string
	if in.cfg.Project {
		for i := range h.Files {
			if h.Files[i].Scope == h.Install.Project {
				format, paths = h.Files[i].Format, in.projectPaths(h.Files[i].Paths)
			}
		}
		scopes = []string{h.Install.Project}
	} else {
		format, paths = in.usersFiles(h)
		scopes = h.Install.User
	}
	if len(paths) == 0 {
		return nil, nil, "", &edit.Error{Reason: "it has no file of that scope", Next: "name another scope"}
	}
	for _, p := range paths {
		if _, err := in.reader.Stat(p); err == nil {
			return format, scopes, p, nil
		}
	}
	if made := in.reader.Expand(h.Install.New); len(made) > 0 && !in.cfg.Project {
		return format, scopes, made[0], nil
	}
	if in.cfg.Project { // the plainest, such as opencode.json
		return format, scopes, slices.MinFunc(paths, func(a, b string) int { return len(a) - len(b) }), nil
	}
	return format, scopes, paths[0], nil
}

// projectPaths returns the paths of a project's file in the working directory.
func (in *Installer) projectPaths(p config.Paths) (paths []string) {
	dir := in.reader.Clean(in.cfg.Env.Dir)
	for _, path := range in.reader.Expand(p) {
		if in.reader.Holds(dir, in.reader.Clean(path)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// A Plan is what is done for one host. Without Files there is nothing to do.
type Plan struct {
	Host    string
	Files   []*File  // that of the entry first
	Already string   // under which name the host has the bridge
	Lacks   []string // of Config.Vars, those of the bridge's that this entry doesn't set
	Next    string   // what the user does in the host then
	Command []string // the host's own command that would add the same entry; often nil
}

// Plan returns what it takes to put the bridge into a host.
func (in *Installer) Plan(h Host) (Plan, error) {
	p := Plan{Host: h.Name, Next: h.host.Install.Next}
	format, scopes, path, err := in.place(h.host)
	if err != nil {
		return p, fmt.Errorf("%s: %w", h.Name, err)
	}
	f, err := in.open(path)
	if err == nil {
		err = in.strict(format, f)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", h.Name, err)
	}
	entry := in.entry(format, h.host.Install)
	changes, already, err := in.changes(h.host, format, scopes, f, entry)
	if err != nil {
		return p, fmt.Errorf("%s: %s: %w", h.Name, config.Show(path), err)
	}
	if p.Already = already; already != "" {
		p.Lacks = in.lacking(h.host, format, f, already)
	}
	if already != "" && len(changes) == 0 {
		return p, nil
	}
	f.host, f.scope = h.ID, scopes[0]
	p.Files = append(p.Files, f)
	for _, c := range changes {
		if err := f.Change(c); err != nil {
			return p, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	if !in.cfg.Project && already == "" {
		p.Command = in.command(h.host.Install, entry)
		if err := in.allow(h, &p); err != nil {
			return p, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return p, nil
}

func (in *Installer) open(path string) (*File, error) {
	if in.cfg.Show {
		return look(path)
	}
	return Open(path)
}

// strict refuses a file that the host itself would reject.
func (in *Installer) strict(format *config.Format, f *File) error {
	if !format.Strict || len(f.old) == 0 {
		return nil
	}
	if _, standard, bad := config.Parse(f.Path, f.old); !bad.Refused() && !standard {
		return &FileError{f.Path, "has a comment or a trailing comma, and the host rejects the whole file",
			"take it out"}
	}
	return nil
}

// changes returns how the entry gets into a file, or under which name the bridge is there.
func (in *Installer) changes(h *config.Host, format *config.Format, scopes []string, f *File,
	entry config.Object) (changes []edit.Change, already string, err error) {
	root, err := edit.Parse(f.Path, f.old)
	if err != nil {
		return nil, "", err
	}
	at := append(keyOf(h, format, root), config.Own)
	is, _ := edit.At(root, at)
	for _, p := range in.own {
		if p.Source.Host != h.Name || p.Source.Path != f.Path || !slices.Contains(scopes, p.Source.Scope) {
			continue
		}
		if p.Server != config.Own || in.startable(format, is) {
			return nil, p.Server, nil
		}
		// The program is gone from where the entry has it; all else stays as the user has it.
		for _, name := range []string{format.Program.Command, "args"} {
			if v := entry.Get(name); !v.Is("nothing") {
				changes = append(changes, edit.Change{Path: append(slices.Clone(at), name), Value: v})
			}
		}
		return changes, p.Server, nil
	}
	if !is.Is("nothing") {
		return nil, "", &edit.Error{Reason: "another server has the name " + config.Own,
			Next: "give that one another name"}
	}
	return []edit.Change{{Path: at, Value: entry.Value()}}, "", nil
}

// keyOf returns the path of the entries in a file.
func keyOf(h *config.Host, format *config.Format, root config.Object) []string {
	if h.Install.Key != nil {
		return slices.Clone(h.Install.Key(root))
	}
	return []string{format.Key}
}

// lacking returns the variables of the bridge that its entry of a name doesn't set.
func (in *Installer) lacking(h *config.Host, format *config.Format, f *File, name string) (vars []string) {
	root, err := edit.Parse(f.Path, f.old)
	if err != nil {
		return nil
	}
	entry, _ := edit.At(root, append(keyOf(h, format, root), name))
	o, _ := entry.Object()
	set, _ := o.Get(format.Program.Env).Object()
	for _, v := range in.cfg.Vars {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "MCP_BRIDGE_") && set.Get(name).Is("nothing") {
			vars = append(vars, v)
		}
	}
	return vars
}

// startable reports whether the program of an entry may be there: only one with a whole path is
// looked for.
func (in *Installer) startable(format *config.Format, entry config.Value) bool {
	o, _ := entry.Object()
	v := o.Get(format.Program.Command)
	command, _ := v.Text()
	if words, ok := v.Strings(); ok && len(words) > 0 {
		command = words[0]
	}
	if in.reader.Clean(command) == "" {
		return true
	}
	_, err := in.reader.Stat(command)
	return !errors.Is(err, fs.ErrNotExist)
}

// entry returns the bridge's entry as a host writes it.
func (in *Installer) entry(format *config.Format, how *config.Install) config.Object {
	o := slices.Clone(how.Entry)
	add := func(name string, v any) {
		o = append(o, config.Member{Name: name, Value: config.Of(v)})
	}
	if format.Program.Array {
		add(format.Program.Command, in.cfg.Command)
	} else {
		add(format.Program.Command, in.cfg.Command[0])
		add("args", in.cfg.Command[1:])
	}
	var vars config.Object
	for _, v := range in.cfg.Vars {
		name, value, _ := strings.Cut(v, "=")
		vars = append(vars, config.Member{Name: name, Value: config.Of(value)})
	}
	if vars != nil {
		add(format.Program.Env, vars)
	}
	if !in.cfg.Ask && !in.cfg.Project {
		o = append(o, how.Unasked...)
	}
	return o
}

// command returns the host's own command.
func (in *Installer) command(how *config.Install, entry config.Object) []string {
	named := append(config.Object{{Name: "name", Value: config.Of(config.Own)}}, entry...)
	return how.Words(in.cfg.Command, in.cfg.Vars, edit.JSON(named.Value()))
}

// allow adds to a plan what other settings take for the host to call the tools unasked.
func (in *Installer) allow(h Host, p *Plan) error {
	for _, a := range h.host.Install.Allow {
		if in.cfg.Ask {
			return nil
		}
		path := ""
		for _, there := range slices.Backward(in.reader.Expand(a.Paths)) {
			if _, err := in.reader.Stat(there); err == nil || path == "" {
				path = there
			}
		}
		i := slices.IndexFunc(p.Files, func(f *File) bool { return f.Path == path })
		if i < 0 {
			f, err := in.open(path)
			if err != nil {
				return err
			}
			f.host, f.scope = h.ID, "settings"
			i, p.Files = len(p.Files), append(p.Files, f)
		}
		if err := p.Files[i].Change(edit.Change{Path: a.Path, Value: a.Value, Add: a.Add}); err != nil {
			return err
		}
	}
	return nil
}

// FirstPolicy is the policy that a user begins with. The .mcpb has it too.
//
//go:embed policy.toml
var FirstPolicy string

// PlanPolicy returns the file of a first policy, or nil if there is one.
func PlanPolicy(path string) (*File, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, nil
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	f.host, f.scope, f.New = config.Own, "policy", []byte(FirstPolicy)
	f.hunks = []hunk{f.hunkOf(fileChange{}, nil, f.New)}
	return f, nil
}

// marshal returns a value as JSON within an object, from which unmarshal makes it again.
func marshal(v config.Value) json.RawMessage {
	if v.Is("nothing") {
		return nil
	}
	return json.RawMessage(edit.JSON(config.Object{{Name: "v", Value: v}}.Value()))
}

func unmarshal(text json.RawMessage) config.Value {
	root, _, _ := config.Parse("v.json", text)
	return root.Get("v")
}
