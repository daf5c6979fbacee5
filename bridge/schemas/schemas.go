// Package schemas keeps the definitions of servers' tools on disk, so that they can be searched and
// read while no server runs. Each server has a file, named by a hash of the server's definition:
// another command, argument, variable or directory makes another server, and no secret in these is
// in a file.
//
// What it reads is only shown. A file that is broken, that another user may write, or of another
// format is ignored, and replaced by the next Save. The package calls no server and doesn't decide
// what is stale.
package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/filelock"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Bounds of what is kept.
const (
	maxFile   = 8 << 20  // bytes of one server's; more are not kept
	maxTotal  = 64 << 20 // bytes of all; the oldest go first
	maxFiles  = 500      // of them, likewise
	maxListed = 10_000   // names in the directory that are looked at
)

// format is the first word of each file. It changes with what the files hold.
const format = "mcp-bridge-tools-2"

const (
	suffix     = ".tools"
	unfinished = "new-" // the beginning of the names of files that are being written
)

// A List is what a server has said of its tools.
type List struct {
	Version string    // what the server calls itself, and its version, as it told when it was connected to; may be empty
	Purpose string    // what it says it is for, as text of one to some words; may be empty
	AsOf    time.Time // when it listed them
	Tools   []upstream.Tool
}

// A Store is the files in a directory. It is safe for concurrent use, by several processes too. A nil Store keeps nothing.
type Store struct {
	dir   string
	files int
	total int64
	seen  int // bytes of one server's shapes

	mu sync.Mutex // who writes
}

// Open returns the store in a directory, which is made by the first Save.
func Open(dir string) *Store {
	return &Store{dir: dir, files: maxFiles, total: maxTotal, seen: maxSeen}
}

// Key names a server's file: a hash of everything that decides which program is started, or which server is reached, and with what.
func Key(s discovery.Server) string { return s.Identity() }

// content is a file after its first two lines, which are the format with the hash of the rest, and
// the purpose.
type content struct {
	Key     string    `json:"key"`
	Version string    `json:"version,omitempty"`
	AsOf    time.Time `json:"asOf"`
	Tools   []tool    `json:"tools"`
}

type tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Invalid      string          `json:"invalid,omitempty"`
}

// Load gives the latest list that was saved under a key, if there is one that can be used.
func (s *Store) Load(key string) (List, bool) {
	if s == nil {
		return List{}, false
	}
	text, err := s.read(key+suffix, maxFile+1)
	if err != nil || len(text) > maxFile {
		return List{}, false
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	_, list, _ := bytes.Cut(body, []byte("\n"))
	var c content
	if string(head) != header(body) || json.Unmarshal(list, &c) != nil || c.Key != key {
		return List{}, false
	}
	l := List{Version: c.Version, Purpose: purposeOf(body), AsOf: c.AsOf, Tools: make([]upstream.Tool, 0, len(c.Tools))}
	for _, t := range c.Tools {
		l.Tools = append(l.Tools, upstream.Tool(t))
	}
	return l, true
}

// maxHead is more than the first two lines of a file take.
const maxHead = 2 << 10

// Purpose returns what the server of a key says it is for, without reading its list, or "" if that
// isn't known.
func (s *Store) Purpose(key string) string {
	if s == nil {
		return ""
	}
	text, err := s.read(key+suffix, maxHead)
	head, body, found := bytes.Cut(text, []byte("\n"))
	if err != nil || !found || !bytes.HasPrefix(head, []byte(format+" ")) {
		return ""
	}
	return purposeOf(body)
}

// purposeOf returns the text that stands in the line before a list.
func purposeOf(body []byte) (text string) {
	line, _, found := bytes.Cut(body, []byte("\n"))
	if !found || json.Unmarshal(line, &text) != nil {
		return ""
	}
	return text
}

// read returns up to most bytes of a file. The file and its directory must belong to the user,
// and be writable by no other.
func (s *Store) read(name string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	about, err := root.Stat(".")
	if err == nil {
		err = private(about)
	}
	if err != nil {
		return nil, err
	}
	f, err := openPlain(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// openPlain opens what is a plain file, not a link or a pipe, which could block.
func openPlain(root *os.Root, name string) (*os.File, error) {
	about, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !about.Mode().IsRegular() {
		return nil, errors.New("it is no plain file")
	}
	if err := private(about); err != nil {
		return nil, err
	}
	return root.Open(name)
}

// othersMayWrite are the permissions that other users must not have. Windows doesn't have them.
const othersMayWrite = 0o022

// private returns an error if another user owns a file or directory, or may write it.
func private(about fs.FileInfo) error {
	if !ours(about) {
		return fmt.Errorf("%s belongs to another user", about.Name())
	}
	if runtime.GOOS != "windows" && about.Mode().Perm()&othersMayWrite != 0 {
		return fmt.Errorf("others may write %s", about.Name())
	}
	return nil
}

func header(body []byte) string {
	sum := sha256.Sum256(body)
	return format + " " + hex.EncodeToString(sum[:])
}

// Save keeps a list, in the place of the one that was there. One that is too long is not kept, and neither is the old one then. The
// error is the file system's: nothing is lost but the next search's time.
func (s *Store) Save(key string, l List) error {
	if s == nil {
		return nil
	}
	c := content{Key: key, Version: l.Version, AsOf: l.AsOf.UTC().Round(0), Tools: make([]tool, 0, len(l.Tools))}
	for _, t := range l.Tools {
		c.Tools = append(c.Tools, tool(t))
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(l.Purpose), enc.Encode(c)); err != nil {
		return fmt.Errorf("keeping the tools of a server: %w", err)
	}
	head := header(body.Bytes()) + "\n"
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if len(head)+body.Len() > maxFile {
		err = os.Remove(filepath.Join(s.dir, key+suffix))
	} else {
		err = s.write(key+suffix, head, body.Bytes())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keeping the tools of a server: %w", err)
	}
	s.prune(key + suffix)
	return nil
}

// makeDir makes the directory, or makes it private.
func (s *Store) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if about, err := os.Stat(s.dir); err == nil && private(about) != nil {
		if !ours(about) {
			return private(about)
		}
		return os.Chmod(s.dir, 0o700)
	}
	return nil
}

// write replaces a file. The caller has s.mu.
func (s *Store) write(name, head string, body []byte) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	return filelock.Replace(filepath.Join(s.dir, name), unfinished+"*", []byte(head), body)
}

// abandoned is the age from which a file that was never finished is removed.
const abandoned = time.Hour

// prune removes the oldest files beyond the bounds, except the one just written. The caller has s.mu.
func (s *Store) prune(but string) {
	dir, err := os.Open(s.dir)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxListed)
	var kept []fs.FileInfo
	for _, e := range entries {
		about, err := e.Info()
		switch {
		case err != nil:
		case strings.HasPrefix(e.Name(), unfinished) && time.Since(about.ModTime()) > abandoned:
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		case strings.HasSuffix(e.Name(), suffix), strings.HasSuffix(e.Name(), seenSuffix):
			kept = append(kept, about)
		}
	}
	for _, name := range beyond(kept, but, s.files, s.total) {
		_ = os.Remove(filepath.Join(s.dir, name))
	}
}
