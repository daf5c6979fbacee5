package oauth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// child is the variable by which this test's binary knows that it is a second process of the user:
// it prints the token that it gets for the server at that URL, from the store in its argument.
const child = "OAUTH_TEST_CHILD"

func TestMain(m *testing.M) {
	if to := os.Getenv(child); to != "" {
		source := NewSource(&Store{Dir: os.Args[1]})
		srv := discovery.Server{Name: "far", URL: to}
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() { // each line is a token that was refused
			token, err := source.Token(context.Background(), srv, in.Text())
			fmt.Println(token, err)
		}
		return
	}
	os.Exit(m.Run())
}

// keys is a keyring in memory. With an error it is locked.
type keys struct {
	all map[string]string
	err error
}

func (k *keys) Get(a string) (string, error) {
	if s, ok := k.all[a]; ok {
		return s, k.err
	}
	return "", secrets.ErrNone
}

func (k *keys) Set(a, s string) error {
	if k.err == nil {
		k.all[a] = s
	}
	return k.err
}

func (k *keys) Delete(a string) error {
	if k.err == nil {
		delete(k.all, a)
	}
	return k.err
}

func TestStore(t *testing.T) {
	srv := discovery.Server{Name: "a/b ü", URL: "https://mcp.example/mcp"}
	grant := Grant{URL: srv.URL, AccessToken: "s3cr3t", RefreshToken: "s3cr3t-2"}
	s := &Store{Dir: filepath.Join(t.TempDir(), "a", "logins")}
	if _, _, err := s.Get(srv); !errors.Is(err, ErrNone) {
		t.Fatalf("an empty store: %v", err)
	}
	if in, err := s.Put(srv, grant); in != secrets.InFile || err != nil {
		t.Fatalf("kept in %s, %v", in, err)
	}
	if got, in, err := s.Get(srv); got != grant || in != secrets.InFile || err != nil {
		t.Errorf("got %+v in %s, %v", got, in, err)
	}
	other := srv
	other.URL += "/other"
	if _, _, err := s.Get(other); !errors.Is(err, ErrNone) {
		t.Errorf("the token of one URL was given for another: %v", err)
	}
	if err := s.Delete(srv); err != nil {
		t.Error(err)
	}
	if err := s.Delete(srv); !errors.Is(err, ErrNone) {
		t.Errorf("a second Delete: %v", err)
	}
}

// kept is a store with the grant of a login.
func kept(t *testing.T, srv discovery.Server) *Store {
	t.Helper()
	g, err := login(t, srv)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: t.TempDir()}
	if _, err := s.Put(srv, g); err != nil {
		t.Fatal(err)
	}
	return s
}

// loggedIn returns a source with a login to a protected server.
func loggedIn(t *testing.T) (*oauthtest.Server, discovery.Server, *Store, *Source) {
	t.Helper()
	as, srv := protected(t, oauthtest.Traps{})
	store := kept(t, srv)
	return as, srv, store, NewSource(store)
}

func token(t *testing.T, s *Source, srv discovery.Server, refused string) string {
	t.Helper()
	got, err := s.Token(t.Context(), srv, refused)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestTokensAreRenewed: when they end, when they were refused, and never twice for the same reason.
func TestTokensAreRenewed(t *testing.T) {
	as, srv, store, s := loggedIn(t)
	first := token(t, s, srv, "")
	if again := token(t, s, srv, ""); again != first || as.Requests("refresh") != 0 {
		t.Error("a good token was renewed")
	}
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	second := token(t, s, srv, "")
	if second == first || as.Requests("refresh") != 1 {
		t.Error("a token that ends was not renewed")
	}
	s.now = time.Now
	var all sync.WaitGroup
	for range 20 { // all of them were refused
		all.Go(func() {
			if got, err := s.Token(t.Context(), srv, second); err != nil || got == second || got == "" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := as.Requests("refresh"); n != 2 {
		t.Errorf("%d refreshes, want 2", n)
	}
	if g, _, err := store.Get(srv); err != nil || g.AccessToken != token(t, s, srv, "") {
		t.Errorf("the store has another token: %v", err)
	}
}

// TestLoginAnew: a source notices who logged in or out beside it, though its token is still good.
func TestLoginAnew(t *testing.T) {
	_, srv, store, s := loggedIn(t)
	first := token(t, s, srv, "")
	g, err := login(t, srv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(srv, g); err != nil {
		t.Fatal(err)
	}
	if got := token(t, s, srv, ""); got == first || got != g.AccessToken {
		t.Error("the token from before was handed out")
	}
	if err := NewSource(store).Logout(t.Context(), srv); err != nil {
		t.Fatal(err)
	}
	if got := token(t, s, srv, ""); got != "" {
		t.Error("a token was handed out after a logout")
	}
}

// TestLoginIsOver: where the refresh token is refused nothing is handed out, and nothing kept.
func TestLoginIsOver(t *testing.T) {
	as, srv, store, s := loggedIn(t)
	first := token(t, s, srv, "")
	as.Forget()
	if got := token(t, s, srv, first); got != "" {
		t.Errorf("got %q", got)
	}
	if _, _, err := store.Get(srv); !errors.Is(err, ErrNone) {
		t.Errorf("the store: %v", err)
	}
}

// TestRenewalFails: a server that is away doesn't end a login.
func TestRenewalFails(t *testing.T) {
	as, srv, _, s := loggedIn(t)
	first := token(t, s, srv, "")
	as.Set(func(tr *oauthtest.Traps) { tr.Broken = true })
	if got, err := s.Token(t.Context(), srv, first); err == nil || got != "" ||
		!strings.Contains(err.Error(), "503") {
		t.Errorf("got %q, %v", got, err)
	}
	as.Set(func(tr *oauthtest.Traps) { tr.Broken = false })
	if got := token(t, s, srv, first); got == "" || got == first {
		t.Errorf("got %q", got)
	}
}

// TestProcessesShareALogin: of two processes whose token was refused at the same time one renews
// it, though the refresh token is good only once, and both end up with the same one, over and over.
func TestProcessesShareALogin(t *testing.T) {
	as, srv, store, s := loggedIn(t)
	refused := token(t, s, srv, "")
	type process struct {
		in  *os.File
		out *bufio.Scanner
	}
	var processes []process
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], store.Dir)
		cmd.Env = append(os.Environ(), child+"="+srv.URL, "GORACE=atexit_sleep_ms=0")
		cmd.Stdin, cmd.Stderr = r, os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		t.Cleanup(func() {
			_ = w.Close()
			_ = cmd.Wait()
		})
		processes = append(processes, process{w, bufio.NewScanner(out)})
	}
	const rounds = 20
	for round := range rounds {
		for _, p := range processes {
			if _, err := fmt.Fprintln(p.in, refused); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, p := range processes {
			if !p.out.Scan() {
				t.Fatalf("round %d: the process ended: %v", round, p.out.Err())
			}
			got = append(got, p.out.Text())
		}
		next, ok := strings.CutSuffix(got[0], " <nil>")
		if got[0] != got[1] || !ok || next == "" || next == refused {
			t.Fatalf("round %d: got %q", round, got)
		}
		refused = next
	}
	if n := as.Requests("refresh"); n != rounds {
		t.Errorf("%d refreshes, want %d", n, rounds)
	}
}
