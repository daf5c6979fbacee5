// Package discovery finds the MCP servers that the user has already configured for other programs
// (hosts). It only reads: it starts nothing, opens no socket and writes no file, and it takes the
// file system as an fs.FS.
//
// Every entry that it finds is either a Server, which may be started as it stands, or a Problem,
// which says why not and what to do about it. A host's own rules are kept host by host: what the
// host denies, disables or has not approved is a Problem. A file that can't be read or parsed is
// one Problem and hides nothing but itself and what only it names, such as Claude Code's plugins
// and VS Code's profiles. There are two exceptions: while an administrator's rules, or Gemini CLI's
// list of trusted folders, can't be read, the servers under those rules are Problems.
package discovery

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/hosts"
)

// The words that discovery shares with the descriptions of hosts.
type (
	Server    = config.Server
	Env       = config.Env
	Secret    = config.Secret
	Asked     = config.Asked
	Source    = config.Source
	Problem   = config.Problem
	State     = config.State
	Transport = config.Transport
	OAuth     = config.OAuth
	Filter    = config.Filter
)

// The states of config.
const (
	Broken     = config.Broken
	Exposed    = config.Exposed
	Invalid    = config.Invalid
	Disabled   = config.Disabled
	Denied     = config.Denied
	Unapproved = config.Unapproved
	Unusable   = config.Unusable
	Shadowed   = config.Shadowed
	Duplicate  = config.Duplicate
	Itself     = config.Itself
	New        = config.New
)

// The transports of config.
const (
	Stdio = config.Stdio
	HTTP  = config.HTTP
	SSE   = config.SSE
)

// Listed is the scope of what ConfigPaths lists.
const Listed = config.Listed

// IsSecretName reports whether a secret may have this name.
func IsSecretName(name string) bool { return config.IsSecretName(name) }

// SetSecret is what to type for a secret that isn't set.
func SetSecret(name string) string { return config.SetSecret(name) }

// Hosts returns how many programs there are whose files are looked at, the bridge not counted.
func Hosts() int { return len(hosts.All) - 1 }

// Scan reads every file there is for env and reports what it found; it never fails as a whole. The
// root of fsys is the root of the file system, so that /etc/x is read as etc/x, and on windows C:\x
// as C:/x; Root is the real one. Scan reads a bounded part of a file, and only regular files, each
// once; it keeps nothing, and may be called concurrently.
//
// The first file that defines a name wins: ConfigPaths, then the hosts' files, those of the user's
// own before those of a project's, so that a project's server never takes the place of the user's
// own. What can't be used doesn't count, unless its host would use it: then that host's further
// entries of the name don't count either.
func Scan(fsys fs.FS, env Env) Catalog { return newScan(fsys, env, nil).run() }

// scan is one run of Scan.
type scan struct {
	*config.Reader
	rules map[string]config.Rules // by host

	servers      []Server
	byName       map[string]int       // index in servers
	byDefinition map[string]int       // by identity: index in servers of the first
	held         map[[2]string]Source // host and name → the entry that this host uses and we can't
	candidates   []Candidate          // nil: none are kept
	refused      map[int]config.Entry // index in Problems → the entry that isn't used there
}

func newScan(fsys fs.FS, env Env, memory *config.Memory) *scan {
	r := config.NewReader(fsys, env, hosts.Dirs(), memory)
	return &scan{Reader: r, rules: map[string]config.Rules{}, byName: map[string]int{},
		byDefinition: map[string]int{}, held: map[[2]string]Source{}, refused: map[int]config.Entry{}}
}

func (s *scan) run() Catalog {
	if s.Env.Home == "" {
		s.Problem(Source{Host: config.Own, Scope: "user", Path: "~"}, "",
			"the home directory is not known, so nothing below it was looked for", "set HOME")
	}
	for _, h := range hosts.All {
		if h.Rules != nil {
			s.rules[h.Name] = h.Rules(s.Reader)
		}
	}
	for _, p := range s.Env.ConfigPaths {
		s.listed(p)
	}
	if s.Env.OnlyListed {
		return s.finish()
	}
	for _, ofProject := range []bool{false, true} {
		for _, h := range hosts.All {
			for i := range h.Files {
				if h.Files[i].InProject() == ofProject {
					s.host(h, &h.Files[i])
				}
			}
		}
	}
	hosts.LookForUnread(s.Reader)
	return s.finish()
}

// paths returns the paths of a host's file.
func (s *scan) paths(h *config.Host, f *config.File) []string {
	paths := s.Expand(f.Paths)
	if more := s.rules[h.Name].Paths; more != nil {
		paths = append(paths, more(f.Scope)...)
	}
	return paths
}

// host reads one of a host's files.
func (s *scan) host(h *config.Host, f *config.File) {
	if f.Elsewhere {
		for _, g := range s.rules[h.Name].Groups(f.Scope) {
			s.entries(f, g)
		}
		return
	}
	for _, p := range s.paths(h, f) {
		if f.Approval != config.None && s.UsersOwn(h.Files, p) {
			continue // in the home directory, a project's file is the user's
		}
		files, _ := s.Sources(Source{Host: h.Name, Scope: f.Scope, Path: p}, false)
		for _, src := range files {
			if !s.Listed[src.Path] { // what the user has listed needs no host's word, and is read already
				s.file(f, src, false)
			}
		}
	}
}

// listed reads a path of MCP_BRIDGE_CONFIG, which has to be there.
func (s *scan) listed(p string) {
	f := &config.File{Scope: Listed, Format: hosts.OwnFormat}
	rest, ok := strings.CutPrefix(p, "~")
	if ok && s.Env.Home != "" && (rest == "" || rest[0] == '/' || s.Windows && rest[0] == '\\') {
		p = s.Env.Home + rest
	}
	abs := s.Clean(p)
	src := Source{Host: config.Own, Scope: Listed, Path: p}
	if p == "" {
		return
	}
	if abs == "" {
		s.Problem(src, "", "it is not an absolute path", "write the whole path into MCP_BRIDGE_CONFIG")
		return
	}
	src.Path = s.Native(abs)
	s.Listed[src.Path] = true
	if info, err := s.Stat(abs); err == nil && info.IsDir() {
		src.Path = s.Join(src.Path, "*.json")
	}
	for _, h := range hosts.All { // a project's file is read as its host does, without asking for its word
		for _, g := range h.Files {
			if f.Host == "" && g.InProject() && slices.Contains(s.Expand(g.Paths), src.Path) {
				f.Format, f.Host = g.Format, h.Name
			}
		}
	}
	files, _ := s.Sources(src, true)
	for _, file := range files {
		s.Listed[file.Path] = true
		s.file(f, file, true)
	}
}

// maxEntries bounds the servers of one file: a catalog is for people and models to read.
const maxEntries = 1000

// file reads one file and all its entries.
func (s *scan) file(f *config.File, src Source, required bool) {
	d := s.Load(src, f.Format.Strict, required)
	if !d.There {
		return
	}
	if f.Format.Groups != nil {
		for _, g := range f.Format.Groups(s.Reader, src, d.Root) {
			s.entries(f, g)
		}
		return
	}
	key, foreign := f.Format.Key, f.Format.Foreign
	entries, there := s.Servers(src, d.Root, key)
	s.entries(f, config.Group{Source: src, Entries: entries})
	if !there && !d.Root.Get(foreign).Is("nothing") {
		s.Problem(src, "", fmt.Sprintf(`it has "%s" but no "%s", which is the only one that %s reads`,
			foreign, key, src.Host), `rename it to "`+key+`"`)
	}
}

// entries reads every entry of a group. Of two with one name the last counts.
func (s *scan) entries(f *config.File, g config.Group) {
	members := g.Entries
	if len(members) > maxEntries {
		s.Problem(g.Source, "", fmt.Sprintf("it has %d servers, and no more than %d are read from one file: "+
			"the last were left out", len(members), maxEntries), "split it, and take out what isn't used")
		members = members[:maxEntries]
	}
	last := map[string]int{}
	for i, m := range members {
		last[m.Name] = i
	}
	for i, m := range members {
		if last[m.Name] != i {
			s.Problem(g.Source, config.Display(m.Name),
				"the file has this name more than once; only the last one counts",
				"give them different names")
			continue
		}
		s.entry(f, g, m)
	}
}
