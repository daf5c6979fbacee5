// Package image makes the root file system of a container image with Python in it from a
// Debian-like distribution's packages, for machines that reach no registry: a stand-in for
// python:3.12-slim, made by mmdebstrap, by an ordinary user or by root. It knows no engine: its
// caller imports the tar.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// LocalRef is the name under which the bridge looks for an image made here.
const LocalRef = "localhost/mcp-bridge/python:latest"

// Options says how an image is made. The zero value is right.
type Options struct {
	// Progress takes one line of what is being done, in order, from one goroutine at a time; nil means
	// silence.
	Progress func(line string)
}

// Error says why no image could be made here. It is news for a person.
type Error struct {
	Err  error
	Next string // what to do about it, as a command or a sentence
}

func (e *Error) Error() string { return fmt.Sprintf("making an image from packages: %v", e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *Error) Hint() string { return e.Next }

// elsewhere is the way out where packages are of no help.
const elsewhere = "bring an image from another machine (podman save there, podman load here) and set" +
	" MCP_BRIDGE_IMAGE to its name"

// program makes the file system. It is the one program that does so as an ordinary user, from
// signed packages.
const program = "mmdebstrap"

// Build writes a tar of a root file system with Python to w: the newest that the distribution's
// stable release has, with its whole standard library, the time zones, and the user 65534. About
// 100 MB and half a minute, most of it download.
//
// It blocks until that is done or ctx ends; then the processes it started are gone and their
// scratch directory with them. What was written before an error is no whole tar. Errors of the
// machine are an *Error; otherwise it is ctx's.
func Build(ctx context.Context, w io.Writer, o Options) error {
	b := builder{program: program, root: os.DirFS("/"), apt: askApt, uid: os.Geteuid(), grace: 10 * time.Second,
		progress: o.Progress}
	if b.progress == nil {
		b.progress = func(string) {}
	}
	return b.build(ctx, w)
}

type builder struct {
	program  string
	root     fs.FS // the machine's own file system
	apt      func(context.Context) []byte
	uid      int
	grace    time.Duration // from the polite end to the hard one
	progress func(string)
}

func (b *builder) build(ctx context.Context, w io.Writer) error {
	h := readHost(b.root, b.apt(ctx))
	path, err := exec.LookPath(b.program)
	if err != nil {
		next := "install it and try again: sudo apt-get install mmdebstrap uidmap"
		if !h.debianLike {
			next = "this works on Debian and its relatives only; " + elsewhere
		}
		return &Error{Err: fmt.Errorf("%s is not installed", b.program), Next: next}
	}
	out := &counter{w: w}
	for i, suite := range h.suites {
		b.progress(fmt.Sprintf("making an image with Python from %s %s, %s", h.name, suite, h.mirror))
		err = b.run(ctx, path, suite, h.mirror, out)
		if err == nil {
			b.progress(fmt.Sprintf("made a root file system of %d MB", out.n/1e6))
			return nil
		}
		// Once something is written it can't be taken back. An older release is signed by a key that this
		// machine has.
		if ctx.Err() != nil || out.err != nil || out.n > 0 || i == len(h.suites)-1 {
			break
		}
		b.progress(fmt.Sprintf("that failed (%v): trying the release of this machine", err))
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("making an image from packages: %w", context.Cause(ctx))
	case out.err != nil:
		return fmt.Errorf("making an image from packages: writing it: %w", out.err)
	}
	return &Error{Err: err, Next: next(err, h.mirror)}
}

// next reads what mmdebstrap complained of.
func next(err error, mirror string) string {
	switch s := err.Error(); {
	case strings.Contains(s, "newuidmap"), strings.Contains(s, "subuid"), strings.Contains(s, "unshare"):
		return "rootless images need the package uidmap and ids of your own in /etc/subuid and /etc/subgid:" +
			" scripts/setup sees to both"
	case strings.Contains(s, "apt-get") && strings.Contains(s, "update"):
		return "check that " + mirror + " can be reached; otherwise " + elsewhere
	}
	return "see what " + program + " said above; otherwise " + elsewhere
}

// check runs inside the new file system: an image whose Python lacks these is no use to the guest.
const check = `chroot "$1" python3 -c '
import ctypes, pwd, sqlite3, ssl, sys, zoneinfo
pwd.getpwuid(65534)
print("I: Python", sys.version.split()[0], file=sys.stderr)'`

func (b *builder) run(ctx context.Context, path, suite, mirror string, out io.Writer) error {
	mode := "unshare"
	if b.uid == 0 {
		mode = "auto"
	}
	cmd := exec.CommandContext(ctx, path,
		"--mode="+mode,
		"--variant=essential",
		"--format=tar",
		"--components=main",
		"--include=python3,python-is-python3,tzdata,libstdc++6", // which compiled packages of PyPI need
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--skip=output/dev", // engines make their own, and rootless ones can't unpack device nodes
		"--customize-hook="+check,
		`--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"`, // of this machine; engines write their own
		suite, "-", mirror)
	said := &said{progress: b.progress}
	lines := &runtime.Lines{To: said.line}
	cmd.Stdout, cmd.Stderr = out, lines
	cmd.Dir = "/" // a user of the new namespace must be able to stand there
	cmd.Env = environment()
	cmd.WaitDelay = b.grace
	inGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	err := cmd.Wait()
	killGroup(cmd.Process.Pid)
	lines.Flush()
	if err != nil {
		if why := said.complaint(); why != "" {
			return fmt.Errorf("%s: %s", program, why)
		}
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// environment returns what the package tools need of the caller's, which is how to reach the
// network. Their scratch directory must be open to the namespace's users, executable and large,
// which a user's own TMPDIR need not be.
func environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "LANG=C.UTF-8", "TMPDIR=/var/tmp"}
	for _, name := range []string{"HOME", "USER", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY",
		"HTTPS_PROXY", "NO_PROXY"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// counter remembers how much went through it, and whether the other side failed.
type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil && !errors.Is(err, c.err) {
		c.err = err
	}
	return n, err
}
