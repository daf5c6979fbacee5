//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/errorhandling"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// imageStore is an engine.Images.
type imageStore struct{ api }

// Find implements engine.Images. Of a short name podman itself would ask at the terminal which
// registry was meant.
func (s imageStore) Find(ctx context.Context, ref string) (runtime.Image, bool, error) {
	for _, name := range slices.Compact([]string{ref, engine.FullName(ref)}) {
		r, err := images.GetImage(s.with(ctx), name, nil)
		if err != nil && status(err) == http.StatusNotFound {
			continue
		}
		if err != nil {
			return runtime.Image{}, false, err
		}
		id, digest := "sha256:"+strings.TrimPrefix(r.ID, "sha256:"), runtime.DigestOf(ref, r.RepoDigests)
		return runtime.Image{Ref: ref, ID: id, Digest: digest, Arch: r.Architecture}, true, nil
	}
	return runtime.Image{}, false, nil
}

// Pull implements engine.Images.
func (s imageStore) Pull(ctx context.Context, name, _ string, p runtime.Progress) error {
	opts := new(images.PullOptions).WithProgressWriter(&runtime.Lines{To: p}).WithPolicy("newer").WithRetry(1)
	_, err := images.Pull(s.with(ctx), name, opts)
	return err
}

// Import implements engine.Images.
func (s imageStore) Import(ctx context.Context, ref string, tar io.Reader) error {
	_, err := images.Import(s.with(ctx), tar, new(images.ImportOptions).WithReference(ref))
	return err
}

// List implements engine.Images.
func (s imageStore) List(ctx context.Context, label string) ([]runtime.ListedImage, error) {
	opts := new(images.ListOptions).WithFilters(map[string][]string{"label": {label}})
	list, err := images.List(s.with(ctx), opts)
	var all []runtime.ListedImage
	for _, i := range list {
		all = append(all, runtime.ListedImage{
			ID: "sha256:" + strings.TrimPrefix(i.ID, "sha256:"), Names: i.RepoTags, Labels: i.Labels,
		})
	}
	return all, err
}

// Remove implements engine.Images.
func (s imageStore) Remove(ctx context.Context, id string) error {
	_, errs := images.Remove(s.with(ctx), []string{id}, new(images.RemoveOptions).WithNoPrune(true))
	err := errors.Join(errs...)
	if has, herr := images.Exists(s.with(ctx), id, nil); err != nil && herr == nil && !has {
		return nil
	}
	return err
}

// Save implements engine.Images.
func (s imageStore) Save(ctx context.Context, ref string, w io.Writer) error {
	return images.Export(s.with(ctx), []string{ref}, w, new(images.ExportOptions).WithFormat("oci-archive"))
}

// orMissing returns err, or a *runtime.ImageError if the engine gave it because it lacks the image.
func (s imageStore) orMissing(ctx context.Context, ref string, err error) error {
	if !errors.As(err, new(*errorhandling.ErrorModel)) {
		return err
	}
	if _, has, ferr := s.Find(ctx, ref); ferr == nil && !has {
		return engine.ImageMissing(ref, err)
	}
	return err
}
