package oauth

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
)

// TestWhoGivesUpIsNotHeld: a caller is free as soon as its context ends, and what it had begun goes on, for the next one and before
// Close returns.
func TestWhoGivesUpIsNotHeld(t *testing.T) {
	as, srv := protected(t, nil)
	store := kept(t, srv)
	s := NewSource(NewClient("test"), store)
	s.last = time.Minute
	first := token(t, s, srv, "")
	hold := make(chan struct{})
	as.Set(func(tr *oauthtest.Traps) { tr.Hold = hold })
	before := as.Requests("token")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	free := make(chan error, 1)
	go func() {
		_, err := s.Token(ctx, srv, first)
		free <- err
	}()
	for as.Requests("token") == before {
		if ctx.Err() != nil {
			t.Fatal("never asked")
		}
		time.Sleep(time.Millisecond) // between two looks
	}
	cancel()
	select {
	case err := <-free:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the caller is held by the token endpoint")
	}
	close(hold)
	s.Close()
	g, _, err := store.Get(srv)
	if err != nil || g.AccessToken == first {
		t.Errorf("Close didn't wait for the new token: %v", err)
	}
	if _, err := s.Token(t.Context(), srv, g.AccessToken); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if n := as.Requests("refresh"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}
