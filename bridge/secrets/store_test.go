package secrets

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

// keys is a keyring in memory. With an error it is locked.
type keys struct {
	all   map[string]string
	err   error
	asked int // how often to change something
}

func (k *keys) Get(a string) (string, error) {
	if s, ok := k.all[a]; ok {
		return s, k.err
	}
	return "", ErrNone
}

func (k *keys) Set(a, s string) error {
	k.asked++
	if k.err == nil || errors.Is(k.err, errNoAnswer) { // which keeps it later
		k.all[a] = s
	}
	return k.err
}

func (k *keys) Delete(a string) error {
	k.asked++
	if k.err == nil {
		delete(k.all, a)
	}
	return k.err
}

func TestStore(t *testing.T) {
	account, value := Account("a/b ü"), "s3cr3t \"x\"\n"
	locked := &keys{all: map[string]string{}, err: errors.New("locked")}
	for name, tt := range map[string]struct {
		keyring Keyring
		in      string
	}{
		"file": {nil, InFile}, "keyring": {&keys{all: map[string]string{}}, InKeyring},
		"locked keyring": {locked, InFile},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{Dir: filepath.Join(t.TempDir(), "a", "secrets"), Keyring: tt.keyring}
			if _, _, err := s.Get(account); !errors.Is(err, ErrNone) {
				t.Fatalf("an empty store: %v", err)
			}
			if in, err := s.Put(account, "a/b ü", value); in != tt.in || err != nil {
				t.Fatalf("kept in %s, %v", in, err)
			}
			if got, in, err := s.Get(account); got != value || in != tt.in || err != nil {
				t.Errorf("got %q in %s, %v", got, in, err)
			}
			b, err := os.ReadFile(s.File(account))
			if err != nil || strings.Contains(string(b), "s3cr3t") != (tt.in == InFile) {
				t.Errorf("the file: %s, %v", b, err)
			}
			if all := s.List(); !slices.Equal(all, []Entry{{"a/b ü", tt.in}}) {
				t.Errorf("listed: %v", all)
			}
			if _, _, err := s.Get(Account("a/b ü", "")); !errors.Is(err, ErrNone) {
				t.Errorf("the secret of one account was given for another: %v", err)
			}
			if err := s.Delete(account); err != nil && tt.keyring != locked {
				t.Error(err)
			}
			if _, _, err := s.Get(account); !errors.Is(err, ErrNone) {
				t.Errorf("after Delete: %v", err)
			}
			if err := s.Delete(account); !errors.Is(err, ErrNone) {
				t.Errorf("a second Delete: %v", err)
			}
		})
	}
}

// TestNothingStaysInTheKeyring: neither a secret that was replaced while the keyring was locked,
// nor one that no file tells of; and a Delete that leaves one there says so.
func TestNothingStaysInTheKeyring(t *testing.T) {
	account := Account("far")
	put := func(s *Store, token string) {
		t.Helper()
		if _, err := s.Put(account, "far", token); err != nil {
			t.Fatal(err)
		}
	}
	ring := &keys{all: map[string]string{}}
	s := &Store{Dir: t.TempDir(), Keyring: ring}
	put(s, "old")
	ring.err = errors.New("locked")
	put(s, "new")
	if err := s.Delete(account); err == nil || !strings.Contains(err.Error(), "out of the keyring: locked") {
		t.Errorf("from a locked keyring: %v", err)
	}
	ring.err = nil
	put(s, "old")
	ring.err = errors.New("locked")
	put(s, "new")
	put(s, "newer")
	ring.err = nil
	if err := s.Delete(account); err != nil || len(ring.all) > 0 {
		t.Errorf("left: %v, %v", ring.all, err)
	}
	put(s, "untold")
	if err := os.Remove(s.File(account)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(account); !errors.Is(err, ErrNone) || len(ring.all) > 0 {
		t.Errorf("left: %v, %v", ring.all, err)
	}
}

// TestHangingKeyring: it is waited for once, and what it has from before, or keeps after all, is
// dropped later.
func TestHangingKeyring(t *testing.T) {
	account := Account("far")
	for _, before := range []string{"", "old"} {
		ring := &keys{all: map[string]string{}}
		s := &Store{Dir: t.TempDir(), Keyring: ring}
		if before != "" {
			if _, err := s.Put(account, "far", before); err != nil {
				t.Fatal(err)
			}
		}
		ring.err, ring.asked = errNoAnswer, 0
		if in, err := s.Put(account, "far", "new"); in != InFile || err != nil || ring.asked != 1 {
			t.Errorf("before %q: kept in %s, %v, asked %d times", before, in, err, ring.asked)
		}
		if value, in, err := s.Get(account); value != "new" || in != InFile || err != nil {
			t.Errorf("before %q: %q in %s, %v", before, value, in, err)
		}
		if err := s.Delete(account); !errors.Is(err, errNoAnswer) {
			t.Errorf("before %q: %v", before, err)
		}
		ring.err = nil
		if err := s.Delete(account); err != nil || len(ring.all) > 0 {
			t.Errorf("before %q: %v, left %v", before, err, ring.all)
		}
	}
}

// TestFileModes: only the user can read a file, and one that others can read isn't believed.
func TestFileModes(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	account := Account("far")
	s := &Store{Dir: filepath.Join(t.TempDir(), "secrets")}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(account, "far", "x"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{s.Dir: 0o700, s.File(account): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(s.File(account), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(account); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file for all to read: %v", err)
	}
}

// TestKilledWriter: what a process left that was killed while it kept a secret
// goes with the next one kept, and when the secret is forgotten; another one's is left alone.
func TestKilledWriter(t *testing.T) {
	account, other := Account("far"), Account("far2")
	s := &Store{Dir: t.TempDir()}
	half, others := filepath.Join(s.Dir, unfinished(account)+"17"), filepath.Join(s.Dir,
		unfinished(other)+"17")
	for _, do := range []func() error{
		func() error { _, err := s.Put(account, "far", "x"); return err },
		func() error { return s.Delete(account) },
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
	account := Account("far")
	if in, err := s.Put(account, "far", "x"); in != InFile || err != nil {
		t.Errorf("with a bus that isn't there: %s, %v", in, err)
	}
}

// TestKeyringErrors: what the operating system's keyring says is followed by what to do.
func TestKeyringErrors(t *testing.T) {
	keyring.MockInitWithError(errors.New("failed to unlock"))
	defer keyring.MockInit()
	if _, err := (system{}).Get("a"); err == nil ||
		err.Error() != "the keyring: failed to unlock; see that it runs and is unlocked, and try again" {
		t.Errorf("got %v", err)
	}
	s := &Store{Dir: t.TempDir(), Keyring: &keys{all: map[string]string{}}}
	if _, err := s.Put("a", "a", "x"); err != nil {
		t.Fatal(err)
	}
	s.Keyring = nil
	if _, _, err := s.Get("a"); err == nil || !strings.Contains(err.Error(), "set DBUS_SESSION_BUS_ADDRESS") {
		t.Errorf("without a bus: %v", err)
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
