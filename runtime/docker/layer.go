package docker

import (
	"context"
	"errors"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// CreateBare implements engine.Images.
func (s *imageStore) CreateBare(ctx context.Context, name string, l runtime.Layer) (string, error) {
	config := &container.Config{
		Image: l.Base, Labels: engine.Labels(l),
		Cmd: []string{"python3"}, // docker makes no container without a command; an image may have none
	}
	host := &container.HostConfig{
		LogConfig: container.LogConfig{Type: "none"}, NetworkMode: "none", CapDrop: []string{"ALL"},
		SecurityOpt: []string{"no-new-privileges"},
	}
	made, err := s.cli.ContainerCreate(ctx, config, host, nil, nil, name)
	if cerrdefs.IsNotFound(err) {
		return "", engine.ImageMissing(l.Base, err)
	}
	return made.ID, err
}

// Extract implements engine.Images.
func (s *imageStore) Extract(ctx context.Context, id string, tar io.Reader) error {
	return s.cli.CopyToContainer(ctx, id, "/", tar, container.CopyToContainerOptions{})
}

// Commit implements engine.Images. The image has the container's labels.
func (s *imageStore) Commit(ctx context.Context, id string, l runtime.Layer) (string, error) {
	made, err := s.cli.ContainerCommit(ctx, id, container.CommitOptions{
		Reference: l.Ref, Config: &container.Config{Labels: engine.NoOwner()},
	})
	return made.ID, err
}

// List implements engine.Images.
func (s *imageStore) List(ctx context.Context, label string) ([]runtime.ListedImage, error) {
	about := filters.NewArgs(filters.Arg("label", label))
	list, err := s.cli.ImageList(ctx, image.ListOptions{Filters: about})
	var all []runtime.ListedImage
	for _, i := range list {
		l := runtime.ListedImage{ID: i.ID, Labels: i.Labels}
		for _, name := range i.RepoTags {
			if !strings.HasPrefix(name, "<none>") { // as older versions say it
				l.Names = append(l.Names, name)
			}
		}
		all = append(all, l)
	}
	return all, err
}

// Remove implements engine.Images.
func (s *imageStore) Remove(ctx context.Context, id string) error {
	_, err := s.cli.ImageRemove(ctx, id, image.RemoveOptions{})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Save implements engine.Images. From version 25 on, docker's archive is an OCI layout too.
func (s *imageStore) Save(ctx context.Context, ref string, w io.Writer) error {
	saved, err := s.cli.ImageSave(ctx, []string{ref})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, saved)
	return errors.Join(err, saved.Close())
}
