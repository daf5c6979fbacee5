//go:build unix

package upstream

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestStuckServerWithACaller: as long as a caller waits for a server it isn't ended because it
// answers no other one, and once none does the next call starts it again.
func TestStuckServerWithACaller(t *testing.T) {
	p := open(t, func(c *Config) { c.PingTimeout = 10 * time.Millisecond }, fake("normal"))
	echo := func(ctx context.Context) error {
		_, err := p.Call(ctx, "fake", "echo", nil)
		return err
	}
	if err := echo(t.Context()); err != nil {
		t.Fatal(err)
	}
	was := pid(t.Context(), t, p, "fake")
	waiting, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := p.Call(waiting, "fake", "stuck", nil)
		left <- err
	}()
	for range 3 { // the first may come before the call that sticks
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := echo(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call behind the one that sticks: %v", err)
		}
		cancel()
	}
	select {
	case err := <-left:
		t.Errorf("the call that a caller waits for has ended: %v", err)
	default:
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that was given up: %v", err)
	}
	if err := echo(t.Context()); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if is := pid(t.Context(), t, p, "fake"); is == was {
		t.Error("the server wasn't started again")
	}
}

// TestDoubt: a server is asked only where a request was given up, nothing was heard since, and
// no caller waits for it, or has for long.
func TestDoubt(t *testing.T) {
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	for _, tt := range []struct {
		name  string
		open  context.Context // of a request under way
		given time.Duration   // ago
		heard bool
		asks  bool // the server itself
		want  bool
	}{
		{name: "nothing is under way"},
		{name: "one is waited for", open: t.Context()},
		{name: "one is given up", open: given, want: true},
		{name: "one was given up", given: time.Second, want: true},
		{name: "and the server was heard", given: time.Second, heard: true},
		{name: "and another one is waited for", open: t.Context(), given: longSilence / 2},
		{name: "for long", open: t.Context(), given: longSilence + time.Second, want: true},
		{name: "for long, and it waits for an answer itself", open: t.Context(),
			given: longSilence + time.Second, asks: true},
	} {
		d := doubt{open: map[int64]context.Context{}}
		if tt.open != nil {
			d.begin(tt.open)
		}
		if tt.given > 0 {
			d.since = time.Now().Add(-tt.given)
		}
		if tt.heard {
			d.heard()
		}
		if tt.asks {
			defer d.question()()
		}
		if got := d.settle(false); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
