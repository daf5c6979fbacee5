package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// layerCleanup bounds the removal of a container with a layer's files. A run's container has no
// files of its own; here there are thousands, and the commit has just filled the disk's queue.
const layerCleanup = 2 * time.Minute

// AddLayer implements runtime.Driver. The container has labels and a name as those of runs have, so
// that one that a killed bridge leaves is reaped like them.
func (e *Engine[C]) AddLayer(ctx context.Context, l runtime.Layer) (runtime.Image, error) {
	c, release, err := e.use(ctx)
	if err != nil {
		return runtime.Image{}, err
	}
	defer release()
	images, r := c.Images(), &run[C]{e: e, c: c, id: l.Owner.NewName()}
	create := func(ctx context.Context, name string) (string, error) { return images.CreateBare(ctx, name, l) }
	if err := r.create(ctx, create); err != nil {
		return runtime.Image{}, r.createError(ctx, err)
	}
	id, err := commit(ctx, images, r.id, l)
	r.once.Do(func() { r.until = time.Now().Add(layerCleanup) })
	left := r.leave(ctx, false) // it was never to be started
	if err != nil {
		return runtime.Image{}, e.Lost(c, errors.Join(err, left))
	}
	i, has, err := images.Find(ctx, id)
	if err == nil && !has {
		err = errors.New("the engine says that it was made, and doesn't have it")
	}
	if err != nil {
		return runtime.Image{}, e.Lost(c, fmt.Errorf("looking for image %s: %w", l.Ref, err))
	}
	i.Ref = l.Ref
	return i, nil
}

// commit copies the files into the container and makes an image of it.
func commit(ctx context.Context, images Images, container string, l runtime.Layer) (id string, err error) {
	// An HTTP request closes what it is made of.
	if err := images.Extract(ctx, container, io.NopCloser(l.Tar)); err != nil {
		return "", cause(ctx, fmt.Errorf("copying files into a container of %s: %w", l.Base, err))
	}
	if id, err = images.Commit(ctx, container, l); err != nil {
		return "", cause(ctx, fmt.Errorf("making image %s of a container: %w", l.Ref, err))
	}
	return id, nil
}

// Labels returns the labels of a layer's container: the layer's and its owner's.
func Labels(l runtime.Layer) map[string]string {
	all := map[string]string{}
	maps.Copy(all, l.Labels)
	maps.Copy(all, l.Owner.Labels())
	return all
}

// NoOwner returns labels that take an owner's labels off an image that is made of a container: its
// containers would be taken for a dead bridge's.
func NoOwner() map[string]string {
	labels := runtime.Owner{}.Labels()
	for name := range labels {
		labels[name] = ""
	}
	return labels
}
