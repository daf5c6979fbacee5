package oauth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

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

// keys is a keyring in memory.
type keys struct {
	mu  sync.Mutex
	all map[string]string
	err error
}

func (k *keys) Get(a string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.all[a]; ok {
		return s, k.err
	}
	return "", ErrNone
}

func (k *keys) Set(a, s string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.all[a] = s
	}
	return k.err
}

func (k *keys) Delete(a string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		delete(k.all, a)
	}
	return k.err
}

func (k *keys) set(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func TestStore(t *testing.T) {
	srv := discovery.Server{Name: "a/b ü", URL: "https://mcp.example/mcp"}
	grant := Grant{URL: srv.URL, AccessToken: "s3cr3t", RefreshToken: "s3cr3t-2"}
	locked := &keys{all: map[string]string{}, err: errors.New("locked")}
	for name, tt := range map[string]struct {
		keyring Keyring
		in      string
	}{
		"file": {nil, InFile}, "keyring": {&keys{all: map[string]string{}}, InKeyring},
		"locked keyring": {locked, InFile},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{Dir: filepath.Join(t.TempDir(), "a", "logins"), Keyring: tt.keyring}
			if _, _, err := s.Get(srv); !errors.Is(err, ErrNone) {
				t.Fatalf("an empty store: %v", err)
			}
			if in, err := s.Put(srv, grant); in != tt.in || err != nil {
				t.Fatalf("kept in %s, %v", in, err)
			}
			if got, in, err := s.Get(srv); got != grant || in != tt.in || err != nil {
				t.Errorf("got %+v in %s, %v", got, in, err)
			}
			b, err := os.ReadFile(s.file(account(srv)))
			if err != nil || strings.Contains(string(b), "s3cr3t") != (tt.in == InFile) {
				t.Errorf("the file: %s, %v", b, err)
			}
			other := srv
			other.URL += "/other"
			if _, _, err := s.Get(other); !errors.Is(err, ErrNone) {
				t.Errorf("the token of one URL was given for another: %v", err)
			}
			if err := s.Delete(srv); err != nil && tt.keyring != locked {
				t.Error(err)
			}
			if _, _, err := s.Get(srv); !errors.Is(err, ErrNone) {
				t.Errorf("after Delete: %v", err)
			}
			if err := s.Delete(srv); !errors.Is(err, ErrNone) {
				t.Errorf("a second Delete: %v", err)
			}
		})
	}
}

// TestNothingStaysInTheKeyring: neither a grant that was renewed while the keyring was locked, nor
// one that no file tells of; and a logout that leaves one there says so.
func TestNothingStaysInTheKeyring(t *testing.T) {
	srv := discovery.Server{Name: "far", URL: "https://mcp.example"}
	put := func(s *Store, token string) {
		t.Helper()
		if _, err := s.Put(srv, Grant{URL: srv.URL, RefreshToken: token}); err != nil {
			t.Fatal(err)
		}
	}
	ring := &keys{all: map[string]string{}}
	s := &Store{Dir: t.TempDir(), Keyring: ring}
	put(s, "old")
	ring.set(errors.New("locked"))
	put(s, "new")
	if err := s.Delete(srv); err == nil || !strings.Contains(err.Error(), "out of the keyring: locked") {
		t.Errorf("from a locked keyring: %v", err)
	}
	ring.set(nil)
	put(s, "old")
	ring.set(errors.New("locked"))
	put(s, "new")
	put(s, "newer")
	ring.set(nil)
	if err := s.Delete(srv); err != nil || len(ring.all) > 0 {
		t.Errorf("left: %v, %v", ring.all, err)
	}
	put(s, "untold")
	if err := os.Remove(s.file(account(srv))); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(srv); !errors.Is(err, ErrNone) || len(ring.all) > 0 {
		t.Errorf("left: %v, %v", ring.all, err)
	}
}

// TestFileModes: only the user can read a file, and one that others can read isn't believed.
func TestFileModes(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	srv := discovery.Server{Name: "far", URL: "https://mcp.example"}
	s := &Store{Dir: filepath.Join(t.TempDir(), "logins")}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(srv, Grant{URL: srv.URL}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{s.Dir: 0o700, s.file(account(srv)): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(s.file(account(srv)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(srv); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file for all to read: %v", err)
	}
}

// TestKilledWriter: what a process left that was killed while it kept a login, which holds tokens,
// goes with the next one kept, and when the login is forgotten; another server's is left alone.
func TestKilledWriter(t *testing.T) {
	srv, other := discovery.Server{Name: "far", URL: "https://mcp.example"}, discovery.Server{Name: "far2",
		URL: "https://mcp.example"}
	s := &Store{Dir: t.TempDir()}
	half, others := filepath.Join(s.Dir, unfinished(account(srv))+"17"), filepath.Join(s.Dir,
		unfinished(account(other))+"17")
	for _, do := range []func() error{
		func() error { _, err := s.Put(srv, Grant{URL: srv.URL}); return err },
		func() error { return s.Delete(srv) },
	} {
		for _, path := range []string{half, others} {
			if err := os.WriteFile(path, []byte("a token"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
		if _, err := os.Stat(others); err != nil {
			t.Error(err)
		}
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

// TestNoBusNoKeyring: without D-Bus there is no keyring, at once, and no bus is started.
func TestNoBusNoKeyring(t *testing.T) {
	if goruntime.GOOS == "windows" || goruntime.GOOS == "darwin" {
		t.Skip("there is always one")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if k := SystemKeyring(); k != nil {
		t.Errorf("got %v", k)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	s := &Store{Dir: t.TempDir(), Keyring: SystemKeyring()}
	srv := discovery.Server{Name: "far", URL: "https://mcp.example"}
	if in, err := s.Put(srv, Grant{URL: srv.URL}); in != InFile || err != nil {
		t.Errorf("with a bus that isn't there: %s, %v", in, err)
	}
}

// TestSystemKeyring: over the library's stand-in for the operating system's.
func TestSystemKeyring(t *testing.T) {
	keyring.MockInit()
	k := system{}
	if err := k.Set("a", "s"); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Get("a"); got != "s" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := k.Delete("a"); err != nil {
		t.Error(err)
	}
	if _, err := k.Get("a"); !errors.Is(err, ErrNone) {
		t.Errorf("after Delete: %v", err)
	}
	if err := k.Delete("a"); !errors.Is(err, ErrNone) {
		t.Errorf("a second Delete: %v", err)
	}
}
