//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/specgen"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// CreateBare implements engine.Client. It takes nothing from this machine's environment, such as a
// proxy with a password, which would be in the image.
func (c *connection) CreateBare(ctx context.Context, name string, l runtime.Layer) (string, error) {
	g := specgen.NewSpecGenerator(l.Base, false)
	g.Name = name
	g.Command = []string{"python3"} // podman makes no container without a command; an image may have none
	g.EnvHost, g.HTTPProxy = ptr(false), ptr(false)
	g.Labels = engine.Labels(l)
	g.LogConfiguration = &specgen.LogConfig{Driver: "none"}
	g.ImageVolumeMode = "ignore"
	g.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	g.CapDrop = []string{"ALL"}
	created, err := containers.CreateWithSpec(c.with(ctx), g, nil)
	return created.ID, c.orMissing(ctx, l.Base, err)
}

// Extract implements engine.Client. The bindings' own function drops what the engine says of a
// failure, such as a full disk.
func (c *connection) Extract(ctx context.Context, id string, tar io.Reader) error {
	conn, err := bindings.GetClient(c.values)
	if err != nil {
		return err
	}
	params := url.Values{"path": {"/"}, "copyUIDGID": {"false"}} // the tar says whose the files are
	r, err := conn.DoRequest(c.with(ctx), tar, http.MethodPut, "/containers/%s/archive", params, nil, id)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return r.Process(nil)
}

// Commit implements engine.Client. The image has the container's labels.
func (c *connection) Commit(ctx context.Context, id string, l runtime.Layer) (string, error) {
	repo, tag, _ := strings.Cut(l.Ref, ":")
	var changes []string
	for name := range engine.NoOwner() {
		changes = append(changes, "LABEL "+name+`=""`)
	}
	opts := new(containers.CommitOptions).WithRepo(repo).WithTag(tag).WithPause(false).WithChanges(changes)
	made, err := containers.Commit(c.with(ctx), id, opts)
	return made.ID, err
}

// ListImages implements engine.Client.
func (c *connection) ListImages(ctx context.Context, label string) ([]runtime.ListedImage, error) {
	opts := new(images.ListOptions).WithFilters(map[string][]string{"label": {label}})
	list, err := images.List(c.with(ctx), opts)
	var all []runtime.ListedImage
	for _, i := range list {
		all = append(all, runtime.ListedImage{
			ID: "sha256:" + strings.TrimPrefix(i.ID, "sha256:"), Names: i.RepoTags, Labels: i.Labels,
		})
	}
	return all, err
}

// RemoveImage implements engine.Client.
func (c *connection) RemoveImage(ctx context.Context, id string) error {
	_, errs := images.Remove(c.with(ctx), []string{id}, new(images.RemoveOptions).WithNoPrune(true))
	err := errors.Join(errs...)
	if has, herr := images.Exists(c.with(ctx), id, nil); err != nil && herr == nil && !has {
		return nil
	}
	return err
}

// SaveImage implements engine.Client.
func (c *connection) SaveImage(ctx context.Context, ref string, w io.Writer) error {
	return images.Export(c.with(ctx), []string{ref}, w, new(images.ExportOptions).WithFormat("oci-archive"))
}
