package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// home is a user's home with files in it, and what is needed to install there.
type home struct {
	t       *testing.T
	dir     string
	cfg     Config
	journal *Journal
}

func newHome(t *testing.T, files map[string]string) *home {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "bin/mcp-bridge")
	h := &home{t: t, dir: dir, journal: &Journal{Verb: "install"}}
	h.journal.Dir = h.path(".local/state/mcp-bridge")
	h.cfg = Config{FS: discovery.Root(), Command: []string{program},
		Vars: []string{"MCP_BRIDGE_POLICY=" + h.path("policy.toml"), "MCP_BRIDGE_AUDIT=/a"},
		Env:  discovery.Env{Home: dir, Dir: filepath.Join(dir, "w"), GOOS: "linux", Executable: program}}
	h.write("bin/mcp-bridge", "")
	for name, text := range files {
		h.write(name, text)
	}
	return h
}

func (h *home) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *home) write(name, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.path(name), []byte(text), 0o640); err != nil {
		h.t.Fatal(err)
	}
}

// files returns what all files below the home hold, and their modes, without the journal.
func (h *home) files() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || strings.Contains(path, "/.local") {
			return err
		}
		name, _ := filepath.Rel(h.dir, path)
		if e.IsDir() {
			all[name+"/"] = ""
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[name] = info.Mode().String() + "\n" + string(text)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *home) plan(id string) (Plan, error) {
	h.t.Helper()
	in := New(h.cfg)
	all := in.Hosts()
	i := slices.IndexFunc(all, func(host Host) bool { return host.ID == id })
	if i < 0 {
		h.t.Fatalf("there is no host %s", id)
	}
	return in.Plan(all[i])
}

// install installs into a host, and returns what was shown.
func (h *home) install(id string) (shown string) {
	h.t.Helper()
	p, err := h.plan(id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range p.Files {
		shown += f.Diff()
		if err := h.journal.Write(h.t.Context(), f); err != nil {
			h.t.Fatal(err)
		}
	}
	return shown
}

// undo takes all back, and returns the first conflict.
func (h *home) undo() (conflict error) {
	h.t.Helper()
	back, err := h.journal.PlanUndo(nil, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range back {
		if r.File != nil {
			hasNoSecret(h.t, r.File.Diff())
		}
		if r.Conflict != nil {
			conflict = r.Conflict
		} else if err := h.journal.Undo(h.t.Context(), r); err != nil {
			h.t.Fatal(err)
		}
	}
	return conflict
}

func hasNoSecret(t *testing.T, shown string) {
	t.Helper()
	if strings.Contains(shown, "SECRET") {
		t.Errorf("a secret is shown:\n%s", shown)
	}
}

// realFiles returns the files of testdata/hosts.txt by host.
func realFiles(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]string{}
	for _, part := range strings.Split(string(text), "\n-- ")[1:] {
		name, body, _ := strings.Cut(part, " --\n")
		id, path, _ := strings.Cut(name, " ")
		if all[id] == nil {
			all[id] = map[string]string{}
		}
		all[id][path] = body + "\n"
	}
	for _, h := range Known() {
		switch h.ID {
		case "vscode-insiders", "vscodium", "devin-desktop": // their files are those of others
		default:
			if all[h.ID] == nil {
				t.Errorf("testdata/hosts.txt has no file of %s", h.ID)
			}
		}
	}
	return all
}

// variants are forms that any of the files may have.
var variants = map[string]func(string) string{
	"as it is":         func(s string) string { return s },
	"CRLF":             func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"a mark":           func(s string) string { return "\ufeff" + s },
	"no last line end": func(s string) string { return strings.TrimSuffix(s, "\n") },
	"more blank lines": func(s string) string { return s + "\n\n" },
}

// TestRoundTrip: install, which the host's reader then finds; install again; undo: byte for byte
// what was there.
func TestRoundTrip(t *testing.T) {
	for id, files := range realFiles(t) {
		for variant, form := range variants {
			t.Run(id+"/"+variant, func(t *testing.T) {
				formed := map[string]string{}
				for path, text := range files {
					formed[path] = form(text)
				}
				h := newHome(t, formed)
				before := h.files()
				hasNoSecret(t, h.install(id))
				if !foundItself(h) {
					t.Errorf("the host doesn't find the bridge:\n%s", cmp.Diff(before, h.files()))
				}
				if p, err := h.plan(id); err != nil || len(p.Files) != 0 || p.Already != config.Own {
					t.Errorf("again: %+v, %v", p, err)
				}
				if err := h.undo(); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(before, h.files()); d != "" {
					t.Errorf("undone (-want +got):\n%s", d)
				}
			})
		}
	}
}

func (h *home) read(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

func foundItself(h *home) bool {
	return slices.ContainsFunc(discovery.Scan(h.cfg.FS, h.cfg.Env).Problems, func(p discovery.Problem) bool {
		return p.State == discovery.Itself && p.Server == config.Own
	})
}

// TestNewFiles: hosts that are there and have no file yet get one, which undo removes with its
// directories.
func TestNewFiles(t *testing.T) {
	for _, host := range Known() {
		t.Run(host.ID, func(t *testing.T) {
			h := newHome(t, nil)
			before := h.files()
			shown := h.install(host.ID)
			if !foundItself(h) {
				t.Errorf("the host doesn't find the bridge:\n%s", shown)
			}
			if err := h.undo(); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, h.files()); d != "" {
				t.Errorf("undone (-want +got):\n%s", d)
			}
		})
	}
}

// TestCommentsStay: a file that install has made isn't removed with what the user wrote into it.
func TestCommentsStay(t *testing.T) {
	for id, file := range map[string]string{"codex": ".codex/config.toml", "zed": ".config/zed/settings.json"} {
		h := newHome(t, nil)
		h.install(id)
		path := filepath.Join(h.dir, filepath.FromSlash(file))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		note := map[string]string{"codex": "# notes of mine\n", "zed": "// notes of mine\n"}[id]
		if err := os.WriteFile(path, append(text, note...), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.undo(); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadFile(path); err != nil || !strings.Contains(string(left), note) ||
			strings.Contains(string(left), "mcp-bridge") {
			t.Errorf("%s: left is %q, %v", id, left, err)
		}
	}
}

// TestFound: which hosts are on a machine.
func TestFound(t *testing.T) {
	h := newHome(t, map[string]string{".cursor/x": "", ".claude.json": "{}", ".gemini/antigravity/x": ""})
	h.cfg.LookPath = func(name string) bool { return name == "codex" }
	var got []string
	for _, host := range New(h.cfg).Hosts() {
		if host.Found {
			got = append(got, host.ID)
		}
	}
	if d := cmp.Diff([]string{"claude-code", "cursor", "codex"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestEntryThatIsThere: what becomes of an entry that the user has made, or another program.
func TestEntryThatIsThere(t *testing.T) {
	for _, tt := range []struct{ name, text, want, already, err string }{
		{"the user's own", `{"mcpServers": {"py": {"command": "HOME/bin/mcp-bridge"}}}`, "", "py", ""},
		{"with settings",
			`{"mcpServers": {"mcp-bridge": {"command": "npx", "args": ["mcp-bridge"], "env": {"A": "b"}}}}`, "",
			"mcp-bridge", ""},
		{"whose program is gone",
			`{"mcpServers": {"mcp-bridge": {"command": "/gone/mcp-bridge", "env": {"A": "b"}}}}`,
			`{"mcpServers": {"mcp-bridge": {"command": "HOME/bin/mcp-bridge", "env": {"A": "b"}, "args": []}}}`,
			"mcp-bridge", ""},
		{"of another program", `{"mcpServers": {"mcp-bridge": {"command": "other"}}}`, "", "",
			"another server has the name mcp-bridge"},
		{"twice", `{"mcpServers": {}, "mcpServers": {}}`, "", "", "more than once"},
		{"nothing that parses", `{"mcpServers": `, "", "", "not valid JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, nil)
			h.write(".cursor/mcp.json", strings.ReplaceAll(tt.text, "HOME", h.dir))
			before := h.files()
			p, err := h.plan("cursor")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil || p.Already != tt.already || (len(p.Files) > 0) != (tt.want != "") {
				t.Fatalf("%+v, %v", p, err)
			}
			h.install("cursor")
			if want := strings.ReplaceAll(tt.want, "HOME", h.dir); want != "" && h.read(".cursor/mcp.json") != want {
				t.Errorf("got %s", h.read(".cursor/mcp.json"))
			}
			if err := h.undo(); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(before, h.files()); d != "" {
				t.Errorf("undone (-want +got):\n%s", d)
			}
		})
	}
}

// TestStrictFile: Claude Desktop rejects a file with a comment, so nothing is added to one.
func TestStrictFile(t *testing.T) {
	h := newHome(t, map[string]string{".config/Claude/claude_desktop_config.json": "{} /* mine */"})
	_, err := h.plan("claude-desktop")
	var bad *FileError
	if !errors.As(err, &bad) || !strings.Contains(bad.Why, "a comment") {
		t.Errorf("got %v", err)
	}
}

// TestAsk: --ask leaves out what lets a host call the tools unasked; so does a project's file,
// which names no file of the user's either.
func TestAsk(t *testing.T) {
	h := newHome(t, map[string]string{"w/x": ""})
	h.cfg.Ask = true
	for id, word := range map[string]string{"codex": "approve", "gemini-cli": "trust", "kiro": "autoApprove",
		"claude-code": "permissions", "zed": "tool_permissions"} {
		shown := h.install(id)
		if strings.Contains(shown, word) || !strings.Contains(shown, "MCP_BRIDGE_POLICY") {
			t.Errorf("%s:\n%s", id, shown)
		}
	}
	h.cfg.Ask, h.cfg.Project, h.cfg.Vars = false, true, nil
	for id, file := range map[string]string{"claude-code": "w/.mcp.json", "codex": "w/.codex/config.toml",
		"vscode": "w/.vscode/mcp.json", "opencode": "w/opencode.json"} {
		shown := h.install(id)
		if strings.Contains(shown, "approve") || strings.Contains(shown, "MCP_BRIDGE_POLICY") {
			t.Errorf("%s:\n%s", id, shown)
		}
		h.read(file)
	}
	if _, err := h.plan("lm-studio"); err == nil {
		t.Error("LM Studio has no project's file")
	}
}
