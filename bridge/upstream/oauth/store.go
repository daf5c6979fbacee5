package oauth

import (
	"context"
	"crypto/sha256"
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

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// Store keeps the grants of one user: in the keyring of the operating system if there is one, else
// in files. Processes may share one; its methods may be called concurrently.
//
// Each grant has a file, mode 0600 in a directory of 0700, replaced whole. Of a grant in the
// keyring the file says only that it is there: a keyring may ask its user before it opens, and
// isn't asked about servers without a login.
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

// ErrNone says that there is no login.
var ErrNone = errors.New("there is no login")

var errNoKeyring = errors.New("the login is in the keyring, which can't be reached from here")

// Where a grant is kept.
const (
	InKeyring = "keyring"
	InFile    = "file"
)

// lockWait is longer than any exchange that the lock is held for.
const lockWait = time.Minute

// record is the content of a grant's file.
type record struct {
	Grant *Grant `json:"grant,omitempty"`
	In    string `json:"in"`
	Older bool   `json:"older,omitempty"` // the keyring has one from before, which it didn't let go
}

// account returns the name of a server's grant. Name and URL are both part of it: the same name may
// mean another server tomorrow, and two entries for one URL may be two users there.
func account(s discovery.Server) string {
	sum := sha256.Sum256([]byte(s.Name + "\x00" + s.URL))
	word := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-') {
			return r
		}
		return '_'
	}, s.Name[:min(len(s.Name), 40)])
	return word + "." + hex.EncodeToString(sum[:8])
}

func (s *Store) file(account string) string { return filepath.Join(s.Dir, account+".json") }

// Get returns a server's grant, and where it is kept, or ErrNone.
func (s *Store) Get(srv discovery.Server) (g Grant, in string, err error) {
	name := account(srv)
	r, err := s.read(name)
	if err != nil {
		return g, "", err
	}
	if r.In == InKeyring {
		if s.Keyring == nil {
			return g, "", errNoKeyring
		}
		text, err := s.Keyring.Get(name)
		if err != nil {
			return g, "", err
		}
		r.Grant = new(Grant)
		if json.Unmarshal([]byte(text), r.Grant) != nil {
			return g, "", errors.New("what the keyring has for it can't be read")
		}
	}
	if r.Grant == nil || r.Grant.URL != srv.URL {
		return g, "", ErrNone
	}
	return *r.Grant, r.In, nil
}

// stamp returns what changes when a grant is replaced; nil if there is none.
func (s *Store) stamp(srv discovery.Server) os.FileInfo {
	info, err := os.Stat(s.file(account(srv)))
	if err != nil {
		return nil
	}
	return info
}

func (s *Store) read(name string) (r record, err error) {
	info, err := os.Stat(s.file(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, ErrNone
	case err != nil:
		return r, fmt.Errorf("reading the login: %w", err)
	case goruntime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return r, fmt.Errorf("others can read %s; make it yours alone (chmod 600), or log in again", s.file(name))
	}
	b, err := os.ReadFile(s.file(name))
	if err != nil || json.Unmarshal(b, &r) != nil {
		return r, fmt.Errorf("%s can't be read; log out and in again", s.file(name))
	}
	return r, nil
}

// Put keeps a grant and returns where. Its caller has Lock; one that renews a grant, from before
// Get on.
func (s *Store) Put(srv discovery.Server, g Grant) (in string, err error) {
	name := account(srv)
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	if s.Keyring != nil && s.Keyring.Set(name, string(text)) == nil {
		return InKeyring, s.write(name, record{In: InKeyring})
	}
	// No keyring, one that is locked, or one that takes no secret of that length.
	before, _ := s.read(name)
	return InFile, s.write(name, record{Grant: &g, In: InFile, Older: s.drop(name, before) != nil})
}

// drop takes a server's grant out of the keyring, whatever its file says. It fails only if the
// keyring is known to have one.
func (s *Store) drop(name string, r record) error {
	known := r.In == InKeyring || r.Older
	if s.Keyring == nil {
		if known {
			return errNoKeyring
		}
		return nil
	}
	if err := s.Keyring.Delete(name); known && err != nil && !errors.Is(err, ErrNone) {
		return fmt.Errorf("taking the login out of the keyring: %w; unlock it, and log out again", err)
	}
	return nil
}

// write replaces a grant's file whole.
func (s *Store) write(name string, r record) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.sweep(name)
	if err := filelock.Replace(s.file(name), unfinished(name)+"*", b); err != nil {
		return fmt.Errorf("keeping the login: %w", err)
	}
	return nil
}

// unfinished returns how the names of files begin that are to replace a grant's.
func unfinished(account string) string { return "." + account + ".new-" }

// sweep removes what killed writers have left, which holds tokens. The caller has the grant's lock.
func (s *Store) sweep(name string) {
	left, _ := fs.Glob(os.DirFS(s.Dir), unfinished(name)+"*")
	for _, file := range left {
		_ = os.Remove(filepath.Join(s.Dir, file))
	}
}

func (s *Store) makeDir() error {
	err := os.MkdirAll(s.Dir, 0o700)
	if err == nil {
		err = os.Chmod(s.Dir, 0o700)
	}
	if err != nil {
		err = fmt.Errorf("making the directory of logins: %w", err)
	}
	return err
}

// Delete forgets a server's grant, wherever it is. ErrNone says that there was none. If the keyring
// doesn't let a grant go, the error says so, and the next Delete tries again. Its caller has Lock.
func (s *Store) Delete(srv discovery.Server) error {
	name := account(srv)
	r, _ := s.read(name) // what can't be read is removed as well
	s.sweep(name)
	if err := s.drop(name, r); err != nil {
		if r.Grant != nil { // that is forgotten; what the keyring has besides is known to be there
			err = errors.Join(err, s.write(name, record{Older: true}))
		}
		return err
	}
	switch err := os.Remove(s.file(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNone
	case err != nil:
		return fmt.Errorf("removing the login: %w", err)
	}
	return nil
}

// Lock keeps other processes, and other callers in this one, from changing a server's grant. It
// waits until ctx ends, and a minute at most.
func (s *Store) Lock(ctx context.Context, srv discovery.Server) (unlock func(), err error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return filelock.Acquire(ctx, filepath.Join(s.Dir, account(srv)+".lock"))
}
