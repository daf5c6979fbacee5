package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Bounds of what is kept.
const (
	maxFile    = 8 << 20  // bytes of one server's; of more the shapes of results go first
	maxTotal   = 64 << 20 // bytes of all; the oldest go first
	maxFiles   = 500      // of them, likewise
	maxPurpose = 1000     // bytes
	maxHead    = 2 << 10  // bytes, more than the first line of a file takes
)

// format is what each file says it is. It changes with what the files hold.
const format = "mcp-bridge-tools-3"

const (
	suffix   = ".json"
	lockName = ".lock"
	lockWait = 5 * time.Second // for another process that saves
)

// A List is what a server has said of its tools.
type List struct {
	Purpose string    // what the server says it is for; may be empty
	AsOf    time.Time // when it listed them
	Tools   []upstream.Tool
}

// A Store keeps in a directory what servers have said of their tools, and what the tools' results
// were seen to be, so that these can be searched and read while no server runs. Each server has a
// file, named by its discovery.Server's Identity: another command, argument, variable or directory
// makes another server, and no secret in these is in a file.
//
// What it reads is only shown. A file that is broken or of another format is ignored, as are all in
// a directory that others may write, and replaced by the next Save. A Store is safe for concurrent
// use, by several processes too. A nil Store keeps nothing.
type Store struct {
	dir   string
	files int
	size  int
	total int64
}

// OpenStore returns the store in a directory, which the first Save makes.
func OpenStore(dir string) *Store {
	return &Store{dir: dir, files: maxFiles, size: maxFile, total: maxTotal}
}

// head is the first line of a file, which is read by itself.
type head struct {
	Format  string `json:"format"`
	Key     string `json:"key"`
	Purpose string `json:"purpose,omitempty"`
}

// record is the rest of a file.
type record struct {
	AsOf  time.Time         `json:"asOf"`
	Tools []upstream.Tool   `json:"tools"`
	Seen  map[string]*shape `json:"seen,omitempty"` // by the tools' names
}

// Load returns the latest list that was saved under a key, if there is one that can be used.
func (s *Store) Load(key string) (List, bool) {
	h, r, ok := s.read(key)
	return List{Purpose: h.Purpose, AsOf: r.AsOf, Tools: r.Tools}, ok && !r.AsOf.IsZero()
}

// seen returns the shapes of results that were saved under a key, by the tools' names.
func (s *Store) seen(key string) map[string]*shape {
	if _, r, ok := s.read(key); ok && r.Seen != nil {
		return r.Seen
	}
	return map[string]*shape{}
}

// Purpose returns what the server of a key says it is for, without reading its list, or "" if that
// isn't known.
func (s *Store) Purpose(key string) string {
	h, _ := s.open(key, maxHead)
	return h.Purpose
}

func (s *Store) read(key string) (h head, r record, ok bool) {
	h, rest := s.open(key, maxFile+1)
	if rest == nil || json.Unmarshal(rest, &r) != nil {
		return head{}, record{}, false
	}
	maps.DeleteFunc(r.Seen, func(_ string, sh *shape) bool { return !sh.valid() })
	return h, r, true
}

// open returns the first line of a file, and what follows it within most bytes; nil and nothing of
// a file that can't be used. Its directory must be the user's alone.
func (s *Store) open(key string, most int64) (h head, rest []byte) {
	if s == nil || trust.System().OwnDirectory(s.dir) != nil {
		return head{}, nil
	}
	f, err := os.Open(s.path(key))
	if err != nil {
		return head{}, nil
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most))
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	known := json.Unmarshal(line, &h) == nil && h.Format == format && h.Key == key
	if err != nil || len(content) > maxFile || !known {
		return head{}, nil
	}
	return h, rest
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, key+suffix) }

// Save keeps a list, in the place of the one that was there, and drops the shapes of tools that it
// doesn't have. A list that is too long is not kept, and neither is the old one then. The error is
// the file system's: nothing is lost but the next search's time.
func (s *Store) Save(key string, l List) error {
	return s.change(key, func(h *head, r *record) {
		h.Purpose = text.First(l.Purpose, maxPurpose)
		r.AsOf, r.Tools = l.AsOf.UTC().Round(0), append([]upstream.Tool{}, l.Tools...)
	})
}

// saveSeen merges the shapes of results of a server's tools into those that were saved. It drops
// those of tools that the server's saved list doesn't have.
func (s *Store) saveSeen(key string, tools map[string]*shape) error {
	return s.change(key, func(_ *head, r *record) {
		all := map[string]*shape{}
		maps.Copy(all, r.Seen)
		for name, found := range tools {
			if merged := merge(all[name], found); merged.valid() {
				all[name] = merged
			}
		}
		r.Seen = all
	})
}

// change replaces a file by what do makes of it, while no other process does.
func (s *Store) change(key string, do func(*head, *record)) (err error) {
	if s == nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("keeping the tools of a server: %w", err)
		}
	}()
	if err := s.makeDir(); err != nil {
		return err
	}
	release, err := filelock.Within(context.Background(), lockWait, filepath.Join(s.dir, lockName))
	if err != nil {
		return err
	}
	defer release()
	h, r, _ := s.read(key)
	h.Format, h.Key = format, key
	do(&h, &r)
	if !r.AsOf.IsZero() {
		maps.DeleteFunc(r.Seen, func(name string, _ *shape) bool {
			return !slices.ContainsFunc(r.Tools, func(t upstream.Tool) bool { return t.Name == name })
		})
	}
	content, err := encode(h, r)
	if err == nil && len(content) > s.size {
		r.Seen = nil
		content, err = encode(h, r)
	}
	if err != nil {
		return err
	}
	path := s.path(key)
	if len(content) > s.size {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else if err := filelock.Replace(path, "new-*", content); err != nil {
		return err
	}
	s.prune(key + suffix)
	return nil
}

func encode(h head, r record) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := errors.Join(enc.Encode(h), enc.Encode(r))
	return out.Bytes(), err
}

// makeDir makes the directory, or makes it private.
func (s *Store) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	owners := trust.System()
	err := owners.OwnDirectory(s.dir)
	if err == nil || owners.Foreign(s.dir) {
		return err
	}
	return errors.Join(os.Chmod(s.dir, 0o700), owners.OwnDirectory(s.dir))
}

// prune removes the oldest files beyond the bounds, except the one just written. Those of a process
// that was killed while it wrote count too.
func (s *Store) prune(but string) {
	entries, _ := os.ReadDir(s.dir)
	var kept []fs.FileInfo
	size := int64(0)
	for _, e := range entries {
		if about, err := e.Info(); err == nil && about.Mode().IsRegular() && e.Name() != lockName {
			kept, size = append(kept, about), size+about.Size()
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	count := len(kept)
	for _, about := range kept {
		if about.Name() != but && (count > s.files || size > s.total) {
			_ = os.Remove(filepath.Join(s.dir, about.Name()))
			count, size = count-1, size-about.Size()
		}
	}
}
