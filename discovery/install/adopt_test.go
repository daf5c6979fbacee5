package install

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// adoptAll moves what can be moved, and returns the plan and what was shown.
func (h *home) adoptAll() (plan Moves, shown string) {
	h.t.Helper()
	in := New(h.cfg)
	plan = in.PlanMoves(wish())
	for _, m := range plan.All {
		for _, s := range m.Secrets {
			h.write("secrets/"+s.Name, s.Value())
			m.Set = append(m.Set, s.Name)
		}
	}
	own, others, err := in.MoveFiles(plan.All)
	if err != nil {
		h.t.Fatal(err)
	}
	for i, f := range append([]*File{own}, others...) {
		if !f.Changed() {
			continue
		}
		shown += f.Diff()
		if err := h.journal.Write(h.t.Context(), f); err != nil {
			h.t.Fatal(err)
		}
		for _, m := range plan.All {
			if err := in.Arrived(m); i == 0 && err != nil {
				h.t.Error(err)
			}
		}
	}
	hasNoSecret(h.t, shown)
	return plan, shown
}

// newHost returns a home with a host's real files, in which the host has the bridge. Secrets count
// as set once they are written.
func newHost(t *testing.T, id string, files map[string]string) *home {
	t.Helper()
	h := newHome(t, files)
	if id == "gemini-cli" { // uses servers only in a folder that it trusts
		h.write(".gemini/trustedFolders.json", `{"`+h.cfg.Env.Dir+`": "TRUST_FOLDER"}`)
	}
	h.cfg.Env.SecretFile = func(name string) string { return h.path("secrets/" + name) }
	h.cfg.Env.Getenv = func(name string) string { return map[string]string{"DB_CONNECTION_STRING": "db"}[name] }
	h.install(id)
	h.journal = &Journal{Dir: h.journal.Dir, Verb: "adopt"}
	return h
}

// used returns the candidates that hosts, or the bridge's own files, have enabled.
func (h *home) used(own bool) (names []string) {
	for _, c := range discovery.Candidates(h.cfg.FS, h.cfg.Env) {
		states := []discovery.State{"", discovery.Unusable, discovery.Duplicate, discovery.Shadowed}
		if own == (c.Written.Source.Host == config.Own) && !c.Written.File.InProject() &&
			c.Written.Source.Scope != config.LocalScope && slices.Contains(states, stateOf(c)) {
			names = append(names, c.Written.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestAdoptRoundTrip: of each host, in each form, the servers move and come back, byte for byte.
// None that has moved is told as disabled. A second adopt has nothing to do.
func TestAdoptRoundTrip(t *testing.T) {
	for id, files := range realFiles(t) {
		for _, variant := range []string{"as it is", "CRLF"} {
			form := variants[variant]
			t.Run(id+"/"+variant, func(t *testing.T) {
				formed := map[string]string{}
				for path, text := range files {
					formed[path] = form(text)
				}
				h := newHost(t, id, formed)
				before, enabled := h.files(), h.used(false)
				plan, shown := h.adoptAll()
				if len(plan.All) == 0 || len(plan.Stays) > 0 {
					t.Fatalf("moved %q", brief(plan))
				}
				if left := h.used(false); len(left) > 0 || len(h.used(true)) != len(enabled) {
					t.Errorf("%q are left, and %q are the bridge's\n%s", left, h.used(true), shown)
				}
				for _, p := range discovery.Scan(h.cfg.FS, h.cfg.Env).Problems {
					if p.State == discovery.Disabled {
						t.Errorf("%s is used, and told as disabled: %s", p.Server, p.Reason)
					}
				}
				if again, shown := h.adoptAll(); len(again.All) > 0 || shown != "" {
					t.Errorf("again: %q\n%s", brief(again), shown)
				}
				if err := h.undo(); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(before, h.withoutSecrets()); d != "" {
					t.Errorf("undone (-want +got):\n%s", d)
				}
			})
		}
	}
}

// TestDiff: what is shown of a move names each file and what its changes are in. Entries that come
// are whole, in one piece where they stand together, without what could be a secret.
func TestDiff(t *testing.T) {
	const before = `{
  "mcpServers": {
    "a": {"command": "a", "env": {"TOKEN": "SECRET-1"}},
    "b": {"command": "b"},
    "us": {"command": "mcp-bridge"}
  }
}
`
	const mine = `{
  "mcpServers": {
    "mine": {"command": "mine", "env": {"TOKEN": "SECRET-2"}}
  }
}
`
	h := newHome(t, map[string]string{cursor: before, adopted: mine,
		".codex/config.toml": "[mcp_servers.us]\ncommand = \"mcp-bridge\"\n\n[mcp_servers.c]\ncommand = \"c\"\n"})
	h.cfg.Env.SecretFile = func(name string) string { return h.path("secrets/" + name) }
	h.journal.Verb = "adopt"
	_, shown := h.adoptAll()
	want := `--- ~/adopted.json
+++ ~/adopted.json
@@ line 3, in mcpServers @@
-    …
+    …,
+    "a": {
+      "command": "a",
+      "env": {
+        "TOKEN": "${secret:a.TOKEN}"
+      }
+    },
+    "b": {
+      "command": "b"
+    },
+    "c": {
+      "command": "c"
+    }
--- ~/mcp.json
+++ ~/mcp.json
@@ line 3, in mcpServers @@
-a: …
@@ line 4, in mcpServers @@
-b: …
--- ~/config.toml
+++ ~/config.toml
@@ line 6, in mcp_servers → c @@
+enabled = false
`
	for _, path := range []string{adopted, cursor, ".codex/config.toml"} {
		shown = strings.ReplaceAll(shown, h.path(path), "~/"+filepath.Base(path))
	}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	h = newHome(t, map[string]string{".config/zed/settings.json": "{\n  \"context_servers\": {}\n}\n"})
	if shown := h.install("zed"); strings.Count(shown, "@@ line") != 1 {
		t.Errorf("changes that stand together are shown apart:\n%s", shown)
	}
}

// mine returns a file's text behind its mode, with what a user has put in as the first line or
// member.
func (h *home) mine(path, modeAndText string) string {
	_, text, _ := strings.Cut(modeAndText, "\n")
	if strings.HasSuffix(path, "json") || strings.HasSuffix(path, "jsonc") {
		return strings.Replace(text, "{", `{"mine": "SECRET",`, 1)
	}
	mark := strings.HasPrefix(text, "\ufeff")
	text = "# mine: SECRET\n" + strings.TrimPrefix(text, "\ufeff")
	if mark {
		text = "\ufeff" + text
	}
	return text
}

// withoutSecrets is files without the secrets that were set, and without the directory.
func (h *home) withoutSecrets() map[string]string {
	all := h.files()
	for name := range all {
		if strings.HasPrefix(name, "secrets/") {
			delete(all, name)
		}
	}
	return all
}

// TestAdoptConflicts: what was edited on either side after a server moved is named, and left. The
// other servers go back.
func TestAdoptConflicts(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`
	set := func(name string, path []string, v config.Value) func(*home) {
		return func(h *home) {
			made, err := edit.Apply(name, []byte(h.read(name)), edit.Change{Path: path, Value: v})
			if err != nil {
				h.t.Fatal(err)
			}
			h.write(name, string(made))
		}
	}
	other := config.Object{{Name: "command", Value: config.Of("other")}}.Value()
	entry := []string{"mcpServers", "a"}
	for _, tt := range []struct {
		name, id, file string
		since          func(*home)
		conflict       string // with a
		host, own      string // what is enabled afterwards
	}{
		{"another server of its name", "cursor", cursor, set(cursor, entry, other), "has another entry under " +
			"mcpServers → a", "a b", "a"},
		{"put back by hand", "cursor", cursor, set(cursor, entry, config.Object{{Name: "command",
			Value: config.Of("a")}}.Value()), "", "a b", ""},
		{"the switch was used", "kiro", ".kiro/settings/mcp.json", set(".kiro/settings/mcp.json",
			append(slices.Clone(entry), "disabled"), config.Of(false)),
			"has another entry under mcpServers → a → disabled", "a b", "a"},
		{"its entry was removed", "kiro", ".kiro/settings/mcp.json", set(".kiro/settings/mcp.json", entry,
			config.Value{}), "", "b", ""},
		{"edited in the bridge's file", "cursor", cursor, set(adopted, append(slices.Clone(entry), "command"),
			config.Of("c")), "has another entry under mcpServers → a", "a b", "a"},
		{"the bridge's file is gone", "cursor", cursor, func(h *home) { h.remove(adopted) }, "", "a b", ""},
		{"another one in the bridge's file", "cursor", cursor, set(adopted, []string{"mcpServers", "z"}, other), "",
			"a b", "z"},
		{"the host's file is gone", "cursor", cursor, func(h *home) { h.remove(cursor) }, "is gone", "", "a b"},
		{"a link by now", "cursor", cursor, func(h *home) {
			h.write("elsewhere", h.read(cursor))
			h.remove(cursor)
			h.link("elsewhere", cursor)
		}, "is a link", "", "a b"},
		{"no longer JSON", "cursor", cursor, func(h *home) { h.write(cursor, "{") }, "it is not valid JSON", "",
			"a b"},
		{"edited, and no backup", "cursor", cursor, func(h *home) {
			set(cursor, []string{"z"}, other)(h)
			h.remove(cursor + backupEnding + "-2")
		}, "what it held before is gone", "", "a b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, tt.id, map[string]string{tt.file: text})
			h.adoptAll()
			tt.since(h)
			err := h.undoAll()
			if tt.conflict == "" && err != nil || tt.conflict != "" && (err == nil ||
				!strings.Contains(err.Error(), tt.conflict)) {
				t.Errorf("got %v, want %q", err, tt.conflict)
			}
			host, own := strings.Join(h.used(false), " "), strings.Join(h.used(true), " ")
			if host != tt.host || own != tt.own {
				t.Errorf("the host has %q, want %q; the bridge has %q, want %q", host, tt.host, own, tt.own)
			}
		})
	}
}

// undoAll takes back what it can, and returns the first conflict.
func (h *home) undoAll() (conflict error) {
	h.t.Helper()
	back, err := h.journal.PlanUndo(nil, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range back {
		if r.File != nil {
			hasNoSecret(h.t, r.File.Diff())
		}
		if err := h.journal.Undo(h.t.Context(), r); err != nil && r.Conflict == nil {
			h.t.Fatal(err)
		}
		if conflict == nil {
			conflict = r.Conflict
		}
	}
	return conflict
}

// TestUndoSome: one host, one server. What another host's file counts on stays in the bridge's own,
// with its secret.
func TestUndoSome(t *testing.T) {
	const both = `{"mcpServers": {"a": {"command": "a", "env": {"KEY": "SECRET-12"}}, "b": {"command": "b"}}}`
	h := newHost(t, "cursor", map[string]string{cursor: both, claude: both})
	h.journal.Verb = "install"
	h.install("claude-code")
	h.journal.Verb = "adopt"
	before := h.files()
	if plan, _ := h.adoptAll(); len(plan.All) != 2 || len(plan.All[0].From) != 2 {
		t.Fatalf("moved %q", brief(plan))
	}
	for _, tt := range []struct {
		ids, servers []string
		host, own    string
		secrets      []string
	}{
		{[]string{"cursor"}, []string{"A"}, "a", "a b", nil},
		{nil, []string{"b"}, "a b b", "a", nil},
		{[]string{"kiro"}, nil, "a b b", "a", nil},
		{nil, nil, "a a b b", "", []string{"a.KEY"}},
	} {
		back, err := h.journal.PlanUndo(tt.ids, tt.servers)
		if err != nil {
			t.Fatal(err)
		}
		var secrets []string
		for _, r := range back {
			if err := h.journal.Undo(t.Context(), r); err != nil {
				t.Error(err)
			}
			secrets = append(secrets, r.Secrets...)
		}
		host, own := strings.Join(h.used(false), " "), strings.Join(h.used(true), " ")
		if host != tt.host || own != tt.own || !slices.Equal(secrets, tt.secrets) {
			t.Errorf("%q, %q: the host has %q, the bridge has %q, and %q go", tt.ids, tt.servers, host, own, secrets)
		}
	}
	for name := range before {
		if _, err := os.Stat(h.path(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestSharedBackup: where two commands found a file alike, its backup is of both, and stays until
// the last of them is undone.
func TestSharedBackup(t *testing.T) {
	const before = `{"mcpServers": {"a": {"command": "a"}}}`
	h := newHome(t, map[string]string{cursor: before})
	h.install("cursor")
	installed := h.read(cursor)
	h.write(cursor, before) // by hand
	f, err := Open(h.path(cursor))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Change(edit.Change{Path: []string{"mcpServers", "b"}, Value: config.Of("b")}); err != nil {
		t.Fatal(err)
	}
	h.journal.Verb = "adopt"
	if err := h.journal.Write(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := h.undo(); err != nil || h.read(cursor) != before || h.read(cursor+backupEnding) != before {
		t.Fatalf("%v: %s, and the backup %q", err, h.read(cursor), h.read(cursor+backupEnding))
	}
	h.write(cursor, installed)
	h.journal.Verb = "install"
	if err := h.undo(); err != nil || h.read(cursor) != before {
		t.Errorf("%v: %s", err, h.read(cursor))
	}
	h.isClean()
}

// TestOwnFileGone: the bridge's own file that is gone when adopt is undone is a conflict, as often
// as it is tried, and the backup of what it held before stays.
func TestOwnFileGone(t *testing.T) {
	h := newHost(t, "cursor", map[string]string{cursor: `{"mcpServers": {"a": {"command": "a"}}}`,
		adopted: `{"mcpServers": {"mine": {"command": "mine"}}}`})
	h.adoptAll()
	h.remove(adopted)
	for range 2 {
		back, err := h.journal.PlanUndo(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range back {
			err = errors.Join(err, h.journal.Undo(t.Context(), r))
		}
		if err == nil || !strings.Contains(err.Error(), "adopted.json is gone") {
			t.Errorf("undone: %v", err)
		}
		if !strings.Contains(h.read(adopted+backupEnding), `"mine"`) || !strings.Contains(h.read(cursor), `"a"`) {
			t.Errorf("left are %q", h.files())
		}
	}
}
