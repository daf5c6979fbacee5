package environments

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// Build builds the environment, or returns the existing one if its base and lock are unchanged. The
// engine must have the base image. One process that shares CacheDir builds at a time; the others
// wait. After an error only what was downloaded is left.
func (e *Environments) Build(ctx context.Context, name string, p Progress) (Environment, error) {
	d, err := e.definition(name)
	if err != nil {
		return Environment{}, err
	}
	if is, err := e.cluster(ctx); is || err != nil {
		return Environment{}, cmp.Or(err, errCluster(name, elsewhere(name)))
	}
	b := &build{Environments: e, Definition: d, progress: p}
	defer b.end()
	release, err := e.cache.turn(ctx, func() { b.tell(0, "waiting for another build") })
	if err != nil {
		return Environment{}, err
	}
	defer release()
	env, err := b.build(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return Environment{}, e.cache.full(fmt.Errorf("building the environment %s: %w", name, err))
	}
	e.Used(name)
	e.tidy(ctx, name)
	return env, nil
}

// build is a build under way.
type build struct {
	*Environments
	Definition

	mu       sync.Mutex
	progress Progress // nil for none, and after Build has returned
	last     Step
}

// tell reports a step and the percentage that is done, if either has changed.
func (b *build) tell(percent int, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	step := Step{Text: fmt.Sprintf(format, args...), Percent: max(b.last.Percent, percent)}
	if b.progress != nil && step != b.last {
		b.last = step
		b.progress(step)
	}
}

// end stops the reports: an HTTP client may read on after its request was given up.
func (b *build) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress = nil
}

// The percentages of a build that are done after its parts.
const (
	fetched   = 40
	unpacked  = 45
	compiled  = 75
	copied    = 85
	committed = 100
)

func (b *build) build(ctx context.Context) (Environment, error) {
	base, err := b.base(ctx, b.Definition)
	if err != nil {
		return Environment{}, err
	}
	all, err := b.List(ctx)
	if err != nil {
		return Environment{}, err
	}
	for _, env := range all {
		if env.Name == b.Name && env.Outdated == "" {
			b.tell(committed, "%s is built already", b.Name)
			return env, nil
		}
	}
	b.tell(0, "asking %s for its Python", base.Ref)
	p, err := b.python.ask(ctx, base)
	if err != nil {
		return Environment{}, err
	}
	lock, err := b.lock(b.Definition, p.Interpreter)
	if err != nil {
		return Environment{}, err
	}
	env := Environment{Name: b.Name, Base: base.ID, Interpreter: p.Interpreter, Lock: lock.Digest,
		Imports: b.Imports, Limits: b.Limits}
	chosen, err := lock.Choose(p.Interpreter)
	if err != nil {
		return Environment{}, err
	}
	compiled := func(c wheels.Chosen) bool { return !strings.HasSuffix(c.File, "-any.whl") }
	if !p.cxx && slices.ContainsFunc(chosen, compiled) {
		return Environment{}, &text.HintError{
			Err:  fmt.Errorf("image %s has no libstdc++.so.6, which compiled packages need", base.Ref),
			Next: "make the image again: mcp-bridge image build; or name another one: MCP_BRIDGE_IMAGE"}
	}
	files, err := b.fetch(ctx, chosen)
	if err != nil {
		return Environment{}, err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	spool, remove, err := b.cache.spool()
	if err != nil {
		return Environment{}, err
	}
	defer remove()
	b.tell(fetched, "unpacking %s", text.Plural(len(files), "package"))
	if env.Distributions, err = wheels.WriteTar(spool, p.Interpreter, files); err != nil {
		return Environment{}, err
	}
	if env.Bytecode, err = b.addBytecode(ctx, base.ID, p, spool); err != nil {
		return Environment{}, err
	}
	return b.install(ctx, env, spool)
}

// maxWheels bounds the cache of wheels, in bytes.
const maxWheels = 2 << 30

// fetch downloads what the cache lacks.
func (b *build) fetch(ctx context.Context, chosen []wheels.Chosen) ([]*wheels.File, error) {
	net := b.resolver.network()
	cache := &wheels.Cache{Dir: filepath.Join(b.cache.path, "wheels"), Client: net.client,
		Index: net.index, Limit: maxWheels, File: b.cache.file, Progress: func(done, total int64) {
			b.tell(int(fetched*min(done, total)/max(total, 1)), "fetching packages: %s of %s",
				units.HumanSize(float64(done)), units.HumanSize(float64(max(done, total))))
		}}
	return cache.Fetch(ctx, chosen)
}

// endOfTar is the size of a tar's end, which the entries of the bytecode overwrite.
const endOfTar = 2 * 512

// addBytecode adds the bytecode of all sources in the spool to it.
func (b *build) addBytecode(ctx context.Context, image string, p python, spool *os.File) (Bytecode, error) {
	size, err := spool.Seek(-endOfTar, io.SeekEnd)
	if err != nil {
		return Bytecode{}, err
	}
	w := tar.NewWriter(spool)
	made := map[string]bool{} // directories
	var read int64
	sources := io.TeeReader(io.NewSectionReader(spool, 0, size), counter(func(n int) {
		read += int64(n)
		b.tell(unpacked+int((compiled-unpacked)*read/size), "compiling packages: %d%%", 100*read/size)
	}))
	count, err := b.python.compile(ctx, image, p, sources, func(source string, pyc []byte) error {
		name := p.bytecodeName(source)
		if dir := path.Dir(name); !made[dir] {
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755,
				ModTime: wheels.Epoch}); err != nil {
				return err
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, ModTime: wheels.Epoch,
			Size: int64(len(pyc))}); err != nil {
			return err
		}
		_, err := w.Write(pyc)
		return err
	})
	return count, errors.Join(err, w.Close())
}

// counter is called with the size of each write to it.
type counter func(n int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}

// install makes the image.
func (b *build) install(ctx context.Context, env Environment, spool *os.File) (Environment, error) {
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return env, err
	}
	h := sha256.New()
	size, err := io.Copy(h, spool)
	if err != nil {
		return env, err
	}
	env.Layer, env.Size = "sha256:"+hex.EncodeToString(h.Sum(nil)), size
	env.Built = time.Now().Truncate(time.Second)
	labels, err := env.labels()
	if err != nil {
		return env, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return env, err
	}
	var read int64
	content := io.TeeReader(spool, counter(func(n int) {
		if read += int64(n); read == size {
			b.tell(copied, "making the image")
			return
		}
		b.tell(compiled+int((copied-compiled)*read/size), "copying %s to the engine",
			units.HumanSize(float64(size)))
	}))
	env.Image, err = b.driver.AddLayer(ctx, runtime.Layer{Base: env.Base, Ref: ref(env.Name), Labels: labels,
		Owner: b.owner, Tar: content})
	if err != nil {
		return env, err
	}
	b.tell(committed, "%s is built", env.Name)
	return env, nil
}
