//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// A cluster's API tells of no node's images. So a pod that does nothing finds out: whether the node
// that it is given has an image, and has it pulled.

// probeAge bounds the life of such a pod by the cluster's own clock.
const probeAge = 10 * time.Minute

// FindImage implements engine.Client. A node that has it stands for the others, which pull it when
// they first need it.
func (c *connection) FindImage(ctx context.Context, ref string) (runtime.Image, bool, error) {
	if i, ok := c.kept(ref); ok {
		return i, true, nil
	}
	err := c.probe(ctx, ref, corev1.PullNever)
	if errors.As(err, new(*runtime.ImageError)) {
		return runtime.Image{}, false, nil
	}
	if err != nil {
		return runtime.Image{}, false, err
	}
	i, _ := c.kept(ref)
	return i, true, nil
}

// PullImage implements engine.Client. The name that was asked for is looked for next, and found.
func (c *connection) PullImage(ctx context.Context, name, _ string, _ runtime.Progress) error {
	return c.probe(ctx, name, corev1.PullAlways)
}

// probe has a pod of an image started, and keeps what its node says of it.
func (c *connection) probe(ctx context.Context, ref string, pull corev1.PullPolicy) error {
	change := func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = pull }
	return c.withPod(ctx, ref, change, c.d.times.pull, running, func(p *corev1.Pod) {
		c.keep(ref, status(p).ImageID)
	})
}

// withPod makes a pod that runs none of the user's code, waits until done says that it is as far,
// calls then, which may be nil, and removes the pod.
func (c *connection) withPod(
	ctx context.Context,
	ref string,
	change func(*corev1.Pod),
	patience time.Duration,
	done func(*corev1.Pod, bool) (bool, error),
	then func(*corev1.Pod),
) (err error) {
	s := runtime.Spec{
		Image: ref, Command: []string{"true"}, User: "65534:65534", Owner: c.d.self, MaxAge: probeAge,
		Limits: runtime.Limits{Memory: 64 << 20, PIDs: 16, NoFile: 64, Shm: 1 << 20},
	}
	if err := c.d.leases.hold(ctx, c, s.Owner); err != nil {
		return err
	}
	name := s.Owner.NewName()
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.d.Times.Cleanup)
		defer cancel()
		if left := c.Remove(late, name); left != nil && err == nil {
			err = fmt.Errorf("pod %s could not be removed: %w", podName(name), left)
		}
	}()
	make := func() *corev1.Pod {
		p := c.pod(name, s)
		change(p)
		return p
	}
	if err := c.start(ctx, make, patience, done); err != nil {
		return err
	}
	if p, _, _ := c.pods.last(podName(name)); then != nil {
		then(p)
	}
	return nil
}

// kept returns an image that a pod has had, by any of its names.
func (c *connection) kept(ref string) (runtime.Image, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.images[engine.FullName(ref)]
	i.Ref = ref
	return i, ok
}

// keep remembers an image, by its digest where it has one from a registry.
func (c *connection) keep(ref, id string) {
	id = strings.TrimPrefix(id, "docker-pullable://")
	i := runtime.Image{Ref: ref, ID: ref, Digest: runtime.DigestOf(ref, []string{id})}
	if strings.Contains(id, "@sha256:") && !runtime.IsLocal(ref) {
		i.ID = id
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images[engine.FullName(ref)] = i
}

// errImages is why a cluster makes, lists and gives away no images.
var errImages = errors.New("a cluster's API has no images: it only runs those of registries and of its nodes")

func noImages(what string) error {
	return &Refusal{Err: fmt.Errorf("%s: %w", what, errImages),
		Next: "make it with podman or docker (mcp-bridge " +
			"env build, env export --oci), push it to the cluster's registry, and name it by digest in " +
			"MCP_BRIDGE_IMAGE"}
}

// ImportImage implements engine.Client.
func (c *connection) ImportImage(context.Context, string, io.Reader) error {
	return noImages("importing an image")
}

// CreateBare implements engine.Client.
func (c *connection) CreateBare(context.Context, string, runtime.Layer) (string, error) {
	return "", noImages("making an image of packages")
}

// Extract implements engine.Client; there is nothing that CreateBare has made.
func (c *connection) Extract(context.Context, string, io.Reader) error {
	return noImages("copying files")
}

// Commit implements engine.Client; as Extract.
func (c *connection) Commit(context.Context, string, runtime.Layer) (string, error) {
	return "", noImages("making an image")
}

// ListImages implements engine.Client: there are none that a bridge has made.
func (c *connection) ListImages(context.Context, string) ([]runtime.ListedImage, error) {
	return nil, nil
}

// RemoveImage implements engine.Client: what isn't there is gone.
func (c *connection) RemoveImage(context.Context, string) error { return nil }

// SaveImage implements engine.Client.
func (c *connection) SaveImage(context.Context, string, io.Writer) error {
	return noImages("saving an image")
}
