package discovery

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/hosts"
)

// Names and limits as the tests need them.
const (
	own, claudeCode, codex, gemini, copilot = "mcp-bridge", "Claude Code", "Codex", "Gemini CLI",
		"Copilot CLI"
	pluginScope = config.PluginScope

	maxSmall, maxMembers, manyFiles = 256 << 10, 1 << 13, 1000
)

// row is a file of a host.
type row struct {
	host string
	*config.File
}

// rows returns all files of all hosts.
func rows() (all []row) {
	for _, h := range hosts.All {
		for i := range h.Files {
			all = append(all, row{h.Name, &h.Files[i]})
		}
	}
	return all
}

// opened returns a scan that has read the hosts' rules, and the paths of a row.
func opened(fsys fs.FS, env Env) (*scan, func(row) []string) {
	s := newScan(fsys, env, nil)
	s.run()
	return s, func(r row) []string {
		if r.Elsewhere && r.Paths.Linux == nil {
			return nil
		}
		h := &config.Host{Name: r.host}
		return s.paths(h, r.File)
	}
}

// tree is a file system by path, as the system writes it.
type tree map[string]string

func (f tree) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for p, data := range f {
		m[strings.TrimPrefix(strings.ReplaceAll(p, `\`, "/"), "/")] = &fstest.MapFile{Data: []byte(data),
			Mode: 0o600}
	}
	return m
}

// with is a copy with one file more or another.
func (f tree) with(p, data string) tree {
	c := maps.Clone(f)
	c[p] = data
	return c
}

// linux is the user u, who works in the repository /w/p.
func linux(vars ...string) Env {
	return Env{Home: "/home/u", Dir: "/w/p", GOOS: "linux", Getenv: getenv(vars...),
		Executable: "/opt/bin/mcp-bridge-1.0"}
}

// getenv is an environment of "K=V" words.
func getenv(vars ...string) func(string) string {
	return func(key string) string {
		for _, kv := range vars {
			if k, v, _ := strings.Cut(kv, "="); k == key {
				return v
			}
		}
		return ""
	}
}

// brief renders servers as "name: command args" with what is beside it, and problems as "name:
// reason" or "path: reason".
func brief(c Catalog) (servers, problems []string) {
	for _, s := range c.Servers {
		line := s.Name + ": " + strings.Join(append([]string{s.Command}, s.Args...), " ")
		if s.Transport != Stdio {
			line = s.Name + ": " + string(s.Transport) + " " + s.URL
		}
		for _, k := range slices.Sorted(maps.Keys(s.Env)) {
			line += " " + k + "=" + s.Env[k]
		}
		for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
			line += " " + k + ": " + s.Headers[k]
		}
		if s.HeadersHelper != "" {
			line += " helper " + s.HeadersHelper
		}
		if s.BearerTokenEnv != "" {
			line += " bearer " + s.BearerTokenEnv
		}
		if fmt.Sprint(s.OAuth) != fmt.Sprint(OAuth{}) {
			line += fmt.Sprintf(" %+v", s.OAuth)
		}
		if s.Tools.Allow != nil {
			line += fmt.Sprintf(" allow %q", s.Tools.Allow)
		}
		if s.Tools.Deny != nil {
			line += fmt.Sprintf(" deny %q", s.Tools.Deny)
		}
		for _, l := range s.Tools.Rules {
			line += fmt.Sprintf(" rules %s %v", l.Prefix, l.Rules)
		}
		if s.Socket != "" {
			line += " at " + s.Socket
		}
		if s.Dir != "" {
			line += " in " + s.Dir
		}
		servers = append(servers, line)
	}
	for _, p := range c.Problems {
		name := p.Server
		if name == "" {
			name = p.Source.Path
		}
		problems = append(problems, name+": "+p.Reason)
	}
	return servers, problems
}

func check(t *testing.T, c Catalog, servers, problems []string) {
	t.Helper()
	gotServers, gotProblems := brief(c)
	if d := cmp.Diff(servers, gotServers, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("servers (-want +got):\n%s", d)
	}
	problems = slices.Sorted(slices.Values(problems)) // no order of them is promised
	slices.Sort(gotProblems)
	if d := cmp.Diff(problems, gotProblems, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

// A scanCase is what is to be found in some files.
type scanCase struct {
	name     string
	files    tree
	servers  []string
	problems []string
}

// full renders everything but the values of variables.
func full(c Catalog) string {
	var b strings.Builder
	for _, s := range c.Servers {
		if s.Transport == Stdio {
			fmt.Fprintf(&b, "server %q\n  command %q %q\n", s.Name, s.Command, s.Args)
		} else {
			fmt.Fprintf(&b, "server %q\n  %s %s\n", s.Name, s.Transport, s.URL)
		}
		for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
			fmt.Fprintf(&b, "  header %s\n", k)
		}
		for _, l := range s.Tools.Rules {
			fmt.Fprintf(&b, "  tools %s: %v\n", l.Prefix, l.Rules)
		}
		if s.Tools.Allow != nil || s.Tools.Deny != nil {
			fmt.Fprintf(&b, "  tools %q but %q\n", s.Tools.Allow, s.Tools.Deny)
		}
		if keys := slices.Sorted(maps.Keys(s.Env)); len(keys) > 0 {
			fmt.Fprintf(&b, "  env %s\n", strings.Join(keys, " "))
		}
		if s.Dir != "" {
			fmt.Fprintf(&b, "  dir %s\n", s.Dir)
		}
		if s.Description != "" {
			fmt.Fprintf(&b, "  description %s\n", s.Description)
		}
		fmt.Fprintf(&b, "  from %s\n", s.Source)
		for _, a := range s.Also {
			fmt.Fprintf(&b, "  also %s\n", a)
		}
	}
	var problems []string
	for _, p := range c.Problems {
		problems = append(problems, fmt.Sprintf("problem, %s: %s\n", p.State, p))
	}
	slices.Sort(problems)
	b.WriteString(strings.Join(problems, ""))
	for _, s := range c.Sources {
		fmt.Fprintf(&b, "read %s\n", s)
	}
	return b.String()
}

// archive reads a tree from a file: a line "-- path --" before what each file holds. What comes
// before the first one is returned by lines.
func archive(t testing.TB, name string) (about []string, files tree) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files = tree{}
	current := ""
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok {
			current = strings.TrimSuffix(strings.TrimSpace(rest), " --")
			files[current] = ""
		} else if current != "" {
			files[current] += line
		} else {
			about = append(about, strings.TrimSpace(line))
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no files", name)
	}
	return about, files
}

// failing is a file system in which opening some files fails.
type failing struct {
	fs.FS
	errs map[string]error
}

func (f failing) Open(name string) (fs.File, error) {
	if err, ok := f.errs[name]; ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f.FS.Open(name)
}

func quoteJSON(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}
