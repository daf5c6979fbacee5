package docker

import (
	"context"
	"io"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// FindImage implements engine.Client. A run by the image's id need not ask again.
func (c *connection) FindImage(ctx context.Context, ref string) (runtime.Image, bool, error) {
	i, err := c.cli.ImageInspect(ctx, ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return runtime.Image{}, false, nil
	case err != nil:
		return runtime.Image{}, false, err
	}
	digest := runtime.DigestOf(ref, i.RepoDigests)
	return runtime.Image{Ref: ref, ID: c.remember(i).id, Digest: digest, Arch: i.Architecture}, true, nil
}

// template returns what an image brings along. An image of an id never changes, so it is looked at
// once.
func (c *connection) template(ctx context.Context, ref string) (template, error) {
	c.mu.Lock()
	t, ok := c.images[ref]
	c.mu.Unlock()
	if ok {
		return t, nil
	}
	i, err := c.cli.ImageInspect(ctx, ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return t, engine.ImageMissing(ref, err)
	case err != nil:
		return t, err
	}
	return c.remember(i), nil
}

// remember keeps what an image of an id brings along.
func (c *connection) remember(i image.InspectResponse) template {
	t := template{id: "sha256:" + strings.TrimPrefix(i.ID, "sha256:")}
	if i.Config != nil {
		for _, kv := range i.Config.Env {
			name, _, _ := strings.Cut(kv, "=")
			t.env = append(t.env, name)
		}
		for v := range i.Config.Volumes {
			t.volumes = append(t.volumes, v)
		}
		slices.Sort(t.volumes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images[t.id] = t
	return t
}

// forget drops an image that is gone.
func (c *connection) forget(ref string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.images, ref)
}

// PullImage implements engine.Client.
func (c *connection) PullImage(ctx context.Context, name, registry string, p runtime.Progress) error {
	login := c.login(ctx, registry)
	pr := &progress{to: p}
	return pr.follow(c.cli.ImagePull(ctx, name, image.PullOptions{RegistryAuth: login}))
}

// login returns what goes to the engine for a registry. It holds a password in the clear, so over a
// connection that others can read or answer it doesn't go.
func (c *connection) login(ctx context.Context, registry string) string {
	login, err := c.d.settings.login(ctx, registry)
	switch {
	case err != nil:
		c.d.log.Warn("docker's login for the registry can't be had; trying without",
			"registry", registry, "err", err)
	case login != "" && c.exposed:
		c.d.log.Warn("docker's login for the registry is not sent: others could read it on the way to"+
			" the engine; use ssh:// or TLS, or pull the image on the engine's machine",
			"registry", registry, "endpoint", c.facts.Endpoint)
		return ""
	}
	return login
}

// ImportImage implements engine.Client.
func (c *connection) ImportImage(ctx context.Context, ref string, tar io.Reader) error {
	source := image.ImportSource{Source: tar, SourceName: "-"}
	return new(progress).follow(c.cli.ImageImport(ctx, source, ref, image.ImportOptions{}))
}
