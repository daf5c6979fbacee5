package oauth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
)

// TestWhoGivesUpIsNotHeld: a caller is free as soon as its context ends, and what it had begun goes
// on, for the next one and before Close returns.
func TestWhoGivesUpIsNotHeld(t *testing.T) {
	as, srv, store, s := loggedIn(t)
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

// TestLogoutWithALockedKeyring: it fails and says why, and succeeds once the keyring is open,
// whatever was logged in to meanwhile.
func TestLogoutWithALockedKeyring(t *testing.T) {
	for _, tt := range []struct {
		name  string
		again bool  // logged in while it is locked
		after error // of Get, after the logout that fails
	}{{"a login in the keyring", false, nil}, {"and another one in the file", true, ErrNone}} {
		t.Run(tt.name, func(t *testing.T) {
			as, srv := protected(t, oauthtest.Traps{})
			ring := &keys{all: map[string]string{}}
			store := &Store{Dir: t.TempDir(), Keyring: ring}
			login := func() {
				t.Helper()
				g, _, err := kept(t, srv).Get(srv)
				if err == nil {
					_, err = store.Put(srv, g)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			s := NewSource(store)
			defer s.Close()
			login()
			ring.err = errors.New("locked")
			if tt.again {
				login()
			}
			if err := s.Logout(t.Context(), srv); err == nil ||
				!strings.Contains(err.Error(), "out of the keyring: locked") {
				t.Errorf("from a locked keyring: %v", err)
			}
			ring.err = nil
			if _, _, err := store.Get(srv); !errors.Is(err, tt.after) {
				t.Errorf("after that there is %v, want %v", err, tt.after)
			}
			if err := s.Logout(t.Context(), srv); err != nil || len(ring.all) > 0 {
				t.Errorf("from an open one: %v; left: %v", err, ring.all)
			}
			if err := s.Logout(t.Context(), srv); !errors.Is(err, ErrNone) {
				t.Errorf("once more: %v", err)
			}
			if as.Requests("revoke") != 1 {
				t.Errorf("%d logins were revoked, want 1", as.Requests("revoke"))
			}
		})
	}
}
