package sandboxes

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func storeIn(t *testing.T, dir string) *hibernation.Store {
	t.Helper()
	s, err := hibernation.Open(hibernation.Config{Dir: dir, Log: slog.New(slog.DiscardHandler),
		Key: func(bool) ([]byte, error) { return bytes.Repeat([]byte{1}, hibernation.KeySize), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// filled begins a sandbox with settings and a file.
func (h *house) filled(owner, file string, env *sandbox.Environment, s Settings) string {
	h.t.Helper()
	c, err := h.Begin(owner, s)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Leave()
	if _, err := c.Run(h.t.Context(), sandbox.Request{Environment: env}, nil); err != nil {
		h.t.Fatal(err)
	}
	h.locked(func() { h.last().file = file })
	return c.ID()
}

func (h *house) last() *fakeGuest { return h.made[len(h.made)-1] }

// idle lets the idle time pass.
func (h *house) idle() {
	h.All() // takes the lock: what a timer does then sees what the test has set
	time.Sleep(31 * time.Minute)
	synctest.Wait()
}

// woken runs code in a sandbox, and returns the Call.
func (h *house) woken(owner, id string) (*Call, sandbox.Result, error) {
	c, err := h.Enter(h.t.Context(), owner, id, nil)
	if err != nil {
		return nil, sandbox.Result{}, err
	}
	defer c.Leave()
	res, err := c.Run(h.t.Context(), sandbox.Request{}, nil)
	return c, res, err
}

// TestHibernation: a sandbox that was idle is saved and ends; its owner's next call wakes it, with
// all but its variables, in the same bridge and in the next. That is said once.
func TestHibernation(t *testing.T) {
	dir := t.TempDir()
	var id string
	settings := Settings{Name: "n", Metadata: map[string]string{"a": "b"},
		Variables: map[string]string{"V": "v"}, Running: true}
	saving(t, storeIn(t, dir), func(t *testing.T, h *house) {
		id = h.filled("me", "first", &sandbox.Environment{Name: "data"}, settings)
		h.idle()
		if n := h.open.Load(); n != 0 || len(id) != longName {
			t.Fatalf("%d guests are left of %s", n, id)
		}
		i, err := h.Info("me", id)
		if err != nil || !i.Asleep || i.Calls != 1 || i.Environment.Name != "data" || i.Settings.Name != "n" {
			t.Errorf("%+v, %v", i, err)
		}
		for _, all := range [][]Info{h.List("me"), h.All()} {
			if len(all) != 1 || all[0].Status() != "hibernated" || all[0].Size == 0 || len(h.made) != 1 {
				t.Errorf("%+v", all)
			}
		}
		if owner, ok := h.Owner(id); owner != "me" || !ok {
			t.Errorf("it is %q's, %v", owner, ok)
		}
		for _, err := range []error{
			func() error { _, err := h.Pause("me", id); return err }(),
			func() error { _, err := h.Update("me", id, func(*Settings) {}); return err }(),
		} {
			if !errors.As(err, new(*AsleepError)) {
				t.Error(err)
			}
		}
		_, unknown := h.Enter(t.Context(), "you", "zzzzzzzz", nil)
		_, foreign := h.Enter(t.Context(), "you", id, nil)
		if foreign == nil || strings.ReplaceAll(foreign.Error(), id, "zzzzzzzz") != unknown.Error() {
			t.Errorf("another's: %v, unknown: %v", foreign, unknown)
		}
		c, res, err := h.woken("me", id)
		if err != nil || !c.Woken || c.Fresh || c.Missing() != "" || res.Kept.State != sandbox.StateKept {
			t.Fatalf("%+v, %+v, %v", c, res, err)
		}
		if all := h.All(); len(all) != 1 || all[0].Status() != "active" || all[0].Size != 0 {
			t.Errorf("once it is woken: %+v", all)
		}
		if g := h.last(); g.file != "first" || !maps.Equal(g.request.Variables, settings.Variables) ||
			!g.request.Running || g.request.Environment.Name != "data" || g.request.Calls != 1 {
			t.Errorf("%+v", g)
		}
		if c, _, err := h.woken("me", id); err != nil || c.Woken {
			t.Errorf("it is said again: %v", err)
		}
		h.locked(func() { h.last().file, h.last().socket = "second", true })
		h.idle()
	})
	saving(t, storeIn(t, dir), func(t *testing.T, h *house) {
		c, _, err := h.woken("me", id)
		if err != nil || !c.Woken || h.last().file != "second" ||
			c.Missing() != "not saved: a.sock (no file), big (too large)" {
			t.Fatalf("%+v, %v", c, err)
		}
		if !h.End("me", id, "you have ended it") {
			t.Error("it could not be ended")
		}
		synctest.Wait()
		if _, err := h.Enter(t.Context(), "me", id, nil); !errors.As(err, new(*GoneError)) {
			t.Errorf("a killed one: %v", err)
		}
	})
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestSavedAtItsEnd: which ends save a sandbox, and which remove what was saved.
func TestSavedAtItsEnd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		end   func(t *testing.T, h *house, id string)
		saved bool
	}{
		{"its caller goes", func(_ *testing.T, h *house, _ string) { h.EndAll("me") }, true},
		{"the bridge ends", func(_ *testing.T, h *house, _ string) { h.Close() }, true},
		{"another takes its place", func(t *testing.T, h *house, _ string) {
			for range PerOwner {
				time.Sleep(time.Second)
				h.begin("me")
			}
		}, true},
		{"killed", func(_ *testing.T, h *house, id string) { h.End("me", id, "killed") }, false},
		{"killed asleep", func(_ *testing.T, h *house, id string) { h.idle(); h.End("me", id, "killed") }, false},
		{"killed while it is saved", func(_ *testing.T, h *house, id string) {
			h.EndAll("me")
			h.End("me", id, "killed")
		}, false},
		{"too old", func(t *testing.T, h *house, id string) {
			for range 17 {
				time.Sleep(29 * time.Minute)
				_, _ = h.call("me", id)
			}
		}, false},
		{"its time is over", func(_ *testing.T, h *house, id string) {
			_, _ = h.Update("me", id, func(s *Settings) { s.Timeout = time.Minute })
			time.Sleep(2 * time.Minute)
		}, false},
		{"it dies", func(_ *testing.T, h *house, _ string) { h.last().dies("out of memory") }, false},
		{"it can't be packed", func(_ *testing.T, h *house, _ string) {
			h.locked(func() { h.last().unpackable = errors.New("no") })
			h.idle()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var id string
			saving(t, storeIn(t, dir), func(t *testing.T, h *house) {
				id = h.filled("me", "x", nil, Settings{})
				tt.end(t, h, id)
				synctest.Wait()
			})
			storeIn(t, dir)
			if found, _ := filepath.Glob(dir + "/*-" + id + ".sandbox"); (len(found) == 1) != tt.saved {
				t.Errorf("there is %v", found)
			}
			locks, _ := filepath.Glob(dir + "/*.lock")
			hidden, _ := filepath.Glob(dir + "/.*")
			if left := slices.Concat(locks, hidden); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestRemoveOf: of owners that are gone for good nothing is left, live, saved or being saved.
func TestRemoveOf(t *testing.T) {
	dir := t.TempDir()
	saving(t, storeIn(t, dir), func(t *testing.T, h *house) {
		for _, owner := range []string{"me", "you"} {
			h.filled(owner, "saved", nil, Settings{})
		}
		h.idle()
		var ids []string
		for range 2 {
			for _, owner := range []string{"me", "you"} {
				ids = append(ids, h.filled(owner, "live", nil, Settings{}))
			}
		}
		h.locked(func() { h.live.byID[ids[0]].end("it was not used", saved) })
		n := h.RemoveOf(t.Context(), func(owner string) bool { return owner == "me" }, "revoked")
		if mine, yours := h.List("me"), h.List("you"); n != 3 || len(mine) != 0 || len(yours) != 3 {
			t.Errorf("%d were removed; left: %+v, %+v", n, mine, yours)
		}
		var gone *GoneError
		if _, err := h.call("me", ids[2]); !errors.As(err, &gone) || gone.Reason != "revoked" {
			t.Error(err)
		}
		synctest.Wait()
		if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestOlderCounts: where a woken sandbox dies, or can't be saved, what was saved before counts, and
// the next to wake it hears that something is lost.
func TestOlderCounts(t *testing.T) {
	saving(t, storeIn(t, t.TempDir()), func(t *testing.T, h *house) {
		id := h.filled("me", "older", nil, Settings{})
		h.idle()
		for _, end := range []func(){
			func() { h.last().dies("out of memory") },
			func() { h.locked(func() { h.last().unpackable = errors.New("no space left") }); h.idle() },
		} {
			if _, _, err := h.woken("me", id); err != nil {
				t.Fatal(err)
			}
			h.locked(func() { h.last().file = "newer" })
			end()
			synctest.Wait()
			c, _, err := h.woken("me", id)
			if err != nil || h.last().file != "older" || !strings.Contains(c.Missing(), "what came later is lost") {
				t.Fatalf("%v, %+v", err, h.last())
			}
			h.idle()
			if c, _, err := h.woken("me", id); err != nil || c.Missing() != "" {
				t.Errorf("once saved again: %v, %v", c, err)
			}
		}
	})
}

// TestWakingFails: a call that can't wake a sandbox leaves it as it was saved, and says why.
func TestWakingFails(t *testing.T) {
	dir := t.TempDir()
	saving(t, storeIn(t, dir), func(t *testing.T, h *house) {
		id := h.filled("me", "x", nil, Settings{})
		other := h.filled("me", "y", &sandbox.Environment{Name: "gone"}, Settings{})
		h.idle()
		h.keep = errors.New("no engine")
		if _, _, err := h.woken("me", id); !errors.Is(err, h.keep) {
			t.Error(err)
		}
		h.keep = nil
		if _, _, err := h.woken("me", other); err == nil || !strings.Contains(err.Error(), "no such environment") {
			t.Error(err)
		}
		if i, err := h.Info("me", other); err != nil || !i.Asleep {
			t.Errorf("%+v, %v", i, err)
		}
		// All places are in use.
		var calls []*Call
		for range PerOwner {
			c, err := h.Begin("me", Settings{})
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c)
		}
		if _, _, err := h.woken("me", id); !errors.As(err, new(*FullError)) {
			t.Error(err)
		}
		for _, c := range calls {
			c.Leave()
		}
		if c, _, err := h.woken("me", id); err != nil || !c.Woken || h.last().file != "x" {
			t.Error(err)
		}
		h.idle()
		paths, _ := filepath.Glob(filepath.Join(dir, "*-"+id+".sandbox"))
		data, err := os.ReadFile(paths[0])
		if err == nil {
			data[len(data)-30] ^= 1 // of the content, not of what is known of it
			err = os.WriteFile(paths[0], data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.woken("me", id); !errors.As(err, new(*hibernation.Error)) ||
			!strings.Contains(err.Error(), "damaged") {
			t.Error(err)
		}
		synctest.Wait()
		if n := h.open.Load(); n != 0 {
			t.Errorf("%d guests are left", n)
		}
	})
}

// TestWokenOnce: of calls that come at a time one wakes a sandbox, and the others have it then; one
// that comes while it is saved waits for that.
func TestWokenOnce(t *testing.T) {
	saving(t, storeIn(t, t.TempDir()), func(t *testing.T, h *house) {
		id := h.filled("me", "x", nil, Settings{})
		h.EndAll("me") // it is being saved now
		var calls sync.WaitGroup
		var mu sync.Mutex
		said := 0
		for range 4 {
			calls.Go(func() {
				c, _, err := h.woken("me", id)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if c.Woken {
					said++
				}
			})
		}
		calls.Wait()
		if said != 1 || len(h.made) != 2 {
			t.Errorf("%d calls have woken it, of %d guests", said, len(h.made))
		}
	})
}

// TestEndsMeanwhile: who looks at a sandbox, or enters it, at the moment when it ends and is saved
// finds it alive or saved, and never gone.
func TestEndsMeanwhile(t *testing.T) {
	saving(t, storeIn(t, t.TempDir()), func(t *testing.T, h *house) {
		id := h.filled("me", "x", nil, Settings{})
		for name, find := range map[string]func() error{
			"Info": func() error {
				_, err := h.Info("me", id)
				return err
			},
			"Enter": func() error {
				c, err := h.Enter(t.Context(), "me", id, nil)
				if err == nil {
					c.Leave()
				}
				return err
			},
			"Shared": func() error {
				c, err := h.Shared(t.Context(), "me", "session", Settings{}, nil)
				if err == nil {
					if c.ID() != id {
						t.Errorf("another one was begun: %s", c.Before)
					}
					c.Leave()
				}
				return err
			},
		} {
			h.locked(func() { h.shared["session"] = id })
			for range 100 {
				var all sync.WaitGroup
				all.Go(func() { h.EndAll("me") })
				all.Go(func() {
					if err := find(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
				all.Wait()
				if _, _, err := h.woken("me", id); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					break
				}
			}
		}
	})
}

// TestTwoBridges: a sandbox that one bridge has woken can't be woken by another.
func TestTwoBridges(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(t, dir)
	saving(t, s, func(t *testing.T, h *house) {
		id := h.filled("me", "x", nil, Settings{})
		h.idle()
		if _, _, err := h.woken("me", id); err != nil {
			t.Fatal(err)
		}
		if _, err := storeIn(t, dir).Claim("me", id); !errors.Is(err, hibernation.ErrInUse) {
			t.Error(err)
		}
	})
}

// TestSharedAsleep: the sandbox of the calls that name none is woken by the next one of its
// session, and removed when that is over.
func TestSharedAsleep(t *testing.T) {
	dir := t.TempDir()
	saving(t, storeIn(t, dir), func(t *testing.T, h *house) {
		call := func() *Call {
			c, err := h.Shared(t.Context(), "me", "session", Settings{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Leave()
			if _, err := c.Run(t.Context(), sandbox.Request{}, nil); err != nil {
				t.Fatal(err)
			}
			return c
		}
		first := call()
		h.idle()
		if c := call(); c.ID() != first.ID() || !c.Woken {
			t.Errorf("%+v", c)
		}
		h.idle()
		h.EndShared("session")
		synctest.Wait()
	})
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestSavingEnds: a guest that doesn't answer holds up the end of the bridge for a short time only.
func TestSavingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stuck *stuckGuest
		r := New(Config{
			Keep: func(context.Context, sandbox.KeepRequest) (Guest, error) {
				stuck = &stuckGuest{fakeGuest{done: make(chan struct{})}}
				return stuck, nil
			},
			Idle: time.Hour, MaxAge: 8 * time.Hour, Most: 1, LongestCall: time.Minute,
			Hibernation: &Hibernation{Store: storeIn(t, t.TempDir()), Log: slog.New(slog.DiscardHandler)},
		})
		c, err := r.Begin("me", Settings{})
		if err == nil {
			_, err = c.Guest(t.Context(), nil, nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Leave()
		began := time.Now()
		r.Close()
		if took := time.Since(began); took != SaveAtEnd {
			t.Errorf("it took %v", took)
		}
	})
}

// stuckGuest is a guest whose files take forever.
type stuckGuest struct{ fakeGuest }

func (g *stuckGuest) Pack(ctx context.Context, _ string, _ int64) (sandbox.Piece, error) {
	<-ctx.Done()
	return sandbox.Piece{}, ctx.Err()
}

func (g *stuckGuest) Close() error {
	g.dies("it was closed")
	return nil
}
