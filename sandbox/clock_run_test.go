package sandbox_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestClockThatStops: the host's waiting for longer than the code's own time doesn't count when it
// says so. See TestClock.
func TestClockThatStops(t *testing.T) {
	var clock sandbox.Clock
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		defer clock.Stop()()
		select {
		case <-time.After(4 * time.Second):
			return echo(ctx, c)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	req := sandbox.Request{Code: "print(mcp_shop.echo(text='a'))", Timeout: 3 * time.Second, Clock: &clock,
		Providers: shop("echo")}
	if r, err := newSandbox(t, nil).Run(t.Context(), req, host); err != nil || r.Status != sandbox.StatusOK {
		t.Errorf("got %s, %v", r.Status, err)
	}
}

// TestPatience: the clock doesn't stand still for longer than it may, nor for as long as a start.
func TestPatience(t *testing.T) {
	s := newSandbox(t, func(c *sandbox.Config) { c.Patience, c.StartTimeout = 100*time.Millisecond, time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the run is cancelled by then, if it goes on
	defer cancel()
	var clock sandbox.Clock
	waits := hostFunc(func(ctx context.Context, _ sandbox.Call) (json.RawMessage, error) {
		defer clock.Stop()()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r, err := s.Run(ctx, sandbox.Request{Code: "print(mcp_shop.echo(text='a'))",
		Timeout: time.Second, Clock: &clock,
		Providers: shop("echo")}, waits)
	if err != nil || r.Status != sandbox.StatusTimeout {
		t.Errorf("got %s, %v", r.Status, err)
	}
}
