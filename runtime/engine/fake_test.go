package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// fake is an engine in this process. A container ends when it is killed or removed, or at once with
// code 7 where instant is set.
type fake struct {
	Client
	home    string
	instant bool
	forgets bool   // removes a container that has ended before it can be inspected
	hang    string // the request that is not answered until its context ends
	refuses string // the request that is refused
	why     error  // what it says then; nil means errRefused
	dead    bool   // nothing listens any more

	mu         sync.Mutex
	asked      []string
	containers map[string]chan struct{} // by name, closed when it has ended
	release    chan struct{}            // ends a hang, where there is one
}

func newFake() *fake { return &fake{home: "here", containers: map[string]chan struct{}{}} }

var errRefused = errors.New("the engine refuses")

// ask notes a request, and is how it goes wrong.
func (f *fake) ask(ctx context.Context, what string) error {
	f.mu.Lock()
	f.asked = append(f.asked, what)
	hang, refuses, dead := f.hang == what, f.refuses == what, f.dead
	f.mu.Unlock()
	switch {
	case dead:
		return ErrUnreachable
	case hang:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.release:
		}
	case refuses:
		return cmp.Or(f.why, errRefused)
	}
	return nil
}

func (f *fake) count(what string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a == what {
			n++
		}
	}
	return n
}

func (f *fake) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.containers)
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// end ends a container, and forgets it with gone.
func (f *fake) end(id string, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	done, ok := f.containers[id]
	if !ok {
		return
	}
	select {
	case <-done:
	default:
		close(done)
	}
	if gone {
		delete(f.containers, id)
	}
}

func (f *fake) done(id string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.containers[id]
}

func (f *fake) Facts() runtime.Facts           { return runtime.Facts{Engine: "fake", Endpoint: f.home} }
func (f *fake) Home() string                   { return f.home }
func (f *fake) There() bool                    { f.mu.Lock(); defer f.mu.Unlock(); return !f.dead }
func (f *fake) Ping(ctx context.Context) error { return f.ask(ctx, "ping") }
func (f *fake) Close()                         {}

func (f *fake) Create(ctx context.Context, name string, _ runtime.Spec) (string, error) {
	if err := f.ask(ctx, "create"); err != nil {
		return "", err
	}
	f.set(func() { f.containers[name] = make(chan struct{}) })
	return name, nil
}

// stream says "out" and then nothing until the container has ended.
type stream struct {
	io.Reader
	cut func()
}

func (s stream) Write(p []byte) (int, error) { return len(p), nil }
func (s stream) CloseWrite() error           { return nil }
func (s stream) Close() error                { s.cut(); return nil }

func (f *fake) Attach(ctx context.Context, id string) (Stream, error) {
	if err := f.ask(ctx, "attach"); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	closed, done := make(chan struct{}), f.done(id)
	go func() {
		_, _ = w.Write([]byte("\x01\x00\x00\x00\x00\x00\x00\x03out"))
		select {
		case <-done:
		case <-closed:
		}
		w.Close()
	}()
	return stream{r, sync.OnceFunc(func() { close(closed); r.Close() })}, nil
}

func (f *fake) Wait(ctx context.Context, id string, begun func()) (int, error) {
	done := f.done(id)
	if err := f.ask(ctx, "wait"); err != nil {
		return 0, err
	}
	begun()
	select {
	case <-done:
		return 7, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (f *fake) Start(ctx context.Context, id string) error {
	if err := f.ask(ctx, "start"); err != nil {
		return err
	}
	if f.instant {
		f.end(id, f.forgets)
	}
	return nil
}

func (f *fake) Kill(ctx context.Context, id string) error {
	if err := f.ask(ctx, "kill"); err != nil {
		return err
	}
	f.end(id, false)
	return nil
}

func (f *fake) Inspect(ctx context.Context, id string) (runtime.Exit, State, error) {
	if err := f.ask(ctx, "inspect"); err != nil {
		return runtime.Exit{}, Unknown, err
	}
	done := f.done(id)
	if done == nil {
		return runtime.Exit{}, Removed, nil
	}
	select {
	case <-done:
		return runtime.Exit{Code: 7}, Ended, nil
	default:
		return runtime.Exit{}, Unknown, nil
	}
}

func (f *fake) OutOfMemory(context.Context, string) bool { return true }

func (f *fake) Remove(ctx context.Context, id string) error {
	if err := f.ask(ctx, "remove"); err != nil {
		return err
	}
	f.end(id, true)
	return nil
}

// engineOf returns an Engine that finds f.
func engineOf(f *fake) *Engine[*fake] {
	return New(Config[*fake]{
		Name:  "fake",
		Times: Times{Cleanup: 8 * time.Second, Silence: 3 * time.Second, Retry: 2 * time.Second},
		Look:  func(ctx context.Context) (*fake, error) { return f, f.ask(ctx, "look") },
	})
}

var spec = runtime.Spec{
	Image: "i", Command: []string{"c"}, User: "1:1", MaxAge: time.Hour, Owner: runtime.Self(),
	Limits: runtime.Limits{Memory: 1, PIDs: 1, NoFile: 1, Shm: 1},
}

// quiet is a Stdio whose input gives nothing until the test is over.
func quiet(t *testing.T) (std runtime.Stdio, out *bytes.Buffer) {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	out = new(bytes.Buffer)
	return runtime.Stdio{Stdin: r, Stdout: out, Stderr: io.Discard}, out
}

// inBubble runs a test in a bubble of its own, with an Engine that finds f.
func inBubble(t *testing.T, f *fake, test func(t *testing.T, e *Engine[*fake])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.release = make(chan struct{})
		e := engineOf(f)
		test(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
