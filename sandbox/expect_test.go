package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
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

// TestExpectOfADeafGuest: that a guest is told what to expect holds up nobody.
func TestExpectOfADeafGuest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		s.Expect(shop("echo"), nil)
		for range 3 {
			call(t, s, "1ms")
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}
