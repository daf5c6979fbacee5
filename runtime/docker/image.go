package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// FindImage implements runtime.Driver.
func (d *Driver) FindImage(ctx context.Context, ref string) (runtime.Image, bool, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Image{}, false, err
	}
	i, err := c.cli.ImageInspect(ctx, ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return runtime.Image{}, false, nil
	case err != nil:
		return runtime.Image{}, false, d.lost(c, fmt.Errorf("looking for image %s: %w", ref, err))
	}
	c.remember(i) // a run by this id needn't ask again
	return runtime.Image{Ref: ref, ID: fullID(i.ID), Digest: runtime.DigestOf(ref, i.RepoDigests), Arch: i.Architecture}, true, nil
}

func fullID(id string) string { return "sha256:" + strings.TrimPrefix(id, "sha256:") }

// template looks at what an image brings along. An image of an id never changes, so it is looked at once.
func (d *Driver) template(ctx context.Context, c *connection, ref string) (template, error) {
	c.mu.Lock()
	t, ok := c.images[ref]
	c.mu.Unlock()
	if ok {
		return t, nil
	}
	i, err := c.cli.ImageInspect(ctx, ref)
	switch {
	case ctx.Err() != nil:
		return t, context.Cause(ctx)
	case cerrdefs.IsNotFound(err):
		return t, imageMissing(ref, err)
	case err != nil:
		return t, d.lost(c, fmt.Errorf("looking at image %s: %w", ref, err))
	}
	return c.remember(i), nil
}

// remember keeps what an image of an id brings along.
func (c *connection) remember(i image.InspectResponse) template {
	t := template{id: fullID(i.ID)}
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

// forget an image that is gone.
func (c *connection) forget(ref string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.images, ref)
}

func imageMissing(ref string, err error) error {
	return &runtime.ImageError{Ref: ref, Err: errors.New(runtime.OneLine(err.Error())), Next: "get it with: mcp-bridge image pull"}
}

// PullImage implements runtime.Driver.
func (d *Driver) PullImage(ctx context.Context, ref string, p runtime.Progress) (runtime.Image, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return runtime.Image{}, &runtime.ImageError{Ref: ref, Err: err, Next: "set MCP_BRIDGE_IMAGE to a name such as python:3.12-slim"}
	}
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Image{}, err
	}
	login := d.login(ctx, c, reference.Domain(named))
	pr := &progress{to: p}
	pr.say("pulling " + named.String())
	if err := pr.follow(c.cli.ImagePull(ctx, named.String(), image.PullOptions{RegistryAuth: login})); err != nil {
		if ctx.Err() != nil {
			return runtime.Image{}, fmt.Errorf("pulling %s: %w", named, context.Cause(ctx))
		}
		err = d.lost(c, err)
		var gone *runtime.UnavailableError
		if errors.As(err, &gone) {
			return runtime.Image{}, err
		}
		return runtime.Image{}, runtime.PullError(named.String(), err)
	}
	i, ok, err := d.FindImage(ctx, ref)
	if err == nil && !ok {
		err = runtime.PullError(named.String(), errors.New("the engine says that it was pulled, and doesn't have it"))
	}
	return i, err
}

// login is what goes to the engine for a registry. It holds a password in the clear, so over a connection that others can read
// or answer it doesn't go.
func (d *Driver) login(ctx context.Context, c *connection, registry string) string {
	login, err := d.settings.login(ctx, registry)
	switch {
	case err != nil:
		d.log.Warn("docker's login for the registry can't be had; trying without", "registry", registry, "err", err)
	case login != "" && c.exposed:
		d.log.Warn("docker's login for the registry is not sent: others could read it on the way to the engine; use ssh:// or TLS, or pull the image on the engine's machine",
			"registry", registry, "endpoint", c.facts.Endpoint)
		return ""
	}
	return login
}

// ImportImage makes an image named ref from a tar of its root file system.
func (d *Driver) ImportImage(ctx context.Context, ref string, tar io.Reader) error {
	c, err := d.connect(ctx)
	if err != nil {
		return err
	}
	pr := &progress{}
	// A file would be closed, as what a request of HTTP is made of; it is its caller's.
	if err := pr.follow(c.cli.ImageImport(ctx, image.ImportSource{Source: io.NopCloser(tar), SourceName: "-"}, ref, image.ImportOptions{})); err != nil {
		return d.lost(c, fmt.Errorf("importing image %s: %w", ref, err))
	}
	return nil
}
