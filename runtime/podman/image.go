//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/distribution/reference"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// FindImage implements runtime.Driver.
func (d *Driver) FindImage(ctx context.Context, ref string) (runtime.Image, bool, error) {
	release, err := d.awake(ctx)
	if err != nil {
		return runtime.Image{}, false, err
	}
	defer release()
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Image{}, false, err
	}
	for _, name := range slices.Compact([]string{ref, qualified(ref)}) {
		r, err := images.GetImage(c.with(ctx), name, nil)
		if code, cerr := bindings.CheckResponseCode(err); err != nil && cerr == nil && code == http.StatusNotFound {
			continue
		}
		if err != nil {
			return runtime.Image{}, false, d.lost(c, fmt.Errorf("looking for image %s: %w", ref, err))
		}
		return runtime.Image{Ref: ref, ID: "sha256:" + strings.TrimPrefix(r.ID, "sha256:"), Digest: runtime.DigestOf(ref, r.RepoDigests), Arch: r.Architecture}, true, nil
	}
	return runtime.Image{}, false, nil
}

// qualified is the name that a short one stands for in Docker's rules, which is what people mean by "python:3.12-slim".
// Podman itself would ask at the terminal which registry was meant.
func qualified(ref string) string {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return ref
	}
	return named.String()
}

// PullImage implements runtime.Driver.
func (d *Driver) PullImage(ctx context.Context, ref string, p runtime.Progress) (runtime.Image, error) {
	if _, err := reference.ParseDockerRef(ref); err != nil {
		return runtime.Image{}, &runtime.ImageError{Ref: ref, Err: err, Next: "set MCP_BRIDGE_IMAGE to a name such as python:3.12-slim"}
	}
	release, err := d.awake(ctx)
	if err != nil {
		return runtime.Image{}, err
	}
	defer release()
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Image{}, err
	}
	name := qualified(ref)
	w := &lineWriter{to: p}
	w.say("pulling " + name)
	opts := new(images.PullOptions).WithProgressWriter(w).WithPolicy("newer").WithRetry(1)
	if _, err = images.Pull(c.with(ctx), name, opts); err != nil {
		if ctx.Err() != nil {
			return runtime.Image{}, fmt.Errorf("pulling %s: %w", name, context.Cause(ctx))
		}
		err = d.lost(c, err)
		var gone *runtime.UnavailableError
		if errors.As(err, &gone) {
			return runtime.Image{}, err
		}
		return runtime.Image{}, runtime.PullError(name, err)
	}
	i, ok, err := d.FindImage(ctx, ref)
	if err == nil && !ok {
		err = runtime.PullError(name, errors.New("the engine says that it was pulled, and doesn't have it"))
	}
	return i, err
}

// ImportImage makes an image named ref from a tar of its root file system.
func (d *Driver) ImportImage(ctx context.Context, ref string, tar io.Reader) error {
	release, err := d.awake(ctx)
	if err != nil {
		return err
	}
	defer release()
	c, err := d.connect(ctx)
	if err != nil {
		return err
	}
	// A file would be closed, as what a request of HTTP is made of; it is its caller's.
	if _, err := images.Import(c.with(ctx), io.NopCloser(tar), new(images.ImportOptions).WithReference(ref)); err != nil {
		return d.lost(c, fmt.Errorf("importing image %s: %w", ref, err))
	}
	return nil
}

// lineWriter hands on what is written to it line by line.
type lineWriter struct {
	to   runtime.Progress
	rest string
}

func (w *lineWriter) say(line string) {
	if line = strings.TrimSpace(line); line != "" && w.to != nil {
		w.to(line)
	}
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest += string(p)
	for {
		line, rest, ok := strings.Cut(w.rest, "\n")
		if !ok {
			if len(w.rest) > 4<<10 { // no line: don't let it grow
				w.say(w.rest)
				w.rest = ""
			}
			return len(p), nil
		}
		w.say(line)
		w.rest = rest
	}
}
