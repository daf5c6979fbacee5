package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// overheard are the types of the frames that guests were sent, pings left out, in order, each guest's apart.
type overheard struct {
	runtimetest.Local
	waits chan struct{} // gets one for each expect

	mu     sync.Mutex
	guests []*strings.Builder
}

func (o *overheard) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isProbe(spec) {
		return probed(std, "3.12.0 1")
	}
	o.mu.Lock()
	heard := new(strings.Builder)
	o.guests = append(o.guests, heard)
	o.mu.Unlock()
	std.Stdin = io.TeeReader(std.Stdin, writerFunc(func(p []byte) (int, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, kind := range []string{entrypoint.TypeExpect, entrypoint.TypeExecute} {
			if bytes.Contains(p, []byte(`{"type":"`+kind+`"`)) {
				heard.WriteString(kind + " ")
			}
		}
		if bytes.Contains(p, []byte(`{"type":"expect"`)) {
			o.waits <- struct{}{}
		}
		return len(p), nil
	}))
	return o.Local.Run(ctx, spec, std)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestExpect: a guest that waits is told what to expect, one that a run waits for isn't, and the code has what its run names.
func TestExpect(t *testing.T) {
	o := &overheard{waits: make(chan struct{}, 100)}
	cfg := config()
	cfg.Standby, cfg.StandbyIdle = 1, time.Hour
	s, err := sandbox.New(o, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(providers []entrypoint.Provider, want string) {
		t.Helper()
		s.Expect(shop("echo"), nil)
		code := "print(LOADED_MCP_SERVERS, 'mcp_shop' in globals(), __import__('os').environ['MCP_AVAILABLE_SERVERS'])"
		r, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: 30 * time.Second, Providers: providers}, hostFunc(echo))
		if err != nil || r.Stdout() != want {
			t.Errorf("got %q, %s %s, %v, want %q", r.Stdout(), r.Status, r.Message, err, want)
		}
		select {
		case <-o.waits: // the next guest does
		case <-time.After(time.Minute):
			t.Fatal("no guest was told what to expect")
		}
	}
	with := "('shop',) True [{\"name\": \"shop\", \"alias\": \"shop\"}]\n"
	run(shop("echo"), with)
	run(shop("echo"), with)
	run(nil, "() False []\n")
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, want := range []string{"execute ", "expect execute ", "expect execute "} {
		if got := o.guests[i].String(); got != want {
			t.Errorf("guest %d was sent %q, want %q", i, got, want)
		}
	}
}

// deafened is an engine whose second container says that it is ready and reads nothing, not even what it is told to expect.
type deafened struct {
	runtimetest.Local
	ready   chan struct{} // gets one when that container is
	started atomic.Int32
}

func (d *deafened) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isProbe(spec) {
		return probed(std, "3.12.0 1")
	}
	if d.started.Add(1) != 2 {
		return d.Local.Run(ctx, spec, std)
	}
	if _, err := transcript.SkipSource(bufio.NewReaderSize(std.Stdin, 16)); err != nil {
		return runtime.Exit{}, err
	}
	fmt.Fprintln(std.Stdout, ready)
	d.ready <- struct{}{}
	<-ctx.Done()
	return runtime.Exit{Code: 137}, nil
}

// TestExpectOfADeafGuest: a guest that doesn't even read what it is told to expect is found by its ping, another one has its run, and
// nothing is left.
func TestExpectOfADeafGuest(t *testing.T) {
	d := &deafened{ready: make(chan struct{}, 1)}
	cfg := config()
	cfg.Standby, cfg.StandbyIdle = 1, time.Hour
	s, err := sandbox.New(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		t.Helper()
		s.Expect(shop("echo"), nil)
		r, err := s.Run(t.Context(), sandbox.Request{Code: "print(1)", Timeout: 30 * time.Second}, hostFunc(echo))
		if err != nil || r.Stdout() != "1\n" {
			t.Errorf("got %q, %s %s, %v", r.Stdout(), r.Status, r.Message, err)
		}
	}
	run()
	<-d.ready
	run()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestNobodyReadsTheLog: a start that fails, and is told to a log that nobody reads, holds up no run.
func TestNobodyReadsTheLog(t *testing.T) {
	var open chan struct{} // of the bubble
	change := func(c *sandbox.Config) {
		open = make(chan struct{})
		c.Log = slog.New(stuck{open: open})
	}
	bubble(t, change, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() {
			fl.broken = func() error { return errors.New("out of order") }
			for _, kill := range fl.alive {
				kill()
			}
		})
		if err := s.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		fl.set(func() { fl.broken = nil })
		call(t, s, "1ms")
		close(open)
	})
}

// stuck is a log that takes no warning before it is open.
type stuck struct {
	slog.Handler
	open chan struct{}
}

func (stuck) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (s stuck) Handle(context.Context, slog.Record) error {
	<-s.open
	return nil
}
