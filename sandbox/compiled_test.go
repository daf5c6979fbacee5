package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// heads is an engine that notes the first line of what each guest is sent.
type heads struct {
	runtimetest.Local
	mu       sync.Mutex
	code     []int // bytes of compiled code that guests were sent, in order
	compiled int   // how often the compiler ran
}

func (e *heads) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		e.mu.Lock()
		e.compiled++
		e.mu.Unlock()
		return e.Local.Run(ctx, spec, std)
	}
	var head bytes.Buffer
	var boot, modules, code int
	if _, err := fmt.Fscanln(io.TeeReader(std.Stdin, &head), &boot, &modules, &code); err != nil {
		return runtime.Exit{}, err
	}
	e.mu.Lock()
	e.code = append(e.code, code)
	e.mu.Unlock()
	std.Stdin = io.MultiReader(&head, std.Stdin)
	return e.Local.Run(ctx, spec, std)
}

// TestCompiledOnce holds that the guest's source is compiled once, after three guests, that guests
// are sent the code from then on, and that these run code and report errors as any other.
func TestCompiledOnce(t *testing.T) {
	e := &heads{}
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
	sent := func() (last, guests, compiled int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.code[len(e.code)-1], len(e.code), e.compiled
	}
	for last, guests := 0, 0; last == 0; last, guests, _ = sent() {
		if guests == 200 {
			t.Fatal("200 guests were sent no code")
		}
		if r := run("pass"); r.Status != sandbox.StatusOK {
			t.Fatalf("got %+v", r)
		}
	}
	if _, guests, _ := sent(); guests <= 3 {
		t.Errorf("guest %d was sent code", guests)
	}
	r := run("await mcp_none.tool()")
	if r.Status != sandbox.StatusError || r.Error == nil || r.Error.Type != "NameError" || r.Error.Line != 1 {
		t.Errorf("got %+v, %+v", r, r.Error)
	}
	if r := run("import asyncio\nawait asyncio.sleep(0)\nprint(2)"); r.Stdout() != "2\n" {
		t.Errorf("got %+v", r)
	}
	if last, _, compiled := sent(); compiled != 1 || last == 0 {
		t.Errorf("the compiler ran %d times and the last guest was sent %d bytes of code", compiled, last)
	}
}

// TestCompileAgain holds that the compiler runs after a run's container is gone and while there is
// room for its own, and that a try that failed is repeated after twice as many guests.
func TestCompileAgain(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		for i, want := range []int{0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3} {
			before := fl.compiled()
			call(t, s, "1s")
			if fl.compiled() != before {
				t.Errorf("the compiler ran during run %d", i)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if got := fl.compiled(); got != want {
				t.Errorf("after %d runs the compiler ran %d times, want %d", i+1, got, want)
			}
		}
	})
	bubble(t, func(c *sandbox.Config) { c.Standby, c.MaxContainers, c.MaxRuns = 0, 1, 2 },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { call(t, s, "1s") })
			}
			all.Wait()
			if got := fl.compiled(); got != 0 {
				t.Errorf("the compiler ran %d times while runs waited for the only container", got)
			}
			time.Sleep(time.Second)
			if got := fl.compiled(); got != 1 {
				t.Errorf("the compiler ran %d times afterwards, want once", got)
			}
		})
}
