package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/distribution/reference"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// images calls ask with the engine's images. What it does, such as "listing images", goes in front
// of an error.
func (e *Engine[C]) images(ctx context.Context, does string, ask func(Images) error) error {
	c, release, err := e.use(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := ask(c.Images()); err != nil {
		return e.Lost(c, fmt.Errorf("%s: %w", does, err))
	}
	return nil
}

// FindImage implements runtime.Driver.
func (e *Engine[C]) FindImage(ctx context.Context, ref string) (i runtime.Image, ok bool, err error) {
	err = e.images(ctx, "looking for image "+ref, func(all Images) (err error) {
		i, ok, err = all.Find(ctx, ref)
		return err
	})
	return i, ok, err
}

// ImageMissing returns the error of an engine that said by err that it lacks an image.
func ImageMissing(ref string, err error) error {
	return &runtime.ImageError{
		Ref: ref, Err: errors.New(runtime.OneLine(err.Error())), Next: "get it with: mcp-bridge image pull",
	}
}

// FullName returns the name that a short one stands for in Docker's rules, which is what people
// mean by "python:3.12-slim".
func FullName(ref string) string {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return ref
	}
	return named.String()
}

// PullImage implements runtime.Driver.
func (e *Engine[C]) PullImage(ctx context.Context, ref string, p runtime.Progress) (runtime.Image, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		const next = "set MCP_BRIDGE_IMAGE to a name such as python:3.12-slim"
		return runtime.Image{}, &runtime.ImageError{Ref: ref, Err: err, Next: next}
	}
	c, release, err := e.use(ctx)
	if err != nil {
		return runtime.Image{}, err
	}
	defer release()
	name := named.String()
	if p != nil {
		p("pulling " + name)
	}
	if err := c.Images().Pull(ctx, name, reference.Domain(named), p); err != nil {
		if ctx.Err() != nil {
			return runtime.Image{}, fmt.Errorf("pulling %s: %w", name, context.Cause(ctx))
		}
		err = e.Lost(c, err)
		if errors.As(err, new(*runtime.UnavailableError)) {
			return runtime.Image{}, err
		}
		return runtime.Image{}, runtime.PullError(name, err)
	}
	i, ok, err := e.FindImage(ctx, ref)
	if err == nil && !ok {
		err = runtime.PullError(name, errors.New("the engine says that it was pulled, and doesn't have it"))
	}
	return i, err
}

// ImportImage implements runtime.ImageImporter.
func (e *Engine[C]) ImportImage(ctx context.Context, ref string, tar io.Reader) error {
	// An HTTP request closes what it is made of; a file is its caller's to close.
	return e.images(ctx, "importing image "+ref, func(all Images) error {
		return all.Import(ctx, ref, io.NopCloser(tar))
	})
}

// ListImages implements runtime.Driver.
func (e *Engine[C]) ListImages(ctx context.Context, label string) (found []runtime.ListedImage, err error) {
	err = e.images(ctx, "listing images", func(all Images) (err error) {
		found, err = all.List(ctx, label)
		return err
	})
	return found, err
}

// RemoveImage implements runtime.Driver.
func (e *Engine[C]) RemoveImage(ctx context.Context, id string) error {
	return e.images(ctx, fmt.Sprintf("removing image %.19s", id), func(all Images) error {
		return all.Remove(ctx, id)
	})
}

// SaveImage implements runtime.Driver.
func (e *Engine[C]) SaveImage(ctx context.Context, ref string, w io.Writer) error {
	return e.images(ctx, "saving image "+ref, func(all Images) error { return all.Save(ctx, ref, w) })
}
