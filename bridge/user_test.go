package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
)

// owner connects to a bridge as its own user does.
func owner(t *testing.T, b *Bridge) func(method string, params any) (json.RawMessage, error) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		b.ServeUser(ctx, l)
	}()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	lines := jsonrpc.NewLines(conn, 0, nil)
	rpc := jsonrpc.NewConn(t.Context(), lines, jsonrpc.Options{MaxRequests: 1})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = rpc.Serve(jsonrpc.NewReader(conn, userMessage), lines, 0)
	}()
	t.Cleanup(func() {
		cancel()
		<-served
		<-ended
	})
	return func(method string, params any) (json.RawMessage, error) {
		return rpc.Call(t.Context(), rpc.NewID(), method, params)
	}
}

// TestUser: the bridge's own user sees the sandboxes of all clients, works in them, and is
// recorded.
func TestUser(t *testing.T) {
	b, path := audited(t, func(c *Config) { lasting(t, c) })
	first, second := connect(t, b), connect(t, b)
	id, other := first.begin(), second.begin()
	call := owner(t, b)
	raw, err := call(UserList, nil)
	var all []UserSandbox
	if err != nil || json.Unmarshal(raw, &all) != nil || len(all) != 2 || all[0].Calls != 1 ||
		all[0].Status != "active" {
		t.Fatalf("%v, %s", err, raw)
	}
	for _, of := range []string{id, other} {
		args := json.RawMessage(`{"sandbox_id":"` + of + `","command":"ls"}`)
		raw, err := call(UserCall, UserTool{Tool: "sandbox_exec", Sandbox: of, Arguments: args})
		if err != nil || !strings.Contains(string(raw), `"stdout":"ls"`) {
			t.Errorf("%v, %s", err, raw)
		}
	}
	raw, err = call(
		UserCall,
		UserTool{Tool: "run_python", Sandbox: id, Arguments: json.RawMessage(`{"code":"count"}`)},
	)
	if err != nil || !strings.Contains(string(raw), `"stdout":"2\n"`) {
		t.Errorf("%v, %s", err, raw)
	}
	raw, err = call(
		UserCall,
		UserTool{Tool: "run_python", Sandbox: id, Arguments: json.RawMessage(`{"code":"tool"}`)},
	)
	if err != nil || !strings.Contains(string(raw), "github") || strings.Contains(string(raw), "github.me{") {
		t.Errorf("the user's code has called a tool: %v, %s", err, raw)
	}
	for _, tc := range []struct {
		method, want string
		params       any
	}{
		{UserCall, `there is no sandbox "none"`, UserTool{Tool: "sandbox_exec", Sandbox: "none"}},
		{UserCall, "there is no such tool", UserTool{Tool: "read_output", Sandbox: id}},
		{UserCall, "there is no such tool", "x"},
		{"tools/list", "there is no such method", nil},
	} {
		if _, err := call(tc.method, tc.params); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %v: %v, want %s", tc.method, tc.params, err, tc.want)
		}
	}
	if _, err := call(UserCall, UserTool{Tool: "sandbox_kill", Sandbox: id,
		Arguments: json.RawMessage(`{"sandbox_id":"` + id + `"}`)}); err != nil {
		t.Error(err)
	}
	if r := first.call(in(id, "count")); !strings.Contains(r.Content[0].Text,
		"has ended: the user has ended it by mcp-bridge sandbox kill") {
		t.Errorf("after its end by the user: %s", r.Content[0].Text)
	}
	recorded := map[string]int{}
	for _, r := range readRecords(t, path) {
		if r.Client == "mcp-bridge sandbox" && (r.Kind == "sandbox" || r.Sandbox == id) {
			recorded[r.Kind]++
		}
	}
	if recorded["sandbox"] != 3 || recorded["run"] != 2 {
		t.Errorf("of the user are recorded: %v", recorded)
	}
}

// TestUserStopped: a terminal that doesn't read what a command prints doesn't keep the sandbox.
func TestUserStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := keeping(t, nil)
		box, err := b.cfg.Sandboxes.Begin("me", sandboxes.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Guest(t.Context(), nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		box.Leave()
		terminal, conn := net.Pipe()
		defer terminal.Close()
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.serveUser(t.Context(), conn)
		}()
		if _, err := fmt.Fprintf(terminal, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"tool":"sandbox_exec",`+
			`"sandbox":%q,"arguments":{"sandbox_id":%[2]q,"command":"yes; yes; yes"}}}`+"\n", UserCall,
			box.ID()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		<-served
		if took := time.Since(begin); took < userStall || took > userStall+userGrace {
			t.Errorf("the connection was ended after %v", took)
		}
		next, err := b.cfg.Sandboxes.Enter(t.Context(), "me", box.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		next.Leave()
	})
}

// exhausted is a listener that accepts after two failures, and once.
type exhausted struct {
	net.Listener
	conn   net.Conn
	tries  int
	closed chan struct{}
}

func (l *exhausted) Accept() (net.Conn, error) {
	l.tries++
	switch {
	case l.tries < 3:
		return nil, syscall.EMFILE
	case l.tries == 3:
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *exhausted) Close() error {
	close(l.closed)
	return nil
}

// TestUserAccepts: a connection that can't be accepted without a free descriptor isn't the last
// one.
func TestUserAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b, _ := keeping(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		terminal, conn := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.ServeUser(ctx, &exhausted{conn: conn, closed: make(chan struct{})})
		}()
		if _, err := fmt.Fprintf(terminal, `{"jsonrpc":"2.0","id":1,"method":%q}`+"\n", UserList); err != nil {
			t.Fatal(err)
		}
		answer, err := bufio.NewReader(terminal).ReadString('\n')
		if err != nil || !strings.Contains(answer, `"result":[]`) {
			t.Errorf("got %s, %v", answer, err)
		}
		cancel()
		<-served
		if n := strings.Count(log.String(), "mcp-bridge sandbox can't connect"); n != 1 {
			t.Errorf("%d lines in the log: %s", n, log.String())
		}
	})
}
