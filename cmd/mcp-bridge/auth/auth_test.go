package auth

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/identity"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
)

// must ends the test where a step that it only needs has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRemoveRevoked: the saved sandboxes of principals that have no token any more are removed half
// a minute later, also of those whose token was revoked while no bridge ran. Those of others stay,
// and nothing is removed where it can't be known who has a token.
func TestRemoveRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		store, err := hibernation.Open(hibernation.Config{Dir: filepath.Join(t.TempDir(), "saved"), Log: log,
			Key: func(bool) ([]byte, error) { return bytes.Repeat([]byte{1}, hibernation.KeySize), nil }})
		must(t, err)
		owners := []string{"alice", "bob", "carol", "jwt:alice", bridge.Local, "http " + bridge.Local}
		for _, owner := range owners {
			c, err := store.New(owner, "abcd")
			must(t, err)
			must(t, c.Save(hibernation.Saved{Owner: owner, ID: "abcd", At: time.Now()},
				func(io.Writer) error { return nil }))
		}
		left := func() string {
			synctest.Wait()
			var have []string
			for _, owner := range owners {
				if len(store.List(owner)) > 0 {
					have = append(have, owner)
				}
			}
			return strings.Join(have, ", ")
		}
		const others = "jwt:alice, local, http local"
		expect := func(what, want string) {
			t.Helper()
			if got := left(); got != want {
				t.Errorf("%s: there are those of %s, want %s", what, got, want)
			}
		}
		tokens := identity.OpenTokens(filepath.Join(t.TempDir(), "tokens"), nil, bridge.Local)
		add := func(name string) {
			t.Helper()
			_, err := tokens.Add(name)
			must(t, err)
		}
		all := sandboxes.New(sandboxes.Config{Most: 1, Hibernation: &sandboxes.Hibernation{Store: store, Log: log}})
		defer all.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go RemoveRevoked(ctx, tokens, all, log)
		time.Sleep(10 * lookEvery)
		expect("without a file of tokens", "alice, bob, carol, "+others)
		add("alice")
		add("bob")
		time.Sleep(lookEvery + time.Second)
		expect("at the first look", "alice, bob, carol, "+others)
		time.Sleep(lookEvery)
		expect("carol has no token", "alice, bob, "+others)

		must(t, tokens.Revoke("bob"))
		time.Sleep(lookEvery)
		must(t, tokens.Revoke("alice"))
		add("alice") // another one
		time.Sleep(lookEvery)
		expect("bob's token was revoked", "alice, "+others)
		must(t, os.WriteFile(tokens.Path(), []byte("broken"), 0o600))
		time.Sleep(10 * lookEvery)
		must(t, os.Remove(tokens.Path()))
		time.Sleep(10 * lookEvery)
		expect("when the file can't be used", "alice, "+others)
	})
}

// TestRootsToken: root is told whose bridges know its token, and another user isn't.
func TestRootsToken(t *testing.T) {
	if note := whoseToken(1000, "alice", "/x"); note != "" {
		t.Errorf("a user is told %s", note)
	}
	for _, want := range []string{"bridges that root runs, by the file /x", "scripts/as-user mcp-bridge token " +
		"add alice"} {
		if note := whoseToken(0, "alice", "/x"); !strings.Contains(note, want) {
			t.Errorf("root is told %s, want %s", note, want)
		}
	}
}
