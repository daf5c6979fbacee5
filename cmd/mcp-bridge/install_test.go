package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

// TestInstallAsks: without names it asks host by host, with --all once. The policy comes with the
// first yes.
func TestInstallAsks(t *testing.T) {
	for _, tt := range []struct {
		name, typed string
		all         bool
		cursor      bool
		codex       bool
		questions   int
	}{
		{"no, yes", "n\ny\n", false, false, true, 2},
		{"yes, no", "y\nn\n", false, true, false, 2},
		{"the end", "", false, false, false, 2},
		{"all", "y\n", true, true, true, 1},
		{"none", "\n", true, false, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR",
				"MCP_BRIDGE_POLICY"} {
				t.Setenv(v, "")
			}
			t.Setenv("HOME", home)
			t.Setenv("PATH", home)
			cursor, codex := filepath.Join(home, ".cursor/mcp.json"), filepath.Join(home, ".codex/config.toml")
			for _, p := range []string{cursor, codex} {
				must(t, os.MkdirAll(filepath.Dir(p), 0o700))
				must(t, os.WriteFile(p, nil, 0o600))
			}
			screen := &typing{Reader: strings.NewReader(tt.typed)}
			var stdout, stderr bytes.Buffer
			a := &app{io: &terminal.Streams{In: strings.NewReader("y\n"), Out: terminal.New(&stdout),
				Err: terminal.New(&stderr), Open: func() (io.ReadWriteCloser, error) { return screen, nil }}}
			_ = installBridge(t.Context(), a.io, nil, installOptions{all: tt.all, scope: "user"})
			for p, want := range map[string]bool{cursor: tt.cursor, codex: tt.codex,
				filepath.Join(home, ".config/mcp-bridge/policy.toml"): tt.cursor || tt.codex} {
				if text, _ := os.ReadFile(p); (len(text) > 0) != want {
					t.Errorf("%s holds %q", p, text)
				}
			}
			if n := strings.Count(screen.String(), "Write this? [y/N]"); n != tt.questions {
				t.Errorf("%d questions:\n%s", n, screen)
			}
			warned := strings.HasPrefix(stderr.String(), "warning: this is root, and as root the bridge runs no code")
			if !strings.Contains(screen.String(), "+[mcp_servers.mcp-bridge]") || warned != (os.Geteuid() == 0) ||
				!warned && stderr.Len() > 0 {
				t.Errorf("shown:\n%s\n%s", screen, &stderr)
			}
		})
	}
}

// TestFirstPolicy: reads are allowed, and what isn't marked read-only is asked about.
func TestFirstPolicy(t *testing.T) {
	p, err := policy.Parse("policy.toml", []byte(install.FirstPolicy))
	must(t, err)
	for _, tt := range []struct {
		annotations string
		want        policy.Verdict
	}{{`{"readOnlyHint": true}`, policy.Allow}, {`{"readOnlyHint": false}`, policy.Ask},
		{`{"destructiveHint": false}`, policy.Ask}, {"", policy.Ask}} {
		tool := policy.Tool{Server: "s", Name: "t", Annotations: []byte(tt.annotations)}
		if got := p.Decide(tool).Verdict; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.annotations, got, tt.want)
		}
	}
}
