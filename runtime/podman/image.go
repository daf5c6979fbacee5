//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/distribution/reference"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// HasImage says whether the engine has the image already. A short name means a local image of that name, or Docker Hub's.
func (d *Driver) HasImage(ctx context.Context, ref string) (bool, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range []string{ref, qualified(ref)} {
		has, err := images.Exists(c.with(ctx), name, nil)
		if err != nil {
			return false, d.lost(c, fmt.Errorf("looking for image %s: %w", ref, err))
		}
		if has {
			return true, nil
		}
	}
	return false, nil
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

// EnsureImage pulls the image unless the engine has it.
func (d *Driver) EnsureImage(ctx context.Context, ref string, p runtime.Progress) error {
	if _, err := reference.ParseDockerRef(ref); err != nil {
		return &runtime.ImageError{Ref: ref, Err: err, Next: "set MCP_BRIDGE_IMAGE to a name such as python:3.12-slim"}
	}
	has, err := d.HasImage(ctx, ref)
	if err != nil || has {
		return err
	}
	c, err := d.connect(ctx)
	if err != nil {
		return err
	}
	name := qualified(ref)
	w := &lineWriter{to: p}
	w.say("pulling " + name)
	opts := new(images.PullOptions).WithProgressWriter(w).WithPolicy("missing").WithRetry(1)
	if _, err = images.Pull(c.with(ctx), name, opts); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("pulling %s: %w", name, context.Cause(ctx))
	}
	err = d.lost(c, err)
	var gone *runtime.UnavailableError
	if errors.As(err, &gone) {
		return err
	}
	return &runtime.ImageError{
		Ref:  name,
		Err:  errors.New(oneLine(err.Error())),
		Next: "check the name and the network, or make an image from this machine's packages: mcp-bridge image build",
	}
}

// ImportImage makes an image named ref from a tar of its root file system.
func (d *Driver) ImportImage(ctx context.Context, ref string, tar io.Reader) error {
	c, err := d.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := images.Import(c.with(ctx), tar, new(images.ImportOptions).WithReference(ref)); err != nil {
		return d.lost(c, fmt.Errorf("importing image %s: %w", ref, err))
	}
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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
