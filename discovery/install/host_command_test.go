package install

import (
	"errors"
	"strings"
	"testing"
)

// TestHostCommand: the host's own command adds the entry in its way, we add what that leaves out,
// and undo brings back the bytes. A command that fails or does nothing leaves no note.
func TestHostCommand(t *testing.T) {
	const text = `{"mcpServers": {}}`
	failed := errors.New("exit status 1")
	for _, tt := range []struct{ name, wrote, want string }{
		{"all", `{"mcpServers":{"mcp-bridge":{"type":"stdio","command":"BIN","args":[],"env":{}}},"n":1}`, ""},
		{"less", `{"mcpServers":{"mcp-bridge":{"command":"BIN"}}}`, ""},
		{"something else", `{"n":1}`, "has no entry mcpServers → mcp-bridge"},
		{"nothing", text, "was not changed"},
		{"failing", "", "exit status 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, map[string]string{".claude.json": text})
			p, err := h.plan("claude-code")
			if err != nil {
				t.Fatal(err)
			}
			err = h.journal.WriteBy(t.Context(), p.Files[0], func() error {
				if tt.wrote == "" {
					return failed
				}
				h.write(".claude.json", strings.ReplaceAll(tt.wrote, "BIN", h.cfg.Command[0]))
				return nil
			})
			back, undoing := h.journal.PlanUndo(nil, nil)
			if undoing != nil {
				t.Fatal(undoing)
			}
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || len(back) != 0 {
					t.Errorf("got %v, and %d notes", err, len(back))
				}
				return
			}
			if got := h.read(".claude.json"); err != nil || !foundItself(h) || !strings.Contains(got, `"env"`) {
				t.Errorf("%v: %s", err, got)
			}
			if err := h.undo(); err != nil || h.read(".claude.json") != text {
				t.Errorf("undone: %v: %s", err, h.read(".claude.json"))
			}
		})
	}
}

// TestHostCommandComments: a comment that the host's own command leaves behind our table, at the
// end of the file, isn't taken out with it.
func TestHostCommandComments(t *testing.T) {
	h := newHome(t, map[string]string{".codex/config.toml": "model = \"m\"\n# notes of mine\n"})
	p, err := h.plan("codex")
	if err != nil {
		t.Fatal(err)
	}
	err = h.journal.WriteBy(t.Context(), p.Files[0], func() error {
		h.write(".codex/config.toml", "model = \"m\"\n\n[mcp_servers.mcp-bridge]\ncommand = '"+h.cfg.Command[0]+
			"'\n# notes of mine\n")
		return nil
	})
	if err != nil || !foundItself(h) {
		t.Fatalf("%v: %s", err, h.read(".codex/config.toml"))
	}
	h.write(".codex/config.toml", h.read(".codex/config.toml")+"# and more\n")
	if err := h.undo(); err != nil {
		t.Fatal(err)
	}
	want := "model = \"m\"\n\n# notes of mine\n\n# and more\n"
	if got := h.read(".codex/config.toml"); got != want {
		t.Errorf("left is %q, want %q", got, want)
	}
}
