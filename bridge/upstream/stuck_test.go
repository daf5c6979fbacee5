//go:build unix

package upstream

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestStuckServerWithACaller: as long as a caller waits for a server it isn't ended because it
// answers nobody else, and once none does the next call starts it again.
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
