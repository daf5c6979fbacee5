//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/specgen"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// CreateBare implements engine.Images. It takes nothing from this machine's environment, such as a
// proxy with a password, which would be in the image.
func (s imageStore) CreateBare(ctx context.Context, name string, l runtime.Layer) (string, error) {
	g := specgen.NewSpecGenerator(l.Base, false)
	g.Name = name
	g.Command = []string{"python3"} // podman makes no container without a command; an image may have none
	g.EnvHost, g.HTTPProxy = new(false), new(false)
	g.Labels = engine.Labels(l)
	g.LogConfiguration = &specgen.LogConfig{Driver: "none"}
	g.ImageVolumeMode = "ignore"
	g.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	g.CapDrop = []string{"ALL"}
	created, err := containers.CreateWithSpec(s.with(ctx), g, nil)
	return created.ID, s.orMissing(ctx, l.Base, err)
}

// Extract implements engine.Images. The bindings' own function drops what the engine says of a
// failure, such as a full disk.
func (s imageStore) Extract(ctx context.Context, id string, tar io.Reader) error {
	conn, err := bindings.GetClient(s.values)
	if err != nil {
		return err
	}
	params := url.Values{"path": {"/"}, "copyUIDGID": {"false"}} // the tar says whose the files are
	r, err := conn.DoRequest(s.with(ctx), tar, http.MethodPut, "/containers/%s/archive", params, nil, id)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return r.Process(nil)
}

// Commit implements engine.Images. The image has the container's labels.
func (s imageStore) Commit(ctx context.Context, id string, l runtime.Layer) (string, error) {
	repo, tag, _ := strings.Cut(l.Ref, ":")
	var changes []string
	for name := range engine.NoOwner() {
		changes = append(changes, "LABEL "+name+`=""`)
	}
	opts := new(containers.CommitOptions).WithRepo(repo).WithTag(tag).WithPause(false).WithChanges(changes)
	made, err := containers.Commit(s.with(ctx), id, opts)
	return made.ID, err
}
