// Package watch finds the configured servers again whenever a file changes that the search looked
// at.
//
// It asks for the files' times and sizes once a second rather than have the system tell it: that
// holds on every system and file system, for directories that don't exist yet, for files that are
// replaced as a whole and for links that are pointed elsewhere, and it costs about a hundred stat
// calls. A file that is replaced by one of the same size, kind and time isn't noticed.
package watch

import (
	"context"
	"io/fs"
	"reflect"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	every  = time.Second            // between looks
	settle = 250 * time.Millisecond // for which nothing must have changed before the files are read again
	most   = 8                      // times that long are waited for that
)

// A Watcher is one search that goes on. It is made by New and not for concurrent use.
type Watcher struct {
	seen    *recorder
	scanner *discovery.Scanner
	latest  discovery.Catalog
}

// New searches once. fsys and env are those of discovery.Scan.
func New(fsys fs.FS, env discovery.Env) *Watcher {
	r := &recorder{FS: fsys}
	w := &Watcher{seen: r, scanner: discovery.NewScanner(r, env)}
	w.scan()
	return w
}

// Catalog is what the last search found. It is not to be changed, and not to be asked for once Run
// has been called.
func (w *Watcher) Catalog() discovery.Catalog { return w.latest }

// Run searches again after each change on disk until ctx ends. It calls found with every catalog
// whose servers or problems differ from the last one's, and waits for it. It is called once. It
// doesn't wait for a search that is still going on when ctx ends, as on a slow disk: what that
// finds is dropped.
func (w *Watcher) Run(ctx context.Context, found func(discovery.Catalog)) {
	catalogs := make(chan discovery.Catalog)
	go w.look(ctx, catalogs)
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-catalogs:
			if ctx.Err() != nil {
				return
			}
			found(c)
		}
	}
}

// look searches again after each change and hands the catalogs over, until ctx ends.
func (w *Watcher) look(ctx context.Context, catalogs chan<- discovery.Catalog) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !w.seen.changed() {
			continue
		}
		if !w.settled(ctx) {
			return
		}
		if !w.scan() {
			continue
		}
		select {
		case catalogs <- w.latest:
		case <-ctx.Done():
			return
		}
	}
}

// settled waits until the files stay as they are for a moment, but not for ever. It is false when
// ctx ends first.
func (w *Watcher) settled(ctx context.Context) bool {
	for range most {
		before := w.seen.now()
		timer := time.NewTimer(settle)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		if reflect.DeepEqual(before, w.seen.now()) {
			return true
		}
	}
	return true
}

// scan searches, and says whether it found something else than before.
func (w *Watcher) scan() bool {
	w.seen.files = map[string]state{}
	before := w.latest
	w.latest = w.scanner.Scan()
	return !reflect.DeepEqual(before.Servers, w.latest.Servers) ||
		!reflect.DeepEqual(before.Problems, w.latest.Problems)
}

// state is what is compared of a file, or why it can't be looked at.
type state struct {
	err      string
	mode     fs.FileMode
	size     int64
	modified int64 // in Unix nanoseconds
}

// recorder is a file system that notes the state of every file before it is read. A search looks
// before it opens.
type recorder struct {
	fs.FS
	files map[string]state
}

func (r *recorder) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(r.FS, name)
	if _, ok := r.files[name]; !ok {
		r.files[name] = stateOf(info, err)
	}
	return info, err
}

func stateOf(info fs.FileInfo, err error) state {
	if err != nil {
		return state{err: err.Error()}
	}
	return state{"", info.Mode(), info.Size(), info.ModTime().UnixNano()}
}

// now is the state of all files that the last search looked at.
func (r *recorder) now() map[string]state {
	current := make(map[string]state, len(r.files))
	for name := range r.files {
		current[name] = stateOf(fs.Stat(r.FS, name))
	}
	return current
}

func (r *recorder) changed() bool { return !reflect.DeepEqual(r.files, r.now()) }
