//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// longUnused has the timer of a session fire as it does when the last use was long ago.
func longUnused(s *session) {
	s.idle.mu.Lock()
	s.idle.used = time.Time{}
	s.idle.mu.Unlock()
	s.idle.look()
}

// TestIdleServerIsEnded, and started again by the next call; one that works on a call isn't ended
// meanwhile. TestRest has the times, TestListeningIsNoUse a real one.
func TestIdleServerIsEnded(t *testing.T) {
	g := &groups{}
	p := open(t, func(c *Config) { c.IdleTimeout = time.Hour; c.Guard = g }, fake("normal"))
	ctx, cancel := context.WithCancel(t.Context())
	done := begin(ctx, p, "fake", "never", nil)
	first := until(t, p, func(s seen) bool { return len(s.Waiting) > 0 }).PID
	s := live(p)
	if longUnused(s); s.isDying() {
		t.Error("it was ended in the middle of a call")
	}
	cancel()
	serverError(t, <-done, "context canceled")
	longUnused(s)
	<-s.gone
	if !errors.Is(s.cause, errIdle) || !strings.Contains(s.cause.Error(), "for 1h0m0s") {
		t.Errorf("the cause is %v", s.cause)
	}
	vanished(t, first)
	if second := look(t, p).PID; second == first || g.ever.Load() != 2 {
		t.Errorf("the next call went to process %d after %d, of %d", second, first, g.ever.Load())
	}
}

// TestCallsAreLimited: only MaxCalls reach the server at a time, and a call that waits leaves with
// its context.
func TestCallsAreLimited(t *testing.T) {
	p := open(t, func(c *Config) { c.MaxCalls = 3; c.MaxQueue = 2 }, fake("normal"))
	look(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 6)
	call := func() {
		_, err := p.Call(ctx, "fake", "never", nil)
		errs <- err
	}
	for range 6 {
		go call()
	}
	serverError(t, <-errs, "3 calls of it are under way and 2 wait, which is the limit")
	if tools, err := p.Tools(t.Context(), "fake"); err != nil || len(tools) != 1 {
		t.Errorf("lists don't wait behind calls: got %v, %v", tools, err)
	}
	server := live(p)
	eventually(t, "three calls reach the server", func() bool {
		raw, err := server.request(t.Context(), "tools/call",
			map[string]any{"name": "seen", "arguments": map[string]any{}}) // past the limit
		var s seen
		return err == nil && json.Unmarshal(raw, &s) == nil && len(s.Waiting) == 3
	})
	cancel()
	for range 5 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if s := until(t, p, func(s seen) bool { return len(s.Cancelled) >= 3 }); len(s.Waiting) != 3 {
		t.Errorf("%d calls reached the server", len(s.Waiting))
	}
}

// TestWaitingCallsEndWithTheServer: they aren't sent to another process, which may not be what they
// were meant for.
func TestWaitingCallsEndWithTheServer(t *testing.T) {
	p := open(t, func(c *Config) { c.MaxCalls = 2 }, fake("normal"))
	pid := look(t, p).PID
	var errs []<-chan error
	for range 3 {
		errs = append(errs, begin(t.Context(), p, "fake", "never", nil))
	}
	eventually(t, "a call waits", func() bool { return len(live(p).limiter.queue) > 0 })
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, err := range errs {
		serverError(t, <-err, "signal: killed")
	}
}

func TestCallDeadline(t *testing.T) {
	p := open(t, func(c *Config) { c.CallTimeout = 100 * time.Millisecond }, fake("normal"))
	_, err := p.Call(t.Context(), "fake", "never", nil)
	if !errors.Is(serverError(t, err, "it did not answer within 100ms and was told to stop"),
		context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline's error", err)
	}
	until(t, p, func(s seen) bool { return len(s.Cancelled) == 1 })
}

// TestFailuresAreSpaced: a server that doesn't start, or ends before it has answered anything, is
// started again at once after a first failure, and later after others, as each error says.
func TestFailuresAreSpaced(t *testing.T) {
	for mode, tool := range map[string]string{"dies": "echo", "normal": "die"} {
		t.Run(mode, func(t *testing.T) {
			g := &groups{}
			p := open(t, func(c *Config) { c.Guard = g }, fake(mode))
			for i := range 50 { // in a small part of the pause of a second
				_, err := p.Call(t.Context(), "fake", tool, nil)
				said := serverError(t, err, "***").Error()
				atOnce, later := strings.Count(said, "the next call starts it again"), strings.Count(said, "or later")
				if first := i == 0; first != (atOnce == 1) || first != (later == 0) || atOnce+later != 1 {
					t.Errorf("failure %d: %s", i+1, said)
				}
			}
			if n := g.ever.Load(); n < 2 || n > 10 {
				t.Errorf("it was started %d times", n)
			}
		})
	}
	other := open(t, nil, fake("normal"))
	for range 4 { // one that has answered is started at once
		look(t, other)
		_, err := other.Call(t.Context(), "fake", "die", nil)
		serverError(t, err, "exit status 3")
	}
}

func TestLogIsKept(t *testing.T) {
	for mode, level := range map[string]string{"logs": "warning", "normal": ""} {
		p := open(t, nil, fake(mode))
		_, err := p.Call(t.Context(), "fake", "log", nil)
		e := serverError(t, err, "exit status 4", "the last that it logged:")
		if want := "[info] db: at ***\n[error] {\"n\":1}\n[log]\n[error] level " +
			level; e.Logged != strings.TrimSpace(want) {
			t.Errorf("%s: kept\n%s, want\n%s", mode, e.Logged, want)
		}
	}
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ended := make(chan time.Duration, 10)
		r := &idleTimer{after: time.Minute, end: func() { ended <- time.Since(begin) }}
		defer r.stop()
		r.begin()
		time.Sleep(50 * time.Second)
		r.use()()
		time.Sleep(50 * time.Second)
		done, also := r.use(), r.use()
		done()
		time.Sleep(10 * time.Minute)
		also()
		if got, want := <-ended, 12*time.Minute+40*time.Second; got < want || got > want+10*time.Second {
			t.Errorf("it ended after %v, want %v or a little more", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the timer fires in the moment in which the session is used
		var ended atomic.Bool
		r := &idleTimer{after: time.Minute, end: func() { ended.Store(true) }}
		defer r.stop()
		r.begin()
		time.Sleep(time.Minute - time.Nanosecond)
		r.use()()
		if r.look(); ended.Load() {
			t.Error("it ended though it was just used")
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if synctest.Wait(); ended.Load() {
			t.Error("it ended too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !ended.Load() {
			t.Error("it didn't end")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := &idleTimer{after: time.Minute, end: func() { t.Error("it ended") }}
		r.begin()
		done := r.use()
		r.stop()
		done()
		time.Sleep(time.Hour)
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		broken := errors.New("broken")
		last := &ServerError{Err: broken}
		for i, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second, 30 * time.Second, 30 * time.Second} {
			b.failure()
			if err := b.refusal(last); (err != nil) != (pause > 0) ||
				err != nil && (!errors.Is(err, broken) || !strings.Contains(err.Error(), "in a row")) {
				t.Errorf("after failure %d: got %v", i+1, err)
			}
			time.Sleep(pause - time.Millisecond)
			if pause > 0 && b.refusal(last) == nil {
				t.Errorf("after failure %d: started again before %v", i+1, pause)
			}
			time.Sleep(time.Millisecond)
			if err := b.refusal(last); err != nil {
				t.Errorf("after failure %d and %v: got %v", i+1, pause, err)
			}
		}
		b = backoff{}
		if b.failure(); b.refusal(last) != nil {
			t.Error("a first failure has no pause")
		}
	})
}
