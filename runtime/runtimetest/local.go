// Package runtimetest is the definition of a correct runtime.Driver, as two suites: Behaviour,
// which any driver passes, the plain subprocess Local included; and LockDown, which looks from
// inside a real container.
package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Local is a fake engine: it runs the command as a plain subprocess in a process group of its own.
// It isolates nothing, and is for tests only. Every image exists but those whose name begins with
// "missing". On Windows, which has no such groups, what the command has started outlives it.
type Local struct{}

var _ runtime.Driver = Local{}

// Name returns "local".
func (Local) Name() string { return "local" }

// Facts returns that nothing is enforced, which is so.
func (Local) Facts(context.Context) (runtime.Facts, error) {
	return runtime.Facts{Engine: "local", Version: "0", Rootless: true, CgroupVersion: 1}, nil
}

// FindImage knows every image but the missing ones.
func (Local) FindImage(_ context.Context, ref string) (runtime.Image, bool, error) {
	if strings.HasPrefix(ref, "missing") {
		return runtime.Image{}, false, nil
	}
	return runtime.Image{Ref: ref, ID: "local:" + ref}, true, nil
}

// PullImage has a registry of the same images.
func (l Local) PullImage(ctx context.Context, ref string, _ runtime.Progress) (runtime.Image, error) {
	i, ok, _ := l.FindImage(ctx, ref)
	if !ok {
		return i, &runtime.ImageError{Ref: ref, Err: errors.New("no such image"), Next: "name another"}
	}
	return i, nil
}

// Run runs the command and waits for it and for all that it started.
func (l Local) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := s.Validate(); err != nil {
		return runtime.Exit{}, err
	}
	if _, err := l.PullImage(ctx, s.Image, nil); err != nil {
		return runtime.Exit{}, err
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...) //nolint:noctx // killed as a group below
	cmd.Env = s.Env
	cmd.Stdout, cmd.Stderr = std.Stdout, std.Stderr
	ownGroup(cmd)
	cmd.WaitDelay = 200 * time.Millisecond // for what its children still hold open
	stdin, err := cmd.StdinPipe()          // not cmd.Stdin: Wait would wait for a reader that blocks
	if err != nil {
		return runtime.Exit{}, fmt.Errorf("local: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return runtime.Exit{}, fmt.Errorf("local: %w", err)
	}
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := std.Stdin.Read(buf)
			if _, werr := stdin.Write(buf[:n]); werr != nil || err != nil {
				stdin.Close()
				return
			}
		}
	}()
	killAll := func() { killGroup(cmd) }
	deadline, cancel := context.WithTimeout(ctx, s.MaxAge)
	defer cancel()
	stop := context.AfterFunc(deadline, killAll)
	defer stop()
	werr := cmd.Wait()
	std.End()
	killAll()
	if werr != nil && !errors.As(werr, new(*exec.ExitError)) && !errors.Is(werr, exec.ErrWaitDelay) {
		return runtime.Exit{}, fmt.Errorf("local: %w", werr)
	}
	ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return runtime.Exit{Code: 128 + int(ws.Signal())}, nil
	}
	return runtime.Exit{Code: ws.ExitStatus()}, nil
}

// AddLayer fails.
func (Local) AddLayer(context.Context, runtime.Layer) (runtime.Image, error) {
	return runtime.Image{}, errNoImages
}

// ListImages lists none.
func (Local) ListImages(context.Context, string) ([]runtime.ListedImage, error) { return nil, nil }

// RemoveImage has nothing to remove.
func (Local) RemoveImage(context.Context, string) error { return nil }

// SaveImage fails.
func (Local) SaveImage(context.Context, string, io.Writer) error { return errNoImages }

var errNoImages = errors.New("local: it has no images of its own")

// Orphans has none: what Local runs dies with Run.
func (Local) Orphans(context.Context, runtime.Owner) ([]runtime.Orphan, error) { return nil, nil }

// Remove has nothing to remove.
func (Local) Remove(context.Context, ...string) error { return nil }

// Close has nothing to end.
func (Local) Close() error { return nil }
