package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	maxBytes = 256 << 20 // of all runs' files that are kept
	block    = 4 << 10   // what a file counts at least
	maxFiles = 10_000    // names that are looked at in one run's directory

	// marker is a file in the directory of each run. Code can't hand over a file of that name, since
	// none of its names begins with a dot. A directory without a marker is never removed.
	marker = ".mcp-bridge-run"

	lockName = ".mcp-bridge.lock"
	lockWait = 2 * time.Second // a call's result waits for it
)

// A Store is a directory with one directory for each run that has handed over files. It is safe for
// concurrent use, by several processes too.
type Store struct {
	dir  string
	max  int64
	log  *slog.Logger
	told sync.Once // that nothing is removed

	mu    sync.Mutex
	sizes map[string]int64 // of runs whose directory was looked at: it doesn't grow
}

// Open returns the store in a directory, whose path must be absolute. The first Keep makes it. A
// nil log means silence.
func Open(dir string, log *slog.Logger) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%s is not an absolute path", dir)
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Store{dir: filepath.Clean(dir), max: maxBytes, log: log, sizes: map[string]int64{}}, nil
}

// Dir returns the absolute path of the directory.
func (s *Store) Dir() string { return s.dir }

// Keep writes the files of a run and returns their absolute paths by name. Only the user can read
// them, and they aren't executable. It removes the oldest runs when all files together take more
// than 256 MB. The error names the files that can't be written.
func (s *Store) Keep(ctx context.Context, run string, files []sandbox.Artifact) (map[string]string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory for the files can't be made: %w", err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it itself
	about, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if exposed(about) {
		return nil, exposedError(s.dir, about)
	}
	// Another bridge may not remove what is just being written. Where nothing can be locked,
	// nothing is removed.
	release, lockErr := filelock.Within(ctx, lockWait, filepath.Join(s.dir, lockName))
	switch {
	case lockErr == nil:
		defer release()
	case !errors.Is(lockErr, context.Canceled): // the call's own end
		s.told.Do(func() {
			s.log.Warn("old files of runs are not removed while the directory can't be locked; more may take "+
				"place than is allowed", "lock", filepath.Join(s.dir, lockName), "err", lockErr)
		})
	}
	if err := root.Mkdir(run, 0o700); err != nil {
		return nil, err
	}
	own, err := root.OpenRoot(run)
	if err != nil {
		return nil, err
	}
	defer own.Close() //nolint:errcheck // as above
	if err := own.WriteFile(marker, nil, 0o600); err != nil {
		return nil, err
	}
	paths, err := write(own, filepath.Join(s.dir, run), files, modes{dir: 0o700, file: 0o600})
	if lockErr == nil {
		s.prune(root, run)
	}
	return paths, err
}

// exposed reports whether everybody may write a directory.
func exposed(about fs.FileInfo) bool {
	return runtime.GOOS != "windows" && about.Mode().Perm()&0o002 != 0
}

func exposedError(dir string, about fs.FileInfo) error {
	if about.Mode()&fs.ModeSticky != 0 { // it is so on purpose, as /tmp
		return fmt.Errorf("everybody may write %s, so no file is put there; name a directory below it", dir)
	}
	return fmt.Errorf("everybody may write %s, so no file is put there; run: chmod o-w %[1]s", dir)
}

// runName is what a bridge calls a run, with its own name where it has one.
var runName = regexp.MustCompile(`^[0-9a-f]{12}(\.[a-z0-9-]{1,63})?$`)

// kept is the directory of one run.
type kept struct {
	name string
	size int64
	when fs.FileInfo
}

// prune removes the oldest runs beyond the bound, but not the one that was just written.
func (s *Store) prune(root *os.Root, but string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	var all []kept
	total := int64(0)
	sizes := map[string]int64{}
	for _, e := range entries {
		if !e.IsDir() || !runName.MatchString(e.Name()) {
			continue
		}
		when, err := e.Info()
		if err != nil {
			continue
		}
		size, known := s.sizes[e.Name()]
		if !known || e.Name() == but {
			size = sizeOf(root, e.Name())
		}
		if size == 0 { // not ours
			continue
		}
		sizes[e.Name()] = size
		total += size
		all = append(all, kept{e.Name(), size, when})
	}
	s.sizes = sizes
	slices.SortFunc(all, func(a, b kept) int {
		return cmp.Or(a.when.ModTime().Compare(b.when.ModTime()), cmp.Compare(a.name, b.name))
	})
	for _, k := range all {
		if total <= s.max {
			return
		}
		if k.name != but && root.RemoveAll(k.name) == nil {
			total -= k.size
			delete(s.sizes, k.name)
		}
	}
}

// sizeOf returns what the directory of a run takes; 0 for one that isn't a bridge's.
func sizeOf(root *os.Root, run string) (size int64) {
	if about, err := root.Lstat(run + "/" + marker); err != nil || !about.Mode().IsRegular() {
		return 0
	}
	looked := 0
	_ = fs.WalkDir(root.FS(), run, func(_ string, e fs.DirEntry, err error) error {
		if looked++; err != nil || looked > maxFiles {
			return fs.SkipAll
		}
		if about, err := e.Info(); err == nil {
			size += max(about.Size(), block)
		}
		return nil
	})
	return size
}
