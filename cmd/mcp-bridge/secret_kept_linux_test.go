package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// movedSecrets returns what servers of Cursor's and VS Code's ask for once they are moved: what is
// in plain text there, and an input.
func movedSecrets(t *testing.T, plain string) (text, input discovery.Asked) {
	t.Helper()
	env := discovery.Env{Home: "/home/u", GOOS: "linux"}
	for _, c := range discovery.Candidates(fstest.MapFS{
		"home/u/.cursor/mcp.json": {Mode: 0o600, Data: []byte(
			`{"mcpServers": {"a": {"command": "a", "env": {"TOKEN": "` + plain + `"}}}}`)},
		"home/u/.config/Code/User/mcp.json": {Mode: 0o600, Data: []byte(`{"inputs": [{"id": "k", "description": ` +
			`"API key"}], "servers": {"b": {"command": "b", "args": ["${input:k}"]}}}`)},
	}, env) {
		_, secrets, bad := c.Written.Move(env, c.Inputs)
		if bad.Refused() || len(secrets) != 1 {
			t.Fatalf("%s: %v, %v", c.Written.Name, secrets, bad)
		}
		if c.Written.Name == "a" {
			text = secrets[0]
		} else {
			input = secrets[0]
		}
	}
	return text, input
}

// TestKeepAsked: what a moved server asks for is set once, and never in the place of another value.
func TestKeepAsked(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	text, input := movedSecrets(t, "hunter2-value")
	other, _ := movedSecrets(t, "another-value")
	for _, tt := range []struct {
		name, typed string
		asked       discovery.Asked
		want, fails string
	}{
		{"in plain text", "", text, "hunter2-value", ""},
		{"the same again", "", text, "hunter2-value", ""},
		{"another value", "", other, "hunter2-value", "the secret a.TOKEN is set already, to something else; " +
			"remove it"},
		{"an input that isn't given", "", input, "", "nothing was given"},
		{"an input", "typed-value\n", input, "typed-value", ""},
		{"the same input of another server", "", input, "typed-value", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			a := secretCommands{store: secretStore(), io: &terminal.Streams{In: strings.NewReader(tt.typed),
				Out: terminal.New(&out), Err: terminal.New(&errs)}}
			_, err := a.keepAsked(t.Context(), tt.asked)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got %v", err)
			}
			if got, _ := secretValue(tt.asked.Name); got != tt.want {
				t.Errorf("kept is %q", got)
			}
			for _, value := range []string{"hunter2-value", "typed-value", "another-value"} {
				if shown := fmt.Sprint(out.String(), errs.String(), err); strings.Contains(shown, value) {
					t.Errorf("shown: %s", shown)
				}
			}
		})
	}
}

// TestSecretFromAPipe: one line is the secret, and more than one is refused without --multiline.
// Questions that follow each other take a line each.
func TestSecretFromAPipe(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	long := strings.Repeat("x", maxSecret)
	for _, tt := range []struct {
		name, piped string
		lines       bool
		want, fails string
	}{
		{"a line", "hunter2\n", false, "hunter2", ""},
		{"its end is missing", " hunter2 ", false, " hunter2 ", ""},
		{"a line of Windows", "hunter2\r\n", false, "hunter2", ""},
		{"an empty line behind it", "hunter2\n\n", false, "hunter2", ""},
		{"two lines", "a\nb\n", false, "", "more than one line; --multiline takes all of it"},
		{"two lines that are wanted", "a\r\nb\n\n", true, "a\r\nb\n", ""},
		{"nothing", "", false, "", "nothing was given"},
		{"nothing of many lines", "\n", true, "", "nothing was given"},
		{"as long as it may be", long + "\n", false, long, ""},
		{"too long", long + "x", false, "", "longer than 65536 bytes"},
		{"too long in lines", long + "\n\n\n", true, "", "longer than 65536 bytes"},
		{"no text", "a\x00b\n", false, "", "it isn't text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_ = secretStore().Delete(secrets.Account("n"))
			a := secretCommands{store: secretStore(), io: &terminal.Streams{In: strings.NewReader(tt.piped),
				Out: terminal.New(io.Discard), Err: terminal.New(io.Discard)}}
			err := a.set(t.Context(), "n", tt.lines)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got %v", err)
			}
			if got, _ := secretValue("n"); got != tt.want {
				t.Errorf("kept is %.50q", got)
			}
		})
	}
	endless := &endless{}
	a := secretCommands{store: secretStore(), io: &terminal.Streams{In: endless,
		Out: terminal.New(io.Discard), Err: terminal.New(io.Discard)}}
	if _, err := a.readSecret(t.Context(), ""); err == nil || endless.read > 2*maxSecret {
		t.Errorf("%v, after %d bytes", err, endless.read)
	}
	a.io.In = strings.NewReader("one\ntwo\n")
	for _, want := range []string{"one", "two"} {
		if got, err := a.readSecret(t.Context(), ""); got != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// endless is a line that doesn't end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, strings.Repeat("x", len(p))), nil
}

// TestStatsLine: without a log it is about definitions alone.
func TestStatsLine(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	line := statsLine(t.Context(), settings.Settings{}, discovery.Catalog{Servers: []discovery.Server{{Name: "a",
		Command: "a", Source: discovery.Source{Host: "mcp-bridge"}}}})
	if !strings.HasPrefix(line, "definitions that stay out of every conversation: about 0 tokens "+
		"(servers: 1); ") ||
		strings.Contains(line, "results") || strings.Contains(line, "\n") {
		t.Errorf("got %s", line)
	}
}
