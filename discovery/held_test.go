package discovery_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// hostile is a home whose hosts trust all that can be trusted in the project, approve all that can
// be approved, and have another program under the name that code is going to take.
func hostile(t *testing.T) discovery.Env {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := discovery.Env{Home: filepath.Join(root, "home"), Dir: filepath.Join(root, "home", "proj"),
		GOOS: "linux"}
	for p, text := range map[string]string{
		".claude.json": `{"projects": {"PROJ": {"hasTrustDialogAccepted": ` +
			`true, "enabledMcpjsonServers": ["s"]}}}`,
		".codex/config.toml":          "[projects.\"PROJ\"]\ntrust_level = \"trusted\"\n",
		".gemini/trustedFolders.json": `{"PROJ": "TRUST_FOLDER"}`,
		"proj/.git/HEAD":              "",
		".config/Code/User/globalStorage/storage.json": `{"userDataProfiles": [{"location": "abc", ` +
			`"name": "p"}]}`,
	} {
		put(t, filepath.Join(env.Home, p), strings.ReplaceAll(text, "PROJ", env.Dir))
	}
	return env
}

func put(t *testing.T, p, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(p), 0o700)
	if err == nil {
		err = os.WriteFile(p, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// life has directories change later than now, as they do while no bridge runs: it isn't by their
// times that what is below them is held.
func life(t *testing.T, dirs ...string) {
	t.Helper()
	now := time.Now()
	for _, dir := range dirs {
		for passing := filepath.Join(dir, "passing"); ; {
			put(t, passing, "")
			info, err := os.Stat(passing)
			if err := errors.Join(err, os.Remove(passing)); err != nil {
				t.Fatal(err)
			}
			if info.ModTime().After(now) {
				break
			}
		}
	}
}

// TestHeldInEveryFile: in each file of each host code can write a definition while the bridge runs
// it, and none is started: not by that bridge, which reads a project's files no more and holds what
// is in others, and not by the next one. Neither does one take the place of the user's own.
func TestHeldInEveryFile(t *testing.T) {
	used, all := 0, discovery.Places(hostile(t), "evil")
	for i := range all {
		t.Run(all[i].Host+" "+all[i].Scope, func(t *testing.T) {
			env := hostile(t)
			place := discovery.Places(env, "evil")[i]
			if !strings.HasPrefix(place.Path, env.Home) {
				t.Skip("an administrator's, which no user can write: " + place.Path)
			}
			if place.Scope == "local" || place.Path == filepath.Join(env.Home,
				".claude.json") { // keep what it says of trust
				place.Text = strings.TrimSuffix(place.Text, "}") + `, "x": 1}`
			}
			if place.Host == "Codex" && place.Scope == "user" {
				place.Text += "[projects.\"" + env.Dir + "\"]\ntrust_level = \"trusted\"\n"
			}
			record := filepath.Join(filepath.Dir(env.Home), "approved.json")
			scanner := discovery.NewScanner(discovery.Root(), env)
			a := approvals.New(approvals.Config{Record: record})
			if c := a.Update(scanner.Scan()); len(c.Servers) > 0 {
				t.Fatalf("at the start there are %v", c.Servers)
			}
			a.Begin()
			put(t, place.Path, place.Text)
			for _, s := range a.Update(scanner.Scan()).Servers {
				if !a.Held(s) {
					t.Errorf("in the same session %s may be started", s)
				}
				if s.OfProject {
					t.Errorf("%s is of a file that should be read at the start only", s)
				}
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			life(t, filepath.Dir(record), env.Home, env.Dir, os.TempDir(), filepath.Dir(filepath.Dir(record)))
			b := approvals.New(approvals.Config{Record: record})
			for _, s := range b.Update(discovery.Scan(discovery.Root(), env)).Servers {
				used++
				if s.Name != "s" || s.Command != "evil" || !b.Held(s) {
					t.Errorf("at the next start %s may be started", s)
				}
			}
			put(t, filepath.Join(env.Home, ".config", "mcp", "servers", "mine.json"),
				`{"mcpServers": {"s": {"command": "good"}}}`)
			for _, s := range discovery.Scan(discovery.Root(), env).Servers {
				if s.OfProject {
					t.Errorf("%s stands in for the user's own", s)
				}
			}
		})
	}
	if used < 35 {
		t.Errorf("only %d of %d definitions would be used at all: the test shows little", used, len(all))
	}
}
