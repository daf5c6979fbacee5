package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
)

// assembled is the wired program over an engine.
func assembled(t *testing.T, e *fakeEngine) *parts {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cfg, err := settings.Read()
	must(t, err)
	p := &parts{cfg: cfg, log: slog.New(slog.DiscardHandler), catalog: discovery.Catalog{}}
	p.driver = detect.New(detect.Config{Candidates: []detect.Candidate{{Name: "podman",
		Open: func() runtime.Driver { return e }}}})
	must(t, p.assemble(once))
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestProgressOfPreparing: a caller that waits for an engine to be started and an image to be
// pulled sees it, a client as MCP progress and a person at the terminal as lines; and both happen
// once for all who wait.
func TestProgressOfPreparing(t *testing.T) {
	fresh := func() *fakeEngine {
		e := healthy()
		e.missing = true
		e.err = &runtime.UnavailableError{Engine: "podman", Err: errors.New("it is stopped"), Dormant: true}
		return e
	}
	want := []string{"starting podman", "booting the virtual machine",
		"pulling docker.io/library/python:3.12-slim"}

	t.Run("at the terminal", func(t *testing.T) {
		var lines []string
		r, err := assembled(t, fresh()).bridge.RunDirect(t.Context(), bridge.Direct{
			Code: "print(6 * 7)", Servers: []string{}, Progress: func(l string) { lines = append(lines, l) },
		})
		if err != nil || r.Result.Stdout() != "42\n" || !slices.Equal(lines, want) {
			t.Errorf("got %+v, %v after %q", r.Result, err, lines)
		}
	})

	t.Run("as MCP progress, for two calls at once", func(t *testing.T) {
		e := fresh()
		e.hold = make(chan struct{})
		p := assembled(t, e)
		in, client := io.Pipe()
		back, out := io.Pipe()
		var served sync.WaitGroup
		served.Go(func() {
			if err := p.bridge.Serve(t.Context(), in, out); err != nil {
				t.Error(err)
			}
			out.Close()
		})
		served.Go(func() {
			io.WriteString(client, `{"jsonrpc":"2.0","id":"i","method":"initialize",`+
				`"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`+
				"\n")
			for i := range 2 {
				fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python",`+
					`"arguments":{"code":"print(6 * 7)","servers":[]},"_meta":{"progressToken":"token %d"}}}`+"\n", i, i)
			}
		})
		answers, held, told := 0, true, map[string]string{}
		for lines := bufio.NewScanner(back); answers < 2 && lines.Scan(); {
			var m message
			must(t, json.Unmarshal(lines.Bytes(), &m))
			var n struct{ ProgressToken, Message string }
			switch {
			case m.Method == "notifications/progress" && json.Unmarshal(m.Params, &n) == nil:
				told[n.ProgressToken] += n.Message + "\n"
				if held && strings.Contains(told["token 0"], "pulling") && strings.Contains(told["token 1"], "pulling") {
					close(e.hold)
					held = false
				}
			case string(m.ID) == "0" || string(m.ID) == "1":
				answers++
				if got := parseAnswer(t, m); got.IsError || got.Text != "42\n" {
					t.Errorf("got %+v", got)
				}
			}
		}
		client.Close()
		back.Close()
		served.Wait()
		if e.pulls != 1 || e.starts != 1 {
			t.Errorf("%d pulls and %d starts, want one of each", e.pulls, e.starts)
		}
	})
}
