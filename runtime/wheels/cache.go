package wheels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// Cache is a directory of wheels named by their hashes. Nothing in it is believed: each file is
// hashed when it is opened.
type Cache struct {
	Dir string // made if missing
	// Client downloads. nil stands for http.DefaultClient, which heeds HTTPS_PROXY and, on Linux,
	// SSL_CERT_FILE.
	Client *http.Client
	// Index is the base URL of the index (PEP 503, PEP 691) in which files of PyPI are looked up, for
	// machines that reach PyPI only through a mirror: IndexFrom. Empty stands for the lock's own URLs,
	// which are used for files of any other host in any case, as uv and pip do.
	Index string
	// Limit bounds the bytes of the wheels that are kept; 0 means no bound. After a Fetch those that
	// were unused for longest are removed first.
	Limit int64
	// Progress takes how many bytes of the wheels are here, and how many they have in all as far as
	// the lock tells. It is called often, by one goroutine at a time; nil means silence.
	Progress func(done, total int64)
	// File is told of a download under way, which must not outlive this process; it may be nil.
	File func(path string) (forget func())
}

// File is a wheel in the cache, opened, whose content has the hash that the lock says.
type File struct {
	Chosen
	content interface {
		io.ReaderAt
		io.Closer
	}
	size int64
}

// Close closes the file.
func (f *File) Close() error { return f.content.Close() }

// parallel bounds how many wheels are downloaded or hashed at once.
const parallel = 4

// suffix ends the names of wheels in the cache, unfinished those of downloads under way.
const suffix, unfinished = ".whl", ".part"

// Fetch opens the wheels in their order, after downloading those that the cache lacks or has
// damaged. The caller closes them. Fetch waits for other processes that use the same cache, and
// blocks until all is done, an error comes or ctx ends. Wheels that were complete by then are in
// the cache.
func (c *Cache) Fetch(ctx context.Context, wheels []Chosen) ([]*File, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	release, err := filelock.Acquire(ctx, filepath.Join(c.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer release()
	left, _ := filepath.Glob(filepath.Join(c.Dir, "*"+unfinished)) // by processes that were killed
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &progress{tell: c.Progress}
	for _, w := range wheels {
		p.total += w.Size
	}
	files := make([]*File, len(wheels))
	places := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, w := range wheels {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			f, err := c.fetch(ctx, w, p)
			if err != nil {
				cancel(err) // the first one is the cause of the others
			}
			files[i] = f
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
		return nil, err
	}
	c.trim(wheels)
	return files, nil
}

// trim removes wheels until the rest are within the limit, but none of those given.
func (c *Cache) trim(wheels []Chosen) {
	type kept struct {
		path string
		fs.FileInfo
	}
	var all []kept
	var total int64
	paths, _ := filepath.Glob(filepath.Join(c.Dir, "*"+suffix)) // its pattern is right
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			all = append(all, kept{path, info})
			total += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return a.ModTime().Compare(b.ModTime()) })
	for _, k := range all {
		is := func(w Chosen) bool { return w.SHA256+suffix == filepath.Base(k.path) }
		asked := slices.ContainsFunc(wheels, is)
		if c.Limit > 0 && total > c.Limit && !asked && os.Remove(k.path) == nil {
			total -= k.Size()
		}
	}
}

// fetch opens one wheel.
func (c *Cache) fetch(ctx context.Context, w Chosen, p *progress) (*File, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	path := filepath.Join(c.Dir, w.SHA256+suffix)
	if f, err := openChecked(path, w); err == nil {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // for trim
		p.add(f.size)
		return f, nil
	}
	if err := c.download(ctx, w, path, p); err != nil {
		return nil, fmt.Errorf("downloading %s: %w", w.File, err)
	}
	return openChecked(path, w)
}

// openChecked opens the file path if its size and hash are w's.
func openChecked(path string, w Chosen) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(f, maxWheel+1))
	if err == nil {
		err = w.check(size, h.Sum(nil))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{Chosen: w, content: f, size: size}, nil
}

// check returns an error if content of size and with the hash sum isn't what the lock says.
func (w Wheel) check(size int64, sum []byte) error {
	switch got := hex.EncodeToString(sum); {
	case w.Size != 0 && size != w.Size:
		return fmt.Errorf("it has %d bytes, and the lock says %d: it is not the file that was locked", size, w.Size)
	case got != w.SHA256:
		return fmt.Errorf("its sha256 is %s, and the lock says %s: it is not the file that was locked", got,
			w.SHA256)
	}
	return nil
}

// download writes the wheel to path, where nothing changes before all of it is there.
func (c *Cache) download(ctx context.Context, w Chosen, path string, p *progress) (err error) {
	address, err := c.locate(ctx, w)
	if err != nil {
		return err
	}
	// No two have the same name: the watchdog of a process that was killed removes its own.
	f, err := os.CreateTemp(c.Dir, w.SHA256+"-*"+unfinished)
	if err != nil {
		return err
	}
	part := f.Name()
	if c.File != nil {
		defer c.File(part)()
	}
	limit := int64(maxWheel)
	if w.Size != 0 {
		limit = w.Size
	}
	h := sha256.New()
	_, size, err := c.get(ctx, address, "", limit+1, io.MultiWriter(f, h, p))
	if err = errors.Join(err, f.Close()); err == nil {
		err = w.check(size, h.Sum(nil))
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// progress adds up what several downloads do.
type progress struct {
	tell  func(done, total int64)
	total int64

	mu   sync.Mutex
	done int64
}

// Write counts the bytes.
func (p *progress) Write(b []byte) (int, error) {
	p.add(int64(len(b)))
	return len(b), nil
}

func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.tell != nil {
		p.tell(p.done, p.total)
	}
}
