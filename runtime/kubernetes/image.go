//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// A cluster's API tells of no node's images. So a pod that does nothing finds out: whether the node
// that it is given has an image, and has it pulled.

// nodeImages are those that the nodes of a cluster have been seen to have.
type nodeImages struct {
	c *connection

	mu    sync.Mutex
	known map[string]runtime.Image // those that a pod has had, by full name
}

// Find implements engine.Images. A node that has it stands for the others, which pull it when
// they first need it.
func (s *nodeImages) Find(ctx context.Context, ref string) (runtime.Image, bool, error) {
	if i, ok := s.kept(ref); ok {
		return i, true, nil
	}
	err := s.probe(ctx, ref, corev1.PullNever)
	if errors.As(err, new(*runtime.ImageError)) {
		return runtime.Image{}, false, nil
	}
	if err != nil {
		return runtime.Image{}, false, err
	}
	i, _ := s.kept(ref)
	return i, true, nil
}

// Pull implements engine.Images. The name that was asked for is looked for next, and found.
func (s *nodeImages) Pull(ctx context.Context, name, _ string, _ runtime.Progress) error {
	return s.probe(ctx, name, corev1.PullAlways)
}

// probe has a pod of an image started, and keeps what its node says of it.
func (s *nodeImages) probe(ctx context.Context, ref string, pull corev1.PullPolicy) error {
	change := func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = pull }
	return s.c.withPod(ctx, ref, change, s.c.d.times.pull, running, func(p *corev1.Pod) {
		s.keep(ref, status(p).ImageID)
	})
}

// kept returns an image that a pod has had, by any of its names.
func (s *nodeImages) kept(ref string) (runtime.Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.known[engine.FullName(ref)]
	i.Ref = ref
	return i, ok
}

// keep remembers an image, by its digest where it has one from a registry.
func (s *nodeImages) keep(ref, id string) {
	id = strings.TrimPrefix(id, "docker-pullable://")
	i := runtime.Image{Ref: ref, ID: ref, Digest: runtime.DigestOf(ref, []string{id})}
	if strings.Contains(id, "@sha256:") && !runtime.IsLocal(ref) {
		i.ID = id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[engine.FullName(ref)] = i
}

// errImages is why a cluster makes, lists and gives away no images.
var errImages = errors.New("a cluster's API has no images: it only runs those of registries and of its nodes")

func noImages(what string) error {
	return &Refusal{Err: fmt.Errorf("%s: %w", what, errImages),
		Next: "make it with podman or docker (mcp-bridge " +
			"env build, env export --oci), push it to the cluster's registry, and name it by digest in " +
			"MCP_BRIDGE_IMAGE"}
}

// Import implements engine.Images.
func (s *nodeImages) Import(context.Context, string, io.Reader) error {
	return noImages("importing an image")
}

// CreateBare implements engine.Images.
func (s *nodeImages) CreateBare(context.Context, string, runtime.Layer) (string, error) {
	return "", noImages("making an image of packages")
}

// Extract implements engine.Images; there is nothing that CreateBare has made.
func (s *nodeImages) Extract(context.Context, string, io.Reader) error {
	return noImages("copying files")
}

// Commit implements engine.Images; as Extract.
func (s *nodeImages) Commit(context.Context, string, runtime.Layer) (string, error) {
	return "", noImages("making an image")
}

// List implements engine.Images: there are none that a bridge has made.
func (s *nodeImages) List(context.Context, string) ([]runtime.ListedImage, error) {
	return nil, nil
}

// Remove implements engine.Images: what isn't there is gone.
func (s *nodeImages) Remove(context.Context, string) error { return nil }

// Save implements engine.Images.
func (s *nodeImages) Save(context.Context, string, io.Writer) error {
	return noImages("saving an image")
}
