package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
		return errRefused
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

// ImportImage closes what it is given, as an HTTP request does.
func (f *fake) ImportImage(_ context.Context, _ string, tar io.Reader) error {
	if c, ok := tar.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

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

// TestRun: the exit code is right whether or not the engine has removed the container before it is
// asked, the end of the streams is told before the engine is asked for more, and nothing is left.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name    string
		forgets bool
		want    runtime.Exit
	}{
		{"inspected", false, runtime.Exit{Code: 7}},
		{"gone already", true, runtime.Exit{Code: 7, OOMKilled: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.instant, f.forgets = true, tt.forgets
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, out := quiet(t)
				told := 0
				std.Ended = func() { told++ }
				std.ExitUnneeded = func() bool {
					if told != 1 || f.count("inspect")+f.count("remove") > 0 {
						t.Errorf("its end was told %d times, and the engine was asked %q", told, f.asked)
					}
					return false
				}
				exit, err := e.Run(t.Context(), spec, std)
				if err != nil || exit != tt.want || out.String() != "out" || f.left() > 0 {
					t.Errorf("got %+v, %q, %v; %d left", exit, out, err, f.left())
				}
			})
		})
	}
}

// TestSilentEngine: whatever the engine leaves unanswered, a run ends: with its caller's patience where
// the engine still answers a ping, and soon where it doesn't. What was created is removed.
func TestSilentEngine(t *testing.T) {
	for _, at := range []string{"create", "attach", "wait", "start", "kill", "inspect", "remove"} {
		t.Run(at, func(t *testing.T) {
			f := newFake()
			f.hang = at
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, _ := quiet(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun := time.Now()
				_, err := e.Run(ctx, spec, std)
				if took := time.Since(begun); took > time.Minute+2*e.Times.Cleanup {
					t.Errorf("it took %v", took)
				}
				if err == nil {
					t.Error("it has ended well")
				}
				close(f.release)
				f.set(func() { f.hang = "" })
				e.Settle()
				if f.left() > 0 {
					t.Errorf("%d containers are left", f.left())
				}
			})
		})
	}
}

// TestStoppedEngine: one that answers nothing at all is found out without waiting for the caller.
func TestStoppedEngine(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		stopped := make(chan struct{})
		e.cfg.Look = func(context.Context) (*fake, error) { return f, nil }
		f.hang = "ping"
		create := func(ctx context.Context, _ string) (string, error) {
			select {
			case <-stopped:
				return "", errRefused
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		c, err := e.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		std, _ := quiet(t)
		begun := time.Now()
		_, started, err := e.Attempt(t.Context(), c, spec, create, std)
		var un *runtime.UnavailableError
		if took := time.Since(begun); started || !errors.As(err, &un) || !un.Gone || took > 3*e.Times.Silence {
			t.Errorf("got %v after %v", err, took)
		}
		f.set(func() { f.hang = "" })
		close(stopped)
	})
}

// TestCreatedTooLate: a container that is made after its run has given up is removed all the same.
func TestCreatedTooLate(t *testing.T) {
	f := newFake()
	f.hang = "create"
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		ctx, cancel := context.WithCancel(t.Context())
		std, _ := quiet(t)
		time.AfterFunc(time.Second, cancel)
		if _, err := e.Run(ctx, spec, std); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want it cancelled", err)
		}
		close(f.release)
		e.Settle()
		if f.count("create") != 1 || f.count("remove") < 2 || f.left() > 0 {
			t.Errorf("asked %q; %d left", f.asked, f.left())
		}
	})
}

// TestTooOld: a container that outlives its age is killed.
func TestTooOld(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		std, _ := quiet(t)
		exit, err := e.Run(t.Context(), spec, std)
		if err != nil || exit.Code != 7 || f.count("kill") != 1 {
			t.Errorf("got %+v, %v; asked %q", exit, err, f.asked)
		}
	})
}

// TestOwed: a container that the engine doesn't remove is asked for ever more seldom, is said to be
// left, and is removed once the engine does so again.
func TestOwed(t *testing.T) {
	for _, at := range []string{"refuses", "hangs", "dead"} {
		t.Run(at, func(t *testing.T) {
			f := newFake()
			f.instant = true
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, _ := quiet(t)
				std.ExitUnneeded = func() bool {
					f.set(func() {
						switch at {
						case "refuses":
							f.refuses = "remove"
						case "hangs":
							f.hang = "remove"
						default:
							f.dead = true
						}
					})
					return true
				}
				_, err := e.Run(t.Context(), spec, std)
				var un *runtime.UnavailableError
				if err == nil || errors.As(err, &un) != (at == "dead") {
					t.Errorf("got %v", err)
				}
				if n := f.count("remove"); at == "refuses" && (n < 5 || n > 20) {
					t.Errorf("it was asked %d times in %v", n, e.Times.Cleanup)
				}
				if f.left() != 1 {
					t.Errorf("%d are left", f.left())
				}
				f.set(func() { f.refuses, f.hang, f.dead = "", "", false })
				e.Settle()
				if f.left() > 0 {
					t.Error("it is still there")
				}
			})
		})
	}
}

// TestOwedToAnother: a container isn't taken for removed because another engine doesn't know it.
func TestOwedToAnother(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		e.owe("there", "elsewhere")
		time.Sleep(10 * time.Minute)
		if f.count("look") == 0 || f.count("remove") > 0 {
			t.Errorf("asked %q", f.asked)
		}
	})
}

// TestConnectOnce: all who want an engine share one look, and give up by themselves.
func TestConnectOnce(t *testing.T) {
	f := newFake()
	f.hang = "look"
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Facts(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := e.Facts(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(f.release)
		all.Wait()
		if n := f.count("look"); n != 1 {
			t.Errorf("looked %d times", n)
		}
		f.set(func() { f.dead = true })
		if _, err := e.Facts(t.Context()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("without a socket: got %v", err)
		}
	})
}

// TestCarry: the streams are told apart, and what is wrong with one is said.
func TestCarry(t *testing.T) {
	piece := func(of byte, length uint32, text string) string {
		return string(append(binary.BigEndian.AppendUint32([]byte{of, 0, 0, 0}, length), text...))
	}
	for _, tt := range []struct{ name, in, out, err, fails string }{
		{"both", piece(1, 2, "ab") + piece(2, 1, "c") + piece(1, 1, "d"), "abd", "c", ""},
		{"nothing", "", "", "", ""},
		{"cut in a header", "\x01\x00", "", "", "unexpected EOF"},
		{"the engine's own words", piece(3, 4, "oops"), "", "", "oops"},
		{"no such stream", piece(9, 1, "x"), "", "", "number 9"},
		{"a length beyond the end", piece(1, 1<<31, "x"), "x", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := carry(stream{strings.NewReader(tt.in), func() {}},
				runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if out.String() != tt.out || errs.String() != tt.err || !strings.Contains(fmt.Sprint(err), tt.fails) ||
				(err == nil) != (tt.fails == "") {
				t.Errorf("got %q, %q, %v", &out, &errs, err)
			}
		})
	}
}

// TestImageMissing: an image that is gone is the run's error, and is not the engine's going away.
func TestImageMissing(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		c, err := e.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		create := func(context.Context, string) (string, error) {
			return "", &runtime.ImageError{Ref: "i", Err: errRefused}
		}
		std, _ := quiet(t)
		_, _, err = e.Attempt(t.Context(), c, spec, create, std)
		var image *runtime.ImageError
		if !errors.As(err, &image) || slices.Contains(f.asked, "ping") {
			t.Errorf("got %v; asked %q", err, f.asked)
		}
	})
}

// TestImportLeavesTheFile: a file is its caller's to close.
func TestImportLeavesTheFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, newFake(), func(t *testing.T, e *Engine[*fake]) {
		if err := e.ImportImage(t.Context(), "localhost/x", f); err != nil {
			t.Error(err)
		}
	})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
