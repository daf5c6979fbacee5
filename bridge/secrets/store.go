// Package secrets keeps what only the user and some of the user's programs may know: in the keyring
// of the operating system, or in files that only the user can read. It knows what secrets are
// called, and nothing of what they are for.
package secrets

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// Store keeps secrets of one user: in the keyring of the operating system if there is one, else in
// files. Processes may share one; its methods may be called concurrently. An account names a secret
// in it: see Account.
//
// Each secret has a file, mode 0600 in a directory of 0700, replaced whole. Of one in the keyring
// the file says only that it is there: a keyring may ask its user before it opens, and isn't asked
// about what it doesn't have.
type Store struct {
	Dir     string  // absolute; made when it is needed
	Keyring Keyring // nil: files only
}

// Keyring is the operating system's store of secrets. Get returns ErrNone for what isn't there.
type Keyring interface {
	Get(account string) (string, error)
	Set(account, secret string) error
	Delete(account string) error
}

// ErrNone says that no such secret is kept.
var ErrNone = errors.New("no such secret is kept")

var errNoKeyring = errors.New("it is in the keyring, and no D-Bus session bus was found; " +
	"set DBUS_SESSION_BUS_ADDRESS to your desktop session's, and try again")

// Where a secret is kept.
const (
	InKeyring = "keyring"
	InFile    = "file"
)

// lockWait is longer than any exchange with a server that the lock is held for.
const lockWait = time.Minute

// record is the content of a secret's file.
type record struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	In    string `json:"in,omitempty"`    // empty once it is forgotten, except by the keyring
	Older bool   `json:"older,omitempty"` // the keyring has one from before, which it didn't let go
}

// inKeyring reports whether the keyring is known to have a secret of the account.
func (r record) inKeyring() bool { return r.In == InKeyring || r.Older }

// Account returns the account of a name and what else tells it from others of that name.
func Account(name string, more ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{name}, more...), "\x00")))
	word := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-') {
			return r
		}
		return '_'
	}, name[:min(len(name), 40)])
	return word + "." + hex.EncodeToString(sum[:8])
}

// File returns the path of the file that is there while there is the secret of an account.
func (s *Store) File(account string) string { return filepath.Join(s.Dir, account+".json") }

// Get returns the secret of an account, and where it is kept, or ErrNone.
func (s *Store) Get(account string) (value, in string, err error) {
	r, err := s.read(account)
	switch {
	case err != nil:
		return "", "", err
	case r.In == InFile:
		return r.Value, InFile, nil
	case r.In != InKeyring:
		return "", "", ErrNone
	case s.Keyring == nil:
		return "", "", errNoKeyring
	}
	value, err = s.Keyring.Get(account)
	return value, InKeyring, err
}

// An Entry is a secret that is kept.
type Entry struct{ Name, In string }

// List returns the secrets that there are, by their files' names. What can't be read is left out.
func (s *Store) List() (all []Entry) {
	files, _ := fs.Glob(os.DirFS(s.Dir), "*.json")
	for _, file := range files {
		if r, err := s.read(strings.TrimSuffix(file, ".json")); err == nil && r.In != "" {
			all = append(all, Entry{r.Name, r.In})
		}
	}
	return all
}

func (s *Store) read(account string) (r record, err error) {
	path := s.File(account)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, ErrNone
	case err != nil:
		return r, err
	case goruntime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return r, fmt.Errorf("others can read %s; make it yours alone: chmod 600", path)
	}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &r) != nil {
		return r, fmt.Errorf("%s can't be read; remove it, and keep the secret again", path)
	}
	return r, nil
}

// Put keeps the secret of an account under a name for people, and returns where. Its caller has
// Lock; one that makes a secret from the one before, from before Get on.
func (s *Store) Put(account, name, value string) (in string, err error) {
	var bad error
	if s.Keyring != nil {
		if bad = s.Keyring.Set(account, value); bad == nil {
			return InKeyring, s.write(account, record{Name: name, In: InKeyring})
		}
	}
	// No keyring, one that is locked, or one that takes no secret of that length.
	older := true                     // one that hangs may keep it later
	if !errors.Is(bad, errNoAnswer) { // and isn't waited for again
		before, _ := s.read(account)
		older = s.drop(account, before) != nil
	}
	return InFile, s.write(account, record{Name: name, Value: value, In: InFile, Older: older})
}

// drop takes a secret out of the keyring, whatever its file says. It fails only if the keyring is
// known to have one.
func (s *Store) drop(account string, r record) error {
	if s.Keyring == nil {
		if r.inKeyring() {
			return errNoKeyring
		}
		return nil
	}
	if err := s.Keyring.Delete(account); r.inKeyring() && err != nil && !errors.Is(err, ErrNone) {
		return fmt.Errorf("taking it out of the keyring: %w", err)
	}
	return nil
}

// write replaces a secret's file whole.
func (s *Store) write(account string, r record) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.sweep(account)
	return filelock.Replace(s.File(account), unfinished(account)+"*", b)
}

// unfinished returns how the names of files begin that are to replace a secret's.
func unfinished(account string) string { return "." + account + ".new-" }

// sweep removes what killed writers have left, which holds secrets. The caller has Lock.
func (s *Store) sweep(account string) {
	left, _ := fs.Glob(os.DirFS(s.Dir), unfinished(account)+"*")
	for _, file := range left {
		_ = os.Remove(filepath.Join(s.Dir, file))
	}
}

func (s *Store) makeDir() error {
	err := os.MkdirAll(s.Dir, 0o700)
	if err == nil {
		err = os.Chmod(s.Dir, 0o700)
	}
	return err
}

// Delete forgets a secret, wherever it is. It returns ErrNone for one that isn't kept. If the
// keyring doesn't let it go, the error says so, and the next Delete tries again. Its caller has
// Lock.
func (s *Store) Delete(account string) error {
	r, _ := s.read(account) // what can't be read is removed as well
	s.sweep(account)
	if err := s.drop(account, r); err != nil {
		if r.In == InFile { // that is forgotten; what the keyring has besides is known to be there
			err = errors.Join(err, s.write(account, record{Name: r.Name, Older: true}))
		}
		return err
	}
	err := os.Remove(s.File(account))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	return err
}

// Lock keeps other processes, and other callers in this one, from changing a secret. It waits until
// ctx ends, and a minute at most.
func (s *Store) Lock(ctx context.Context, account string) (unlock func(), err error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	return filelock.Within(ctx, lockWait, filepath.Join(s.Dir, account+".lock"))
}

// Key returns the random key of size bytes that is kept under a name, and where it is kept: in the
// keyring, or in a file of mode 0600 on a machine without a keyring. It makes a key that is missing
// if it may, and returns ErrNone otherwise.
func (s *Store) Key(ctx context.Context, name string, size int,
	mayMake bool) (key []byte, in string, err error) {
	account := Account(name)
	unlock, err := s.Lock(ctx, account)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	text, in, err := s.Get(account)
	if errors.Is(err, ErrNone) && mayMake {
		key = make([]byte, size)
		_, _ = rand.Read(key) // never fails
		in, err = s.Put(account, name, base64.StdEncoding.EncodeToString(key))
		return key, in, err
	}
	if err != nil {
		return nil, "", err
	}
	key, err = base64.StdEncoding.DecodeString(text)
	return key, in, err
}
