package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
)

// meanwhile does something before it says yes.
type meanwhile struct {
	do func()
	io.Reader
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return m.Reader.Read(p)
}

// adoption is a home whose hosts have the bridge and servers.
type adoption struct {
	t              *testing.T
	home           string
	stdout, stderr bytes.Buffer
}

const (
	ofCursor = ".cursor/mcp.json"
	ofCodex  = ".codex/config.toml"
	ofVSCode = ".config/Code/User/mcp.json"
	ofOurs   = ".config/mcp/servers/adopted.json"
)

func newAdoption(t *testing.T, files map[string]string) *adoption {
	t.Helper()
	ad := &adoption{t: t, home: t.TempDir()}
	for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CODEX_HOME",
		"CLAUDE_CONFIG_DIR", "MCP_BRIDGE_POLICY", "MCP_BRIDGE_CONFIG", "DBUS_SESSION_BUS_ADDRESS"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", ad.home)
	t.Setenv("XDG_RUNTIME_DIR", ad.home)
	for name, text := range files {
		ad.write(name, text)
	}
	return ad
}

func (ad *adoption) path(name string) string { return filepath.Join(ad.home, name) }

func (ad *adoption) write(name, text string) {
	must(ad.t, os.MkdirAll(filepath.Dir(ad.path(name)), 0o700))
	must(ad.t, os.WriteFile(ad.path(name), []byte(text), 0o600))
}

// replace does what another program does to a file.
func (ad *adoption) replace(name, old, with string) {
	if text := ad.read(name); strings.Contains(text, old) {
		ad.write(name, strings.Replace(text, old, with, 1))
	} else {
		ad.t.Errorf("%s has no %s", name, old)
	}
}

func (ad *adoption) read(name string) string {
	text, _ := os.ReadFile(ad.path(name))
	return string(text)
}

// app returns a program at whose question do is done before it is answered.
func (ad *adoption) app(typed string, do func()) *app {
	return &app{io: &terminal.Streams{In: strings.NewReader(typed), Out: terminal.New(&ad.stdout),
		Err: terminal.New(&ad.stderr), Open: func() (io.ReadWriteCloser, error) {
			return &typing{Reader: &meanwhile{do, strings.NewReader("y\n")}}, nil
		}}}
}

func (ad *adoption) secrets() (names []string) {
	for _, e := range secretStore().List() {
		names = append(names, e.Name)
	}
	return names
}

// TestAdoptFails: what can't be moved in the end stays where it is, is not said to have moved, and
// leaves neither an entry in the bridge's file nor a secret. The others move, and --undo leaves
// nothing of them either.
func TestAdoptFails(t *testing.T) {
	const us = `"us": {"command": "mcp-bridge"}`
	const token = `"token": {"command": "y", "env": {"TOKEN": "hunter2-v"}}`
	files := map[string]string{
		ofCursor: `{"mcpServers": {"shop": {"command": "x"}, ` + token + `, ` + us + `}}`,
		ofCodex:  "[mcp_servers.us]\ncommand = \"mcp-bridge\"\n[mcp_servers.shop]\ncommand = \"x\"\n",
	}
	inputs := map[string]string{ofVSCode: `{"inputs": [{"id": "k"}, {"id": "l"}], "servers": {
		"A": {"command": "a", "env": {"K": "${input:k}", "L": "${input:l}", "TOKEN": "hunter2-v"}},
		"B": {"command": "b", "env": {"K": "${input:k}"}}, ` + us + `}}`}
	for _, tt := range []struct {
		name, typed string
		files       map[string]string
		do          func(*adoption)
		moved       string // empty: none
		ours        string // names in the bridge's own file
		secrets     string
		says        string
	}{
		{"another entry that is taken out", "", files, func(ad *adoption) {
			ad.replace(ofCursor, `"hunter2-v"`, `"hunter2-w"`)
		}, "", "", "", "mcp.json was changed by another program meanwhile"},
		{"another entry that is switched off", "", files, func(ad *adoption) {
			ad.replace(ofCodex, `"x"`, `"z"`)
		}, "", "", "", "config.toml was changed by another program meanwhile"},
		{"no file can be written", "", files, func(ad *adoption) {
			ad.write(".cursor/.mcp.json.mcp-bridge-new/x", "")
			ad.write(".codex/.config.toml.mcp-bridge-new/x", "")
		}, "", "", "", "not moved from "},
		{"one host's can't be written", "", files, func(ad *adoption) {
			ad.write(".codex/.config.toml.mcp-bridge-new/x", "")
		}, "shop, token", "shop token", "token.TOKEN", ".codex/config.toml: shop: "},
		{"not usable from the bridge's files", "", files, func(ad *adoption) {
			ad.write(".config/mcp/servers/a.json", `{"mcpServers": {"token": {"command": "y", "disabled": true}}}`)
		}, "shop", "shop", "", "token stays where it is: "},
		{"the bridge's file is a link by then", "", files, func(ad *adoption) {
			ad.write("elsewhere", "{}")
			must(ad.t, os.MkdirAll(filepath.Dir(ad.path(ofOurs)), 0o700))
			must(ad.t, os.Symlink(ad.path("elsewhere"), ad.path(ofOurs)))
		}, "", "", "", "is a link"},
		{"an input that isn't given", "hunter2-k\n", inputs, func(*adoption) {}, "B", "B", "VS-Code.k",
			"A stays where it is: nothing was given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ad := newAdoption(t, tt.files)
			asked := map[string]string{}
			a := ad.app(tt.typed, func() {
				tt.do(ad)
				for name := range tt.files {
					asked[name] = ad.read(name)
				}
			})
			err := adopt(t.Context(), a.io, nil, nil, installOptions{})
			if err == nil {
				t.Error("it succeeded")
			}
			says := "moved to " + ad.path(ofOurs) + ": "
			if has := strings.Contains(ad.stdout.String(), says); has != (tt.moved != "") ||
				has && !strings.Contains(ad.stdout.String(), says+tt.moved+"\n") {
				t.Errorf("want %q moved:\n%s%s", tt.moved, &ad.stdout, &ad.stderr)
			}
			if why := ad.stderr.String() + fmt.Sprint(err); !strings.Contains(why, tt.says) {
				t.Errorf("want %q in:\n%s", tt.says, why)
			}
			for _, name := range []string{"shop", "token", "A", "B"} {
				want := strings.Contains(" "+tt.ours+" ", " "+name+" ")
				if strings.Contains(ad.read(ofOurs), `"`+name+`"`) != want {
					t.Errorf("%s: want %v in the bridge's file:\n%s", name, want, ad.read(ofOurs))
				}
			}
			if got := strings.Join(ad.secrets(), " "); got != tt.secrets {
				t.Errorf("secrets are %q, want %q", got, tt.secrets)
			}
			for name, text := range asked {
				if tt.moved == "" && ad.read(name) != text {
					t.Errorf("%s holds %s", name, ad.read(name))
				}
			}
			if shown := ad.stdout.String() + ad.stderr.String(); strings.Contains(shown, "hunter2") {
				t.Errorf("shown: %s", shown)
			}
			_ = undo(t.Context(), a.io, "adopt", nil, nil, installOptions{yes: true})
			if got := ad.secrets(); len(got) > 0 {
				t.Errorf("undone: secrets are %q", got)
			}
			if tt.moved != "" && ad.read(ofOurs) != "" {
				t.Errorf("undone: %s", ad.read(ofOurs))
			}
		})
	}
}

// TestAdoptInterrupted: interrupted at a question, nothing moves, and no secret is left.
func TestAdoptInterrupted(t *testing.T) {
	ad := newAdoption(t, map[string]string{ofCursor: `{"mcpServers": {"us": {"command": "mcp-bridge"}, ` +
		`"token": {"command": "y", "env": {"TOKEN": "hunter2-v"}}}}`})
	before := ad.read(ofCursor)
	ctx, cancel := context.WithCancelCause(t.Context())
	a := ad.app("", func() { cancel(errInterrupt) })
	if err := adopt(ctx, a.io, nil, nil, installOptions{}); err == nil || ad.read(ofCursor) != before ||
		ad.read(ofOurs) != "" || len(ad.secrets()) > 0 {
		t.Errorf("%v: %s%s %q", err, ad.read(ofCursor), ad.read(ofOurs), ad.secrets())
	}
}

// TestAdoptByName: a server that has a host's name is named by --server.
func TestAdoptByName(t *testing.T) {
	newAdoption(t, map[string]string{
		ofCursor: `{"mcpServers": {"shop": {"command": "x"}, "us": {"command": "mcp-bridge"}}}`,
		ofCodex:  "[mcp_servers.us]\ncommand = \"mcp-bridge\"\n[mcp_servers.cursor]\ncommand = \"y\"\n",
	})
	for _, tt := range []struct {
		args []string
		exit int
		has  string // what moves
	}{
		{[]string{"cursor"}, 0, "shop"},
		{[]string{"--server", "cursor"}, 0, "cursor"},
		{[]string{"codex", "--server=cursor"}, 0, "cursor"},
		{[]string{"--server", "codex"}, exit.Misused, ""},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"adopt", "--print"}, tt.args...), strings.NewReader(""), &out, &errs)
		for _, name := range []string{"shop", "cursor"} {
			has := strings.Contains(out.String(), `+    "`+name+`": {`)
			if has != (name == tt.has) || code != tt.exit {
				t.Errorf("%q: exit %d:\n%s%s", tt.args, code, &out, &errs)
			}
		}
	}
}
