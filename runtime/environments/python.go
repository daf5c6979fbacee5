package environments

import (
	"archive/tar"
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

//go:embed probe.py
var probe string

//go:embed compile.py
var compiler string

// Bounds of the two programs.
const (
	probeTimeout   = time.Minute
	compileTimeout = 15 * time.Minute
	pythonMemory   = 1 << 30
	maxAnswer      = 4 << 10
	maxBytecode    = 1 << 30 // of all files
	maxSource      = 64 << 20
	stderrTail     = 2 << 10
)

// python is a CPython in an image, as it says of itself.
type python struct {
	wheels.Interpreter
	tag   string // in the names of its .pyc files: "cpython-313"
	magic string // that they begin with
	cxx   bool   // the image has libstdc++, which the rules of manylinux let compiled wheels expect
}

// pythons run programs of ours by the Python of an image.
type pythons struct {
	driver runtime.Driver
	user   string // "uid:gid"
	owner  runtime.Owner
}

// spec returns a container of the image that runs a program of ours, locked down as those of runs.
func (ps pythons) spec(image, program string, maxAge time.Duration, args ...string) runtime.Spec {
	return runtime.Spec{
		Image:   image,
		Command: append([]string{"python3", "-s", "-S", "-B", "-W", "ignore", "-c", program}, args...),
		// Older Pythons write constants that are sets in the order of their hashes.
		Env: []string{"PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "LANG=C.UTF-8",
			"PYTHONHASHSEED=0"},
		User:   ps.user,
		Limits: runtime.Limits{Memory: pythonMemory, PIDs: 32, NoFile: 256, Shm: 1 << 20},
		Owner:  ps.owner,
		MaxAge: maxAge,
	}
}

// ask asks the Python of an image which one it is.
func (ps pythons) ask(ctx context.Context, image runtime.Image) (python, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answer, stderr := &runtime.Tail{Limit: maxAnswer}, &runtime.Tail{Limit: stderrTail}
	run := func() (runtime.Exit, error) {
		return ps.driver.Run(ctx, ps.spec(image.ID, probe, probeTimeout),
			runtime.Stdio{Stdin: strings.NewReader(""), Stdout: answer, Stderr: stderr})
	}
	exit, err := run()
	if err == nil && exit.Code == 0 && answer.String() == "" { // an engine may lose what is said at the end
		exit, err = run()
	}
	if err != nil {
		return python{}, fmt.Errorf("asking image %s for its Python: %w", image.Ref, err)
	}
	p, err := parsePython(answer.String())
	if exit.Code != 0 {
		err = fmt.Errorf("it ended with code %d: %s", exit.Code, runtime.OneLine(stderr.String()))
	}
	if err != nil {
		return python{}, &text.HintError{
			Err:  fmt.Errorf("image %s has no Python that packages can be added to: %w", image.Ref, err),
			Next: "name an image with CPython 3.11 to 3.14, such as python:3.13-slim: MCP_BRIDGE_IMAGE"}
	}
	return p, nil
}

var (
	versionPattern = regexp.MustCompile(`^3\.[0-9]{1,3}\.[0-9]{1,3}[a-z0-9+]{0,20}$`)
	libcPattern    = regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$`)
	machinePattern = regexp.MustCompile(`^[a-z0-9_]{1,20}$`)
	tagPattern     = regexp.MustCompile(`^cpython-3[0-9]{1,3}$`)
)

// parsePython reads the answer of probe.py, which an image's own program has written.
func parsePython(text string) (python, error) {
	var a struct {
		Implementation, Abiflags, Version, Machine, Glibc, Musl, Tag, Magic string
		Cxx                                                                 bool
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return python{}, fmt.Errorf("it gave no answer: %w", err)
	}
	magic, err := hex.DecodeString(a.Magic)
	libc := a.Glibc + a.Musl
	switch {
	case a.Implementation != "cpython":
		return python{}, fmt.Errorf("it is %q and not CPython", a.Implementation)
	case a.Abiflags != "":
		return python{}, fmt.Errorf("it is a special build of CPython (%q)", a.Abiflags)
	case !versionPattern.MatchString(a.Version) || !machinePattern.MatchString(a.Machine) ||
		!libcPattern.MatchString(libc) || !tagPattern.MatchString(a.Tag) || err != nil || len(magic) != 4:
		return python{}, fmt.Errorf("what it says of itself can't be right: %q", runtime.OneLine(text))
	}
	ip := wheels.Interpreter{Version: a.Version, Machine: a.Machine, Glibc: a.Glibc, Musl: a.Musl}
	return python{Interpreter: ip, tag: a.Tag, magic: string(magic), cxx: a.Cxx}, nil
}

// source is a Python file of a layer.
type source struct {
	name string // in the tar
	size int64
}

// Bytecode says how many Python files a layer has, and how many of them have no bytecode since the
// image's Python couldn't compile them.
type Bytecode struct{ Sources, Without int }

// compile has the Python of an image compile all sources of the layer in r, and calls add with the
// bytecode of each, in their order. It doesn't trust what the container writes: names are made
// here, and content must begin as a .pyc of that Python does.
func (ps pythons) compile(ctx context.Context, image string, p python, r io.Reader,
	add func(name string, pyc []byte) error) (count Bytecode, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeout(ctx, compileTimeout)
	defer stop()
	sources := make(chan source, 64)
	stdin, feed := io.Pipe()
	go func() {
		defer close(sources)
		feed.CloseWithError(feedSources(ctx, r, feed, sources))
	}()
	written, stdout := io.Pipe()
	stderr := &runtime.Tail{Limit: stderrTail}
	last := "the first one"
	done := make(chan error, 1)
	go func() {
		var err error
		answers := bufio.NewReaderSize(written, 64<<10)
		count, err = takeBytecode(answers, p, sources, func(s source, pyc []byte) error {
			last = s.name
			return add(s.name, pyc)
		})
		written.CloseWithError(err)
		if err != nil {
			cancel(err)
		}
		for range sources { // so that the feed ends
		}
		done <- err
	}()
	exit, err := ps.driver.Run(ctx, ps.spec(image, compiler, compileTimeout, strconv.Itoa(pythonMemory)),
		runtime.Stdio{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	cut := context.Cause(ctx) // now: closing the output causes an error too
	stdout.Close()
	stdin.CloseWithError(errEnded)
	taken := <-done
	switch {
	case err != nil:
		return count, fmt.Errorf("compiling packages: %w", err)
	case cut != nil:
		return count, fmt.Errorf("compiling packages: %w", cut)
	case exit.Code != 0:
		return count, fmt.Errorf("compiling packages ended with code %d after %s: %s", exit.Code, last,
			runtime.OneLine(stderr.String()))
	}
	return count, taken
}

var errEnded = errors.New("the compiler has ended")

// feedSources writes the Python files of a tar to w as compile.py reads them. It sends each name to
// sources first.
func feedSources(ctx context.Context, r io.Reader, w io.Writer, sources chan<- source) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return buffered.Flush()
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || path.Ext(h.Name) != ".py" || h.Size > maxSource {
			continue
		}
		if len(sources) == cap(sources) { // the sources not answered yet may be in the buffer
			if err := buffered.Flush(); err != nil {
				return err
			}
		}
		select {
		case sources <- source{h.Name, h.Size}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		name := "/" + h.Name
		head := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
		head = binary.BigEndian.AppendUint32(append(head, name...), uint32(h.Size))
		if _, err := buffered.Write(head); err != nil {
			return err
		}
		if _, err := io.Copy(buffered, t); err != nil {
			return err
		}
	}
}

// takeBytecode reads what compile.py answers for each of the sources.
func takeBytecode(r io.Reader, p python, sources <-chan source,
	take func(source, []byte) error) (count Bytecode, err error) {
	var head [4]byte
	var all int64
	for s := range sources {
		count.Sources++
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return count, fmt.Errorf("no bytecode came for %s: %w", s.name, err)
		}
		size := int64(binary.BigEndian.Uint32(head[:]))
		if all += size; size > 1<<20+32*s.size || all > maxBytecode {
			return count, fmt.Errorf("the bytecode of %s is too large: %d bytes", s.name, size)
		}
		pyc := make([]byte, size)
		if _, err := io.ReadFull(r, pyc); err != nil {
			return count, fmt.Errorf("the bytecode of %s was cut: %w", s.name, err)
		}
		if size == 0 {
			count.Without++
			continue
		}
		// The magic number; flags that say never to compare it with its source; a hash of that.
		if size < 16 || string(pyc[:8]) != p.magic+"\x01\x00\x00\x00" {
			return count, fmt.Errorf("what came for %s is no bytecode of %s", s.name, p)
		}
		if err := take(s, pyc); err != nil {
			return count, err
		}
	}
	if count.Sources > 0 && count.Without == count.Sources {
		return count, errors.New("the image's Python could compile none of the packages")
	}
	if n, err := r.Read(head[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return count, errors.New("the compiler wrote more than it was asked for")
	}
	return count, nil
}

// bytecodeName returns the file in which Python looks for the bytecode of a source.
func (p python) bytecodeName(source string) string {
	module := strings.TrimSuffix(path.Base(source), ".py")
	return path.Join(path.Dir(source), "__pycache__", module+"."+p.tag+".pyc")
}
