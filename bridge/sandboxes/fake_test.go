package sandboxes

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// fakeGuest is a guest that runs what a test says.
type fakeGuest struct {
	request sandbox.KeepRequest
	run     func(ctx context.Context, r sandbox.Request) (sandbox.Result, error) // nil ends well at once
	open    *atomic.Int64                                                        // guests that are not closed

	closing chan struct{} // as of house
	closes  func()        // the same

	file       string // what it has
	socket     bool   // it has files that can't be packed
	unpackable error  // of Pack
	packing    func() // comes before Pack

	calls atomic.Int64
	end   sync.Once
	done  chan struct{}
	why   string
}

func (g *fakeGuest) Run(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
	if why, over := g.Ended(); over {
		return sandbox.Result{}, &sandbox.EndedError{Reason: why}
	}
	res, err := sandbox.Result{Status: sandbox.StatusOK}, error(nil)
	if g.run != nil {
		res, err = g.run(ctx, r)
	}
	if err != nil {
		return res, err
	}
	if res.Kept == nil {
		res.Kept = &sandbox.KeptState{State: sandbox.StateKept}
	}
	res.Kept.Calls = int(g.calls.Add(1))
	return res, nil
}

func (g *fakeGuest) Undo(context.Context) (sandbox.KeptState, error) {
	return sandbox.KeptState{State: sandbox.StateBefore}, nil
}

func (g *fakeGuest) Exec(context.Context, sandbox.Command) (sandbox.Output, error) {
	return sandbox.Output{Status: sandbox.StatusExit}, nil
}

func (g *fakeGuest) ReadFile(context.Context, string, int64) ([]byte, error) { return nil, nil }

func (g *fakeGuest) WriteFile(context.Context, string, []byte) error { return nil }

func (g *fakeGuest) ListFiles(context.Context, string) ([]sandbox.File, bool, error) {
	return nil, false, nil
}

func (g *fakeGuest) ZipDir(context.Context, string, int64, io.Writer) error { return nil }

// Pack gives one file, whose content tells guests apart.
func (g *fakeGuest) Pack(_ context.Context, _ string, offset int64) (sandbox.Piece, error) {
	if g.packing != nil {
		g.packing()
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "file", Typeflag: tar.TypeReg, Size: int64(len(g.file))})
	if err == nil {
		_, err = io.WriteString(w, g.file)
	}
	all := append(b.Bytes(), make([]byte, 1024-b.Len())...)
	const size = 600
	p := sandbox.Piece{Data: all[offset:min(offset+size, int64(len(all)))], More: offset+size < int64(len(all))}
	if g.socket {
		p.Left = []sandbox.File{{Name: "a.sock", Type: "other"}, {Name: "big", Type: "too_large", Size: 1 << 40}}
	}
	return p, errors.Join(err, g.unpackable)
}

func (g *fakeGuest) Unpack(_ context.Context, _ string, archive []byte) error {
	r := tar.NewReader(bytes.NewReader(archive))
	if _, err := r.Next(); err != nil {
		return err
	}
	data, err := io.ReadAll(r)
	g.file += string(data)
	return err
}

func (g *fakeGuest) Note() string { return "" }

func (g *fakeGuest) Done() <-chan struct{} { return g.done }

func (g *fakeGuest) Ended() (string, bool) {
	select {
	case <-g.done:
		return g.why, true
	default:
		return "", false
	}
}

// dies ends the guest, as if by itself.
func (g *fakeGuest) dies(why string) {
	g.end.Do(func() {
		g.why = why
		close(g.done)
	})
}

func (g *fakeGuest) Close() error {
	g.dies("it was closed")
	if g.closing != nil {
		g.closing <- struct{}{}
		<-g.closing
	}
	if g.closes != nil {
		g.closes()
	}
	g.open.Add(-1)
	return nil
}

// house is a Registry whose guests are fakes.
type house struct {
	*Registry
	t    *testing.T
	open atomic.Int64
	made []*fakeGuest
	keep error // of the next guest

	making  chan struct{} // takes a value of each guest that is made, and gives one; nil for at once
	closing chan struct{} // the same of each that is closed

	makes  func(ctx context.Context) error // comes before each guest; nil for nothing
	closes func()                          // comes before a guest is closed; nil for nothing

	run func(ctx context.Context, r sandbox.Request) (sandbox.Result, error)
}

// within runs a test in a bubble, with a Registry that is closed at its end. No guest may be left.
func within(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	saving(t, nil, test)
}

// saving does the same with one that saves sandboxes in a store, unless that is nil.
func saving(t *testing.T, s *hibernation.Store, test func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t}
		var saves *Hibernation
		if s != nil {
			saves = &Hibernation{Store: s, Log: slog.New(slog.DiscardHandler), Environment: func(_ context.Context,
				name string, _ func(), p runtime.Progress) (*sandbox.Environment, error) {
				p("looking")
				if name != "data" {
					return nil, errors.New("there is no such environment")
				}
				return &sandbox.Environment{Name: name}, nil
			}}
		}
		h.Registry = New(Config{
			Hibernation: saves,
			Keep: func(ctx context.Context, r sandbox.KeepRequest) (Guest, error) {
				if h.makes != nil {
					if err := h.makes(ctx); err != nil {
						return nil, err
					}
				}
				if h.making != nil {
					h.making <- struct{}{}
					<-h.making
				}
				if h.keep != nil {
					return nil, h.keep
				}
				g := &fakeGuest{request: r, run: h.run, open: &h.open, closing: h.closing, closes: h.closes,
					done: make(chan struct{})}
				g.calls.Store(int64(r.Calls))
				h.open.Add(1)
				h.made = append(h.made, g)
				return g, nil
			},
			Idle: 30 * time.Minute, MaxAge: 8 * time.Hour, Most: 12, LongestCall: time.Minute,
			Limits: runtime.Limits{Memory: 512 << 20},
		})
		test(t, h)
		h.Close()
		if n := h.open.Load(); n != 0 {
			t.Errorf("%d guests are left", n)
		}
	})
}

// locked changes a guest that a timer may save: timers take the lock, too.
func (h *house) locked(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// begin begins a sandbox and runs code in it.
func (h *house) begin(owner string) string {
	h.t.Helper()
	c, err := h.Begin(owner, Settings{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Leave()
	if _, err := c.Run(h.t.Context(), sandbox.Request{}, nil); err != nil {
		h.t.Fatal(err)
	}
	return c.ID()
}

// call runs code in a sandbox.
func (h *house) call(owner, id string) (sandbox.Result, error) {
	c, err := h.Enter(h.t.Context(), owner, id, nil)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer c.Leave()
	return c.Run(h.t.Context(), sandbox.Request{}, nil)
}
