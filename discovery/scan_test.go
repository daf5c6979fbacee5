package discovery

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shop is the user of testdata/all-hosts.txt.
func shop() Env {
	env := linux()
	env.Dir = "/w/shop"
	env.ConfigPaths = []string{"~/extra"}
	return env
}

func allHosts(t testing.TB) tree {
	_, files := archive(t, "testdata/all-hosts.txt")
	return files
}

func TestAllHosts(t *testing.T) {
	golden(t, "all-hosts", full(Scan(allHosts(t).fs(), shop())))
}

// Nothing that may be a secret is in a problem, or in a server that is printed by accident. Every
// value that is one in testdata has "secret" in it, and each file is also broken at every byte, for
// the parser's words.
func TestSecrets(t *testing.T) {
	files := allHosts(t)
	advice := strings.NewReplacer("mcp-bridge secret set NAME", "", "${secret:NAME}", "")
	look := func(c Catalog) {
		for _, p := range c.Problems {
			if strings.Contains(advice.Replace(p.String()), "secret") {
				t.Errorf("a problem tells a secret: %s", p)
			}
		}
		for _, s := range c.Servers {
			if strings.Contains(s.String()+s.LogValue().String(), "secret") {
				t.Errorf("a server tells a secret: %s", s)
			}
		}
	}
	look(Scan(files.fs(), shop()))
	for p, data := range files {
		if !strings.Contains(data, "secret") {
			continue
		}
		for i := range data {
			broken := []string{data[:i], data[:i] + `\x` + data[i:], data[:i] + "\"" +
				data[i:]}[i%3] // each of them at a third of the bytes
			look(Scan(tree{p: broken}.fs(), shop()))
		}
	}
}

// A broken file hides only itself: whichever file is broken, every server that another file defines
// is still used, or is still a problem, except what Claude Code's approvals and the
// administrator's rules say, for Gemini CLI's trust, and for files that another one names.
func TestBrokenFileHidesOnlyItself(t *testing.T) {
	files := allHosts(t)
	whole := Scan(files.fs(), shop())
	for broken := range files {
		if strings.HasSuffix(broken, "HEAD") {
			continue
		}
		t.Run(broken, func(t *testing.T) {
			c := Scan(files.with(broken, `{"mcpServers": {"`).fs(), shop())
			if !slices.ContainsFunc(c.Problems, func(p Problem) bool {
				return p.Server == "" &&
					p.Source.Path == broken
			}) {
				t.Errorf("it is no problem")
			}
			for _, s := range whole.Servers {
				if s.Source.Host == gemini && strings.HasSuffix(broken, "trustedFolders.json") {
					continue
				}
				defined := append([]Source{s.Source}, s.Also...)
				if slices.ContainsFunc(defined, func(d Source) bool {
					return d.Path != broken && !slices.Contains([]string{"project", pluginScope, "profile"},
						d.Scope)
				}) &&
					!slices.ContainsFunc(c.Servers, func(o Server) bool { return o.Name == s.Name }) {
					t.Errorf("%s is lost", s)
				}
			}
		})
	}
}

// The order in which a host happens to write its entries changes nothing.
func TestOrderOfEntries(t *testing.T) {
	files := allHosts(t)
	want := full(Scan(files.fs(), shop()))
	random := rand.New(rand.NewPCG(4, 5))
	for range 20 {
		shuffled := maps.Clone(files)
		for p, data := range files {
			v, err := hujson.Parse([]byte(data))
			if err != nil {
				continue
			}
			standard := v.IsStandard()
			v.Minimize()
			for x := range v.All() {
				if o, ok := x.Value.(*hujson.Object); ok {
					random.Shuffle(len(o.Members), func(i, j int) {
						o.Members[i], o.Members[j] = o.Members[j],
							o.Members[i]
					})
				}
			}
			if shuffled[p] = string(v.Pack()); !standard {
				shuffled[p] = "// once more\n" + shuffled[p]
			}
		}
		if d := cmp.Diff(want, full(Scan(shuffled.fs(), shop()))); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	}
}

func TestCatalogsAreApart(t *testing.T) {
	files := allHosts(t)
	a, b := Scan(files.fs(), shop()), Scan(files.fs(), shop())
	if d := cmp.Diff(full(a), full(b)); d != "" {
		t.Fatalf("two scans differ:\n%s", d)
	}
	a.Servers[0].Name = "changed"
	if b.Servers[0].Name == "changed" {
		t.Error("they share their servers")
	}
}

func TestStrings(t *testing.T) {
	src := Source{Host: "Cursor", Scope: "user", Path: "/home/u/.cursor/mcp.json"}
	for got, want := range map[string]string{
		src.String(): "/home/u/.cursor/mcp.json (Cursor, user)",
		Source{Host: "a", Scope: "b", Path: "/x\n"}.String(): `"/x\n" (a, b)`,
		Server{Name: "s", Env: map[string]string{"K": "secret"},
			Source: src}.String(): `"s" of /home/u/.cursor/mcp.json (Cursor, user)`,
		Problem{Source: src, Server: "s", Reason: "r",
			Next: "n"}.String(): "server s in /home/u/.cursor/mcp.json (Cursor, user): r; n",
		Problem{Source: src, Reason: "r"}.String(): "/home/u/.cursor/mcp.json (Cursor, user): r",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzScan: whatever a file holds, Scan returns, every entry is a server or a problem, and names
// are unique.
func FuzzScan(f *testing.F) {
	seeds := slices.Collect(maps.Values(allHosts(f)))
	seeds = append(seeds, `{"command": "sh", "args": ["-c", "exec mcp-bridge"]}`, "\ufeff{}", "\xff\xfe",
		`{"servers":{"":{},"":7}}`,
		`{"mcpServers":{"a":{"command":"x","env":{"A":1,"B":null}},"a":null}}`, `{"a":/*`, `[[[[`)
	if len(seeds) < 10 {
		f.Fatal("there are no seeds")
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	paths := []string{
		"home/u/.claude.json", "w/shop/.mcp.json", "home/u/.claude/settings.json",
		"home/u/.config/Claude/claude_desktop_config.json",
		"home/u/.cursor/mcp.json", "home/u/.config/Code/User/mcp.json",
		"home/u/.config/mcp/servers/x.json", "home/u/extra/y.json",
		"etc/claude-code/managed-mcp.json", "etc/claude-code/managed-settings.json",
		"home/u/.lmstudio/mcp.json", "home/u/.gemini/settings.json",
		"home/u/.config/opencode/opencode.json", "home/u/.config/zed/settings.json",
		"home/u/.config/crush/crush.json", "home/u/.codex/config.toml",
		"home/u/.config/goose/config.yaml", "home/u/.continue/config.yaml",
	}
	rules := []string{ // and files that others name
		"home/u/.claude/plugins/installed_plugins.json",
		"home/u/.config/Code/User/globalStorage/storage.json", "home/u/.config/Code/User/settings.json",
		"home/u/.claude/plugins/known_marketplaces.json", "home/u/.gemini/mcp-server-enablement.json",
		"home/u/.gemini/trustedFolders.json", "plugin/.mcp.json", "plugin/.claude-plugin/plugin.json",
		"home/u/.config/Code/User/profiles/p/mcp.json",
	}
	fixed := tree{
		"/home/u/.claude/plugins/installed_plugins.json": `{"plugins": {"p@m": [{"installPath": ` +
			`"/plugin"}]}}`,
		"/home/u/.claude/plugins/known_marketplaces.json":      `{"m": {"installLocation": "/m"}}`,
		"/m/.claude-plugin/marketplace.json":                   `{"plugins": [{"name": "p"}]}`,
		"/home/u/.claude/settings.json":                        `{"enabledPlugins": {"p@m": true}}`,
		"/home/u/.config/Code/User/globalStorage/storage.json": `{"userDataProfiles": [{"location": "p"}]}`,
		"/home/u/.config/Code/User/settings.json":              `{}`,
	}.fs()
	f.Fuzz(func(t *testing.T, data []byte) {
		everywhere := fstest.MapFS{}
		for _, p := range paths {
			everywhere[p] = &fstest.MapFile{Data: data}
			everyEntry(t, Scan(fstest.MapFS{p: {Data: data}}, shop()), "/"+p, data)
		}
		for _, p := range rules {
			everywhere[p] = &fstest.MapFile{Data: data}
		}
		sound(t, Scan(everywhere, shop()))
		maps.Copy(everywhere, fixed)
		sound(t, Scan(everywhere, shop()))
	})
}

// sound checks what holds of every catalog.
func sound(t *testing.T, c Catalog) {
	t.Helper()
	for i := 1; i < len(c.Servers); i++ {
		if c.Servers[i-1].Name >= c.Servers[i].Name {
			t.Errorf("%q comes before %q", c.Servers[i-1].Name, c.Servers[i].Name)
		}
	}
	for _, s := range c.Servers {
		if s.Source.Host == "" || (s.Transport == Stdio) == (s.Command == "") ||
			strings.Contains(s.Command, "\x00") || (s.Transport == Stdio) != (s.URL == "") {
			t.Errorf("server %+v can't be started", s)
		}
	}
	for _, p := range c.Problems {
		if p.Reason == "" || config.Show(p.String()) != p.String() {
			t.Errorf("problem %q can't be shown", p.String())
		}
	}
}

// everyEntry checks a scan of one file against what encoding/json finds in it.
func everyEntry(t *testing.T, c Catalog, path string, data []byte) {
	var root map[string]json.RawMessage
	if json.Unmarshal(data, &root) != nil || len(c.Sources) == 0 {
		return // a file that can't be read is a problem as a whole
	}
	keys := []string{"mcpServers"}
	switch {
	case strings.HasSuffix(path, "settings.json"), strings.HasSuffix(path,
		"crush.json"), strings.HasSuffix(path, "opencode.json"), !strings.HasSuffix(path, ".json"):
		return
	case strings.Contains(path, "/Code/"):
		keys = []string{"servers"}
	case strings.Contains(path, "/servers/"), strings.Contains(path, "/extra/"):
		keys = []string{"mcpServers", "servers"}
	}
	for _, key := range keys {
		var entries map[string]json.RawMessage
		if json.Unmarshal(root[key], &entries) != nil {
			continue
		}
		for name := range entries {
			if !slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Name == name }) &&
				!slices.ContainsFunc(c.Problems,
					func(p Problem) bool { return p.Server == config.Display(name) }) {
				t.Errorf("%s: entry %q is lost", path, name)
			}
		}
	}
}
