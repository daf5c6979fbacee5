//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// groups counts what is registered.
type groups struct{ now, ever atomic.Int64 }

func (g *groups) Group(int) func() {
	g.now.Add(1)
	g.ever.Add(1)
	return func() { g.now.Add(-1) }
}

func TestNothingStartsBeforeItIsUsed(t *testing.T) {
	g := &groups{}
	p := open(t, func(c *Config) { c.Guard = g }, fake("normal"))
	if _, err := p.Call(t.Context(), "other", "x", nil); !errors.Is(err, ErrUnknownServer) ||
		!strings.Contains(err.Error(), `"other"`) {
		t.Errorf("unknown server: got %v", err)
	}
	if g.ever.Load() != 0 {
		t.Error("a server was started")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { look(t, p) })
	}
	all.Wait()
	if g.ever.Load() != 1 || g.now.Load() != 1 {
		t.Errorf("%d servers were started for 20 callers, %d are registered", g.ever.Load(), g.now.Load())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if g.now.Load() != 0 {
		t.Error("still registered after Close")
	}
}

// TestSlowStart: a server that takes its time keeps no other one from starting. Callers who give up
// leave under their own contexts, and the start goes on for the rest.
func TestSlowStart(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, nil, named("slow", "slow", fifo), fake("normal"))
	_, err := p.Call(withTimeout(t, 20*time.Millisecond), "slow", "echo", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	done := begin(t.Context(), p, "slow", "echo", nil)
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // blocks until the one server reads
	if err != nil {
		t.Fatal(err)
	}
	call(t, p, "echo", "")
	_ = f.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	missing := fake("normal")
	missing.Command = "no-such-program-anywhere"
	missingPath := missing
	missingPath.Env = map[string]string{"PATH": t.TempDir()}
	withArgs, tilde := missing, missing
	withArgs.Command, tilde.Command = "no-such-program-anywhere --flag", "~/no-such-program-anywhere"
	missingDir := fake("normal")
	missingDir.Dir = mark
	remote := discovery.Server{Name: "fake", URL: "https://example.com/mcp", Transport: "ws"}
	for _, tt := range []struct {
		name   string
		server discovery.Server
		want   []string
	}{
		{name: "no such program", server: missing, want: []string{"no-such-program-anywhere", "install it",
			"/home/u/servers.json"}},
		{name: "no such program in its own PATH", server: missingPath,
			want: []string{"install it", "/home/u/servers.json"}},
		{name: "arguments in the command", server: withArgs, want: []string{"write its arguments into args",
			"/home/u/servers.json"}},
		{name: "a tilde in the command", server: tilde, want: []string{"write the whole path",
			"/home/u/servers.json"}},
		{name: "no such directory", server: missingDir, want: []string{mark}},
		{name: "not a program", server: remote, want: []string{"no command"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, func(c *Config) { c.StartTimeout = time.Second }, tt.server)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					_, err := p.Tools(t.Context(), "fake")
					serverError(t, err, append(tt.want, "starting it")...)
				})
			}
			all.Wait()
		})
	}
	t.Run("the next call tries again", func(t *testing.T) {
		p := open(t, nil, fake("dies once", mark))
		_, err := p.Call(t.Context(), "fake", "echo", nil)
		serverError(t, err, "not yet")
		call(t, p, "echo", "")
	})
}

func TestCloseEndsEverything(t *testing.T) {
	servers := []discovery.Server{fake("normal"), fake("stubborn"), fake("grandchild"), fake("stops reading")}
	for i := range servers {
		servers[i].Name = strconv.Itoa(i)
	}
	g := &groups{}
	p := open(t, func(c *Config) { c.Guard = g }, servers...)
	var pids []int
	for _, s := range servers {
		raw, err := p.Call(t.Context(), s.Name, "seen", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got seen
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, got.PID)
		if s.Args[1] == "grandchild" {
			pids = append(pids, got.Child)
		}
	}
	var calls sync.WaitGroup
	begun := make(chan struct{}, 8)
	for range cap(begun) {
		calls.Go(func() {
			begun <- struct{}{}
			if _, err := p.Call(t.Context(), "1", "never", nil); !errors.Is(err, ErrClosed) {
				t.Errorf("a call in flight: got %v, want ErrClosed", err)
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	var closes sync.WaitGroup
	for range 3 {
		closes.Go(func() {
			if err := p.Close(); err != nil { // also where it takes longer than CloseTimeout
				t.Error(err)
			}
		})
	}
	closes.Wait()
	calls.Wait()
	for _, pid := range pids {
		vanished(t, pid)
	}
	if g.now.Load() != 0 {
		t.Errorf("%d groups are still registered", g.now.Load())
	}
	if _, err := p.Call(t.Context(), "0", "echo", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

func TestCloseDuringStart(t *testing.T) {
	p := open(t, nil, fake("silent"))
	done := make(chan error, 1)
	go func() {
		_, err := p.Tools(t.Context(), "fake")
		done <- err
	}()
	for started := false; !started; { // until the process is there
		p.mu.Lock()
		started = p.current.entries["fake"].live != nil
		p.mu.Unlock()
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestTools(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tt := range []struct {
		name string
		mode string
		want []Tool
	}{
		{name: "one page", mode: "normal", want: []Tool{{Name: "list1", InputSchema: raw(`{"type":"object"}`)}}},
		{name: "five pages", mode: "pages", want: []Tool{{Name: "t0"}, {Name: "t1"}, {Name: "t2"}, {Name: "t3"},
			{Name: "t4"}}},
		{name: "odd definitions", mode: "odd", want: []Tool{
			{Name: "a", InputSchema: raw(`true`)}, {Name: "b", InputSchema: raw(`{"type":["object","null"]}`)},
			{Name: "c"},
			{Name: "d", Title: "D", Description: "a\nb", InputSchema: raw(`{"description":"😀"}`),
				OutputSchema: raw(`{"n":9007199254740993}`)},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, nil, fake(tt.mode))
			got, err := p.Tools(t.Context(), "fake")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestToolsAreKeptUntilTheyChange(t *testing.T) {
	p := open(t, nil, fake("normal"))
	names := func() string {
		var all sync.WaitGroup
		got := make([]string, 10)
		for i := range got {
			all.Go(func() {
				tools, err := p.Tools(t.Context(), "fake")
				if err != nil || len(tools) != 1 {
					t.Errorf("got %v, %v", tools, err)
					return
				}
				got[i] = tools[0].Name
				tools[0].Name = "mine"
			})
		}
		all.Wait()
		slices.Sort(got)
		return strings.Join(slices.Compact(got), " ")
	}
	if got := names() + " " + names(); got != "list1 list1" {
		t.Errorf("got %q, want one list for all", got)
	}
	call(t, p, "change", "")
	if got := names(); got != "list2" {
		t.Errorf("after a change: got %q", got)
	}
	if _, err := p.Call(t.Context(), "fake", "die", nil); err == nil {
		t.Error("no error")
	}
	if got := names(); got != "list1" {
		t.Errorf("from another process: got %q", got)
	}
}

func TestEnvironment(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := fake("normal")
	s.Dir = dir
	s.Env["HOME"], s.Env["OTEL_SERVICE_NAME"] = "/elsewhere", "mine"
	p := open(t, func(c *Config) {
		c.Environ = []string{"PATH=/bin", "HOME=/home/u", "LC_ALL=C", "LANG=de", "ANTHROPIC_API_KEY=x",
			"SSH_AUTH_SOCK=y", "MCP_BRIDGE_DEPTH=2", "MCP_BRIDGE_AUDIT=/x", "OTEL_SERVICE_NAME=bridge",
			"OTEL_EXPORTER_OTLP_HEADERS=key=secret", "TRACEPARENT=z", "SSL_CERT_FILE=/ca", "https_proxy=http://p"}
	}, s)
	var got struct {
		Env []string
		Dir string
	}
	if err := json.Unmarshal([]byte(call(t, p, "environment", "")), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"GORACE=atexit_sleep_ms=0", "HOME=/elsewhere", "LANG=de", "LC_ALL=C", "MCP_BRIDGE_DEPTH=3",
		"OTEL_SERVICE_NAME=mine", "PATH=/bin", "SSL_CERT_FILE=/ca", "TOKEN=s3cr3t-value", "https_proxy=http://p"}
	got.Env = slices.DeleteFunc(got.Env, func(kv string) bool {
		return strings.HasPrefix(kv, guard.MarkVar+"=")
	}) // of the guard's own
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Error(diff)
	}
	if got.Dir != dir {
		t.Errorf("working directory: got %s, want %s", got.Dir, dir)
	}
}
