//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/domain/entities/types"
	"github.com/containers/podman/v5/pkg/specgen"
	"go.podman.io/image/v5/manifest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestNoHealthcheck: an image's own is answered with none, which is another thing than saying
// nothing.
func TestNoHealthcheck(t *testing.T) {
	g := generate(runtime.Spec{Command: []string{"true"}}, &connection{}, "")
	if g.HealthConfig == nil || !slices.Equal(g.HealthConfig.Test, []string{"NONE"}) {
		t.Errorf("got %+v", g.HealthConfig)
	}
}

// TestNoHealthcheckOfAnImage: the engine takes that for what it says.
func TestNoHealthcheckOfAnImage(t *testing.T) {
	d := newDriver(t)
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := c.with(t.Context())
	s := target(d)(t).Spec("pass")
	healthcheck := func(g *specgen.SpecGenerator) (test []string) {
		t.Helper()
		made, err := containers.CreateWithSpec(ctx, g, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := containers.Remove(c.with(context.Background()), made.ID,
				new(containers.RemoveOptions).WithForce(true)); err != nil {
				t.Error(err)
			}
		})
		seen, err := containers.Inspect(ctx, made.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Config.Healthcheck != nil {
			test = seen.Config.Healthcheck.Test
		}
		return test
	}
	const ref = "localhost/mcp-bridge/test-health:latest"
	dir := t.TempDir()
	file := filepath.Join(dir, "Containerfile")
	if err := os.WriteFile(file, []byte("FROM "+image+"\nHEALTHCHECK CMD true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := types.BuildOptions{}
	opts.ContextDirectory, opts.Output, opts.OutputFormat, opts.Out, opts.Err = dir, ref,
		manifest.DockerV2Schema2MediaType, io.Discard, io.Discard
	built, err := images.Build(ctx, []string{file}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, errs := images.Remove(c.with(context.Background()), []string{ref},
			new(images.RemoveOptions).WithForce(true)); len(errs) > 0 {
			t.Error(errs)
		}
	})
	s.Image = built.ID
	silent := generate(s, c, "")
	silent.HealthConfig = nil
	if test := healthcheck(silent); len(test) == 0 {
		t.Fatal("the image's health check isn't the container's where nothing is said, so that this test can't" +
			" fail")
	}
	if test := healthcheck(generate(s, c, "")); len(test) > 0 && !slices.Equal(test, []string{"NONE"}) {
		t.Errorf("the container has the health check %q", test)
	}
}
