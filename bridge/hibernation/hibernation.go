// Package hibernation keeps sandboxes that have ended as files, from which they can be made again:
// encrypted, each written whole or not at all, for some time, a few of each owner. It knows nothing
// of guests: what a file has is an archive, which is never unpacked on this machine.
//
// Of a sandbox whose files are in use by a bridge there is a lock file beside them. One that is
// left without a lock, and says that the file which is there was woken, tells that this bridge was
// killed, and what it had was lost.
package hibernation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Bounds of what is kept.
const (
	PerOwner = 16
	MaxAge   = 30 * 24 * time.Hour
	MaxTotal = 8 << 30 // bytes of all
)

// Config is what a Store is made from. All fields are required.
type Config struct {
	Dir string                          // absolute; made if it isn't there
	Key func(make bool) ([]byte, error) // KeySize bytes, always the same; ErrNoKey if there isn't one to make
	Log *slog.Logger
}

// ErrNone says that no such sandbox is kept, ErrInUse that another bridge has it.
var (
	ErrNone  = errors.New("no such sandbox was saved")
	ErrInUse = errors.New("another bridge of this user has it in use")
	ErrNoKey = errors.New("there is no key")
)

// An Error says that a sandbox was saved, and can't be had.
type Error struct {
	ID  string
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("sandbox %q was saved, and can't be woken: %v", e.ID, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Saved is what is known of a sandbox that was saved, beside its files.
type Saved struct {
	Owner, ID   string
	Name        string            `json:",omitempty"`
	Metadata    map[string]string `json:",omitempty"`
	Variables   map[string]string `json:",omitempty"`
	Running     bool              `json:",omitempty"`
	Principal   string            `json:",omitempty"`
	Environment string            `json:",omitempty"` // its name
	Timeout     time.Duration     `json:",omitempty"`
	AutoDelete  time.Duration     `json:",omitempty"`
	Active      time.Duration     `json:",omitempty"` // not paused, so far
	Calls       int
	Created     time.Time
	Used        time.Time
	At          time.Time // when it was saved
	Expires     time.Time `json:",omitzero"`  // if it is to, before MaxAge
	Left        []string  `json:",omitempty"` // what its archive leaves out

	Size int64 `json:"-"` // of its file
}

// Store is a directory of saved sandboxes. Several processes may use it; it is safe for concurrent
// use.
type Store struct {
	cfg     Config
	replace func(path, pattern string, write func(io.Writer) error) error
	most    int64 // MaxTotal

	mu  sync.Mutex
	key []byte // nil until it is needed
}

// Open makes the directory, which must be the user's alone, and removes what killed bridges have
// left unfinished.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, replace: filelock.ReplaceBy, most: MaxTotal}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := trust.System().OwnDirectory(cfg.Dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	s.sweep()
	return s, nil
}

const (
	savedSuffix = ".sandbox"
	lockSuffix  = ".lock"
)

// idForm is the form of an id, which may end in the name of a replica.
const idForm = `[a-z0-9]{1,20}(\.[a-z0-9-]{1,63})?$`

var (
	validID = regexp.MustCompile(`^` + idForm)
	// ours matches the names of files without suffix: the directory may have others
	ours = regexp.MustCompile(`^[0-9a-f]{16}-` + idForm)
)

// prefix returns how the names of an owner's files begin.
func prefix(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8]) + "-"
}

// path returns the path of a sandbox's files, without suffix.
func (s *Store) path(name string) string { return filepath.Join(s.cfg.Dir, name) }

// keyFor returns the key. It is asked for once.
func (s *Store) keyFor(make bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	key, err := s.cfg.Key(make)
	if err == nil && len(key) != KeySize {
		err = fmt.Errorf("it has %d bytes, not %d", len(key), KeySize)
	}
	if err != nil {
		return nil, fmt.Errorf("the key of saved sandboxes: %w", err)
	}
	s.key = key
	return key, nil
}

// A Claim is a sandbox that no other bridge may wake, or save, until it is given back by Drop,
// Lose or Remove, of which the first counts.
type Claim struct {
	Saved Saved
	Lost  bool // a bridge that had woken it was killed, and what it had is lost

	store   *Store
	name    string
	release func()
	once    sync.Once
}

// New claims a sandbox that isn't saved yet.
func (s *Store) New(owner, id string) (*Claim, error) {
	if !validID.MatchString(id) {
		return nil, ErrNone
	}
	c := &Claim{store: s, name: prefix(owner) + id}
	return c, c.lock(momentary)
}

// Claim claims a sandbox that was saved. The error is ErrNone, or an *Error.
func (s *Store) Claim(owner, id string) (*Claim, error) {
	if !validID.MatchString(id) {
		return nil, ErrNone
	}
	name := prefix(owner) + id
	if _, err := os.Stat(s.path(name) + savedSuffix); err != nil {
		return nil, ErrNone
	}
	c := &Claim{store: s, name: name}
	err := c.lock(momentary)
	if err != nil {
		return nil, &Error{id, err}
	}
	if c.Saved, err = s.look(name); err == nil {
		err = c.mark()
	}
	if err != nil {
		c.Drop()
		if errors.Is(err, fs.ErrNotExist) { // the sandbox was ended just now
			return nil, ErrNone
		}
		return nil, &Error{id, err}
	}
	switch {
	case c.Saved.ID != id || c.Saved.Owner != owner: // it was moved here by others than us
		c.Drop()
		return nil, ErrNone
	case c.Saved.expired():
		c.Remove()
		return nil, ErrNone
	}
	return c, nil
}

func (v Saved) expired() bool {
	now := time.Now()
	return now.Sub(v.At) > MaxAge || !v.Expires.IsZero() && now.After(v.Expires)
}

// momentary is how long a lock is waited for. Another bridge takes it for a moment when it looks
// for files that are too old; one that has the sandbox in use keeps it.
const momentary = time.Second

// lock takes the lock, or returns ErrInUse, and sets Lost.
func (c *Claim) lock(patience time.Duration) (err error) {
	c.release, err = filelock.Within(context.Background(), patience, c.store.path(c.name)+lockSuffix)
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrInUse
	}
	if err == nil {
		woken := c.store.head(c.name, lockSuffix, markAt)
		c.Lost = len(woken) > 0 && bytes.Equal(woken, c.store.head(c.name, savedSuffix, 0))
	}
	return err
}

// markAt is where a lock file says which file was woken: Windows lets no others read the byte that
// is locked.
const markAt = 1

// mark notes in the lock file that what is saved is woken.
func (c *Claim) mark() error {
	f, err := os.OpenFile(c.store.path(c.name)+lockSuffix, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(c.store.head(c.name, savedSuffix, 0), markAt)
	return errors.Join(err, f.Close())
}

// head returns the part of one of a sandbox's files that no other has: of a saved one how it
// begins. It is empty if there isn't one.
func (s *Store) head(name, suffix string, at int64) []byte {
	f, err := os.Open(s.path(name) + suffix)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, headSize)
	if n, _ := f.ReadAt(head, at); n < len(head) {
		return nil
	}
	return head
}

// Drop gives the sandbox back as it was saved.
func (c *Claim) Drop() {
	c.once.Do(func() {
		lock := c.store.path(c.name) + lockSuffix
		remove := !c.Lost
		if remove && os.Remove(lock) == nil {
			remove = false
		}
		c.release()
		if remove { // Windows keeps a file that is open
			_ = os.Remove(lock)
		}
	})
}

// Lose gives back a sandbox that was woken and has ended without being saved again.
func (c *Claim) Lose() { c.once.Do(c.release) }

// Remove gives it back, and removes what was saved.
func (c *Claim) Remove() {
	_ = os.Remove(c.store.path(c.name) + savedSuffix)
	c.Lost = false
	c.Drop()
}

// Save saves the sandbox as v, with what write writes, and gives it back. If that fails, what was
// saved before stays.
func (c *Claim) Save(v Saved, write func(io.Writer) error) error {
	s := c.store
	key, err := s.keyFor(true)
	if err != nil {
		return err
	}
	about, err := json.Marshal(v)
	if err == nil && len(about) > maxChunk {
		err = fmt.Errorf("what is known of it has %d bytes", len(about))
	}
	if err != nil {
		return err
	}
	err = s.replace(s.path(c.name)+savedSuffix, unfinished(c.name)+"*", func(w io.Writer) error {
		sealed, err := newSealer(w, key, c.name)
		if err == nil {
			_, err = sealed.Write(about)
		}
		if err == nil {
			err = write(sealed)
		}
		if err == nil {
			err = sealed.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	c.Lost = false
	c.Drop()
	s.sweep()
	s.crop()
	return nil
}

// Read calls read with the archive that was saved.
func (c *Claim) Read(read func(io.Reader) error) error {
	_, err := c.store.open(c.name, read)
	if err != nil {
		return &Error{c.Saved.ID, err}
	}
	return nil
}

// look returns what is known of a sandbox.
func (s *Store) look(name string) (Saved, error) { return s.open(name, nil) }

// open reads a file: what is known of the sandbox, and the archive if read is given.
func (s *Store) open(name string, read func(io.Reader) error) (v Saved, err error) {
	f, err := os.Open(s.path(name) + savedSuffix)
	if err != nil {
		return v, err
	}
	defer f.Close()
	key, err := s.keyFor(false)
	if err != nil {
		return v, err
	}
	if v, err = parse(f, key, name, read); err != nil {
		return v, err
	}
	info, err := f.Stat()
	if err == nil {
		v.Size = info.Size()
	}
	return v, err
}

// parse reads a file's content.
func parse(f io.Reader, key []byte, name string, read func(io.Reader) error) (v Saved, err error) {
	o, err := newOpener(f, key, name)
	if err != nil {
		return v, err
	}
	about, err := o.chunk()
	if errors.Is(err, io.EOF) || err == nil && json.Unmarshal(about, &v) != nil {
		err = errDamaged
	}
	if err != nil || read == nil {
		return v, err
	}
	return v, read(o)
}

// Remove removes a sandbox that was saved, and reports whether there was one. One that a bridge has
// in use stays.
func (s *Store) Remove(owner, id string) bool {
	name := prefix(owner) + id
	if !validID.MatchString(id) || !s.saved(name) {
		return false
	}
	s.unless(name, momentary, func() { _ = os.Remove(s.path(name) + savedSuffix) })
	return true
}

// RemoveOf removes the sandboxes of owners that are gone, and returns how many there were. Those
// that a bridge has in use stay, and those that can't be read.
func (s *Store) RemoveOf(gone func(owner string) bool) (removed int) {
	for _, name := range s.names("") {
		if v, err := s.look(name); err == nil && gone(v.Owner) && strings.HasPrefix(name, prefix(v.Owner)) {
			s.unless(name, momentary, func() {
				if os.Remove(s.path(name)+savedSuffix) == nil {
					removed++
				}
			})
		}
	}
	return removed
}

// Look returns what is known of a sandbox that was saved. The error is ErrNone, or an *Error.
func (s *Store) Look(owner, id string) (Saved, error) {
	name := prefix(owner) + id
	if !validID.MatchString(id) || !s.saved(name) {
		return Saved{}, ErrNone
	}
	v, err := s.look(name)
	switch {
	case err != nil:
		return v, &Error{id, err}
	case v.Owner != owner || v.ID != id || v.expired():
		return v, ErrNone
	}
	return v, nil
}
