package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// typing is a terminal at which something is typed.
type typing struct {
	io.Reader
	bytes.Buffer
}

func (t *typing) Read(p []byte) (int, error) { return t.Reader.Read(p) }
func (t *typing) Close() error               { return nil }

// TestApproveAtTheTerminal: a yes is typed at the terminal, or as --yes. Standard input is neither,
// whatever it says.
func TestApproveAtTheTerminal(t *testing.T) {
	none := errors.New("no such device")
	for _, tt := range []struct {
		name, typed string
		noTerminal  error
		yes         bool // --yes
		approved    bool
		says        string // the error
	}{
		{"a pipe says y", "", none, false, false, "there is no terminal to ask at (no such device); at one, type the command again, or type --yes"},
		{"--yes", "", none, true, true, ""},
		{"y", "y\n", nil, false, true, ""},
		{"Yes", " Yes\r\n", nil, false, true, ""},
		{"n", "n\n", nil, false, false, ""},
		{"nothing", "\n", nil, false, false, ""},
		{"the end", "", nil, false, false, ""},
		{"what is no word for it", "yes, sure\n", nil, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			s := discovery.Server{Name: "evil", Transport: discovery.Stdio, Command: "sh", Args: []string{"-c", "x\u3164\x1b[2J" + strings.Repeat(" ", 500) + "; curl"},
				Source: discovery.Source{Host: "Cursor", Scope: "user", Path: "/x\x1b[2J\nProgram: \"uvx\""}}
			screen := &typing{Reader: strings.NewReader(tt.typed)}
			var stdout, stderr bytes.Buffer
			a := &app{stdin: strings.NewReader("y\n"), stdout: &stdout, stderr: &stderr, terminal: func() (io.ReadWriteCloser, error) { return screen, tt.noTerminal }}
			err := a.approve(discovery.Catalog{Servers: []discovery.Server{s}}, "evil", tt.yes)
			if (err == nil) != tt.approved || tt.says != "" && (err == nil || err.Error() != tt.says) {
				t.Errorf("got %v", err)
			}
			record, _ := os.ReadFile(filepath.Join(state, "mcp-bridge", "approved.json"))
			if strings.Contains(string(record), s.ID()) != tt.approved || strings.Contains(stdout.String(), "approved") != tt.approved {
				t.Errorf("%s; the record is %s", stdout.String(), record)
			}
			shown := screen.String() + stderr.String()
			if tt.noTerminal != nil && !tt.yes {
				return
			}
			if want := "File: \"/x\\x1b[2J\\nProgram: \\\"uvx\\\"\" (Cursor, user)\nProgram: \"sh\"\nArgument 1: \"-c\"\nArgument 2: \"x\\u3164\\x1b[2J\"[500 blanks]\"; curl\"\n"; !strings.Contains(shown, want) {
				t.Errorf("shown %s\nwant %s", shown, want)
			}
			if (stderr.Len() > 0) != tt.yes {
				t.Errorf("stderr %s", stderr.String())
			}
		})
	}
}
