package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// sources is an engine that keeps how long the source was that each guest was sent.
type sources struct {
	runtimetest.Local
	mu       sync.Mutex
	sizes    []int
	compiled int // containers in which the compiler ran
	broken   int // of which so many of the first fail
}

func (e *sources) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isProbe(spec) && !isCompiler(spec) {
		return probed(std, "3.12.0 1")
	}
	if isProbe(spec) {
		e.mu.Lock()
		e.compiled++
		fails := e.compiled <= e.broken
		e.mu.Unlock()
		if fails {
			return runtime.Exit{Code: 137}, nil
		}
		return e.Local.Run(ctx, spec, std)
	}
	var head bytes.Buffer
	first := make([]byte, 1)
	for head.Len() < 20 && first[0] != '\n' {
		if _, err := std.Stdin.Read(first); err != nil {
			return runtime.Exit{}, err
		}
		head.Write(first)
	}
	var n, modules, code int
	if _, err := fmt.Sscan(head.String(), &n, &modules, &code); err != nil {
		return runtime.Exit{}, err
	}
	n += modules + code
	e.mu.Lock()
	e.sizes = append(e.sizes, n)
	e.mu.Unlock()
	std.Stdin = io.MultiReader(&head, std.Stdin)
	return e.Local.Run(ctx, spec, std)
}

func (e *sources) seen() (last, compiled int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sizes[len(e.sizes)-1], e.compiled
}

// runUntilSent runs code until a guest is sent more than the first one was: the guest's code, which was made meanwhile.
func (e *sources) runUntilSent(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	plain := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		r, err := s.Run(t.Context(), sandbox.Request{Code: "pass", Timeout: 30 * time.Second}, hostFunc(echo))
		if err != nil || r.Status != sandbox.StatusOK {
			t.Fatalf("got %+v, %v", r, err)
		}
		size, _ := e.seen()
		if plain == 0 {
			plain = size
		}
		if size > plain {
			return
		}
	}
	t.Fatal("no guest was sent the code")
}

// TestCompiledOnce: after some runs the guest's code is made, once, and sent along from then on; a guest that has it runs code and tells of
// errors as any other.
func TestCompiledOnce(t *testing.T) {
	e := &sources{}
	s, err := sandbox.New(e, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(code string) sandbox.Result {
		t.Helper()
		r, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: 30 * time.Second}, hostFunc(echo))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	e.runUntilSent(t, s)
	if r := run("await mcp_none.tool()"); r.Status != sandbox.StatusError || r.Error == nil || r.Error.Type != "NameError" || r.Error.Line != 1 {
		t.Errorf("got %+v, %+v", r, r.Error)
	}
	if r := run("import asyncio\nawait asyncio.sleep(0)\nprint(2)"); r.Stdout() != "2\n" {
		t.Errorf("got %+v", r)
	}
	if _, compiled := e.seen(); compiled != 1 {
		t.Errorf("it was compiled %d times, want once", compiled)
	}
}

// TestCompiledAfterTheRun: what makes the code takes no time from a run's.
func TestCompiledAfterTheRun(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		for range 3 {
			call(t, s, "1s")
		}
		over := time.Now()
		time.Sleep(time.Second)
		fl.mu.Lock()
		defer fl.mu.Unlock()
		if len(fl.makes) != 1 || fl.makes[0].Before(over) {
			t.Errorf("it was made at %v, want once, not before %v", fl.makes, over)
		}
	})
}

// TestCompiledAfterFailure: a compiler that failed is tried again, after twice as many guests.
func TestCompiledAfterFailure(t *testing.T) {
	e := &sources{broken: 1}
	s, err := sandbox.New(e, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e.runUntilSent(t, s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if guests := len(e.sizes); e.compiled != 2 || guests <= 3+6 {
		t.Errorf("it was tried %d times for %d guests, want twice for more than 9", e.compiled, guests)
	}
}
