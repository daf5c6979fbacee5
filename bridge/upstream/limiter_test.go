package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newLimiter(2, 1)
		over := make(chan struct{})
		for range 2 {
			if err := turns.enter(t.Context(), over); err != nil {
				t.Fatal(err)
			}
		}
		waited := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		wait := func() {
			go func() { waited <- turns.enter(ctx, over) }()
			synctest.Wait()
		}
		wait()
		if err := turns.enter(t.Context(), over); err == nil || !strings.Contains(err.Error(), "2 calls of it are under way and 1 wait") {
			t.Errorf("beyond the limit: got %v", err)
		}
		turns.leave()
		if err := <-waited; err != nil {
			t.Errorf("who waits: got %v", err)
		}
		wait()
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("after its context: got %v", err)
		}
		ctx = t.Context()
		wait()
		close(over)
		if err := <-waited; !errors.Is(err, errLeft) {
			t.Errorf("after the session: got %v", err)
		}
	})
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
		for i, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
			b.failure(broken)
			if err := b.refusal(); (err != nil) != (pause > 0) || err != nil && (!errors.Is(err, broken) || !strings.Contains(err.Error(), "in a row")) {
				t.Errorf("after failure %d: got %v", i+1, err)
			}
			time.Sleep(pause - time.Millisecond)
			if pause > 0 && b.refusal() == nil {
				t.Errorf("after failure %d: started again before %v", i+1, pause)
			}
			time.Sleep(time.Millisecond)
			if err := b.refusal(); err != nil {
				t.Errorf("after failure %d and %v: got %v", i+1, pause, err)
			}
		}
		b = backoff{}
		if b.failure(broken); b.refusal() != nil {
			t.Error("a first failure has no pause")
		}
	})
}
