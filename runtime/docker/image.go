package docker

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// imageStore is an engine.Images, and knows what images bring into a container.
type imageStore struct {
	cli      *client.Client
	settings settings // has logins
	log      *slog.Logger
	endpoint string // for the log
	exposed  bool   // the way there can be read or answered by others: see endpoint.open

	mu    sync.Mutex
	known map[string]template // by id
}

// Find implements engine.Images. A run by the image's id need not ask again.
func (s *imageStore) Find(ctx context.Context, ref string) (runtime.Image, bool, error) {
	i, err := s.cli.ImageInspect(ctx, ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return runtime.Image{}, false, nil
	case err != nil:
		return runtime.Image{}, false, err
	}
	digest := runtime.DigestOf(ref, i.RepoDigests)
	return runtime.Image{Ref: ref, ID: s.remember(i).id, Digest: digest, Arch: i.Architecture}, true, nil
}

// template returns what an image brings along. An image of an id never changes, so it is looked at
// once.
func (s *imageStore) template(ctx context.Context, ref string) (template, error) {
	s.mu.Lock()
	t, ok := s.known[ref]
	s.mu.Unlock()
	if ok {
		return t, nil
	}
	i, err := s.cli.ImageInspect(ctx, ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return t, engine.ImageMissing(ref, err)
	case err != nil:
		return t, err
	}
	return s.remember(i), nil
}

// remember keeps what an image of an id brings along.
func (s *imageStore) remember(i image.InspectResponse) template {
	t := template{id: "sha256:" + strings.TrimPrefix(i.ID, "sha256:")}
	if i.Config != nil {
		for _, kv := range i.Config.Env {
			name, _, _ := strings.Cut(kv, "=")
			t.env = append(t.env, name)
		}
		t.volumes = slices.Sorted(maps.Keys(i.Config.Volumes))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[t.id] = t
	return t
}

// forget drops an image that is gone.
func (s *imageStore) forget(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, ref)
}

// Pull implements engine.Images.
func (s *imageStore) Pull(ctx context.Context, name, registry string, p runtime.Progress) error {
	login := s.login(ctx, registry)
	pr := &progress{to: p}
	return pr.follow(s.cli.ImagePull(ctx, name, image.PullOptions{RegistryAuth: login}))
}

// login returns what goes to the engine for a registry. It holds a password in the clear, so over a
// connection that others can read or answer it doesn't go.
func (s *imageStore) login(ctx context.Context, registry string) string {
	login, err := s.settings.login(ctx, registry)
	switch {
	case err != nil:
		s.log.Warn("docker's login for the registry can't be had; trying without",
			"registry", registry, "err", err)
	case login != "" && s.exposed:
		s.log.Warn("docker's login for the registry is not sent: others could read it on the way to"+
			" the engine; use ssh:// or TLS, or pull the image on the engine's machine",
			"registry", registry, "endpoint", s.endpoint)
		return ""
	}
	return login
}

// Import implements engine.Images.
func (s *imageStore) Import(ctx context.Context, ref string, tar io.Reader) error {
	source := image.ImportSource{Source: tar, SourceName: "-"}
	return new(progress).follow(s.cli.ImageImport(ctx, source, ref, image.ImportOptions{}))
}
