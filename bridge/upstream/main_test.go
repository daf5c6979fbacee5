//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "server":
			fakeServer(os.Args[2:])
			return
		case "sleeper":
			fakeServer([]string{"sleeper"})
			return
		}
	}
	code := m.Run()
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" { // fuzzing listens for signals until the end
		code = leaks()
	}
	os.Exit(code)
}

// leaks fails the run when goroutines or children are left.
func leaks() int {
	deadline := time.Now().Add(5 * time.Second)
	for goruntime.NumGoroutine() > 1 && time.Now().Before(deadline) {
		goruntime.Gosched()
	}
	if n := goruntime.NumGoroutine(); n > 1 {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%d goroutines are left:\n%s\n", n, buf[:goruntime.Stack(buf, true)])
		return 1
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == nil {
		fmt.Fprintf(os.Stderr, "a child process is left (%d)\n", pid)
		return 1
	}
	return 0
}

// fake is the configuration of one fake server.
func fake(mode string, args ...string) discovery.Server {
	return discovery.Server{
		Name: "fake", Command: os.Args[0], Args: append([]string{"server", mode}, args...),
		// A program built with -race sleeps for a second before it exits unless told not to.
		Env:    map[string]string{"TOKEN": "s3cr3t-value", "GORACE": "atexit_sleep_ms=0"},
		Source: discovery.Source{Path: "/home/u/servers.json"},
	}
}

// editor starts a process in a session of its own, as a server opens an editor for the user, and
// returns its pid.
func editor() int {
	c := exec.Command(os.Args[0], "sleeper")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		panic(err)
	}
	return c.Process.Pid
}

// open makes a pool of servers, which is closed with the test and must then have ended everything.
func open(t *testing.T, change func(*Config), servers ...discovery.Server) *Pool {
	t.Helper()
	cfg := Config{Servers: servers, Log: slog.New(slog.NewTextHandler(&lines{t: t}, nil))}
	if change != nil {
		change(&cfg)
	}
	p := NewPool(cfg)
	t.Cleanup(func() {
		if err := p.Close(); err != nil { // also where it takes longer than CloseTimeout
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// lines writes a log to a test.
type lines struct {
	t  *testing.T
	mu sync.Mutex
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// call calls a tool that must succeed.
func call(t *testing.T, p *Pool, tool, args string) string {
	t.Helper()
	raw, err := p.Call(t.Context(), "fake", tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return string(raw)
}

// begin begins a call, and returns a channel that takes its error.
func begin(ctx context.Context, p *Pool, server, tool string, args json.RawMessage) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx, server, tool, args)
		done <- err
	}()
	return done
}

// live returns the fake's session.
func live(p *Pool) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.entries["fake"].live
}

// seen is what the server saw so far.
type seen struct {
	Waiting   []string
	Cancelled []string
	PID       int
	Child     int
	Lists     int
	Listens   int
}

func look(t *testing.T, p *Pool) (s seen) {
	t.Helper()
	if err := json.Unmarshal([]byte(call(t, p, "seen", "")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// until asks again until the server has seen what ok says.
func until(t *testing.T, p *Pool, ok func(seen) bool) seen {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if s := look(t, p); ok(s) {
			return s
		}
	}
	t.Fatal("the server never saw it")
	return seen{}
}

// vanished waits until a process that needn't be our child is gone, or a zombie.
func vanished(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); goruntime.Gosched() {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil &&
			strings.Contains(string(b), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

// serverError is err as a *ServerError with all of the given texts in it.
func serverError(t *testing.T, err error, texts ...string) *ServerError {
	t.Helper()
	var e *ServerError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *ServerError", err)
	}
	for _, text := range append(texts, `server "fake"`) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not contain %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("error %q contains a secret", err)
	}
	return e
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
