package environments_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// cluster is an engine that lists and makes no images, and pulls those of a registry.
type cluster struct {
	fake
	has, pulls map[string]bool
}

func (c *cluster) Facts(context.Context) (runtime.Facts, error) {
	return runtime.Facts{Engine: "kubernetes", Cluster: true}, nil
}

func (c *cluster) FindImage(_ context.Context, ref string) (runtime.Image, bool, error) {
	return runtime.Image{Ref: ref, ID: ref}, c.has[ref], nil
}

func (c *cluster) PullImage(_ context.Context, ref string, _ runtime.Progress) (runtime.Image, error) {
	c.has[ref], c.pulls[ref] = true, true
	return runtime.Image{Ref: ref, ID: ref}, nil
}

const pushed = "registry.example/team/mine@sha256:" +
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// onCluster returns the bench's environments as a bridge of a cluster has them, which has the two
// files of one that was built and exported.
func onCluster(t *testing.T, b *bench) (*cluster, *environments.Environments) {
	t.Helper()
	b.define(t, "mine", "", "one", "two")
	path, err := b.WriteLabels(b.build(t, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	labels, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{has: map[string]bool{}, pulls: map[string]bool{}}
	cfg := b.cfg
	cfg.Driver, cfg.Dir = c, t.TempDir()
	write(t, filepath.Join(cfg.Dir, "mine.toml"), "pushed = \""+pushed+"\"\nimports = [\"one\"]\n")
	write(t, filepath.Join(cfg.Dir, filepath.Base(path)), string(labels))
	return c, environments.New(cfg)
}

// TestPushed: a cluster has the environments whose files name an image in a registry. Code finds
// them by name and by what it asks for, and the image is pulled before its first run.
func TestPushed(t *testing.T) {
	c, e := onCluster(t, newBench(t))
	all, err := e.List(t.Context())
	if err != nil || len(all) != 1 || len(c.pulls) != 0 {
		t.Fatalf("got %v, %v, pulled %v; want mine, and nothing pulled for a list", all, err, c.pulls)
	}
	block, err := wheels.ParseBlock("# /// script\n# dependencies = [\"one\", \"two==1.0\"]\n# ///\n")
	if err != nil {
		t.Fatal(err)
	}
	env, err := e.Find(t.Context(), block)
	if err != nil || env.Name != "mine" || env.Image.ID != pushed ||
		env.Image.Digest != pushed[len(pushed)-71:] ||
		len(env.Distributions) != 2 || env.Imports[0] != "one" ||
		env.Outdated != "" {
		t.Errorf("got %+v, %v; want mine, by its digest", env, err)
	}
	if _, err := e.ByName(t.Context(), "mine"); err != nil || !c.pulls[pushed] {
		t.Errorf("got %v; pulled %v", err, c.pulls)
	}
	c.pulls = map[string]bool{}
	if _, err := e.ByName(t.Context(), "mine"); err != nil || len(c.pulls) != 0 {
		t.Errorf("got %v; pulled again: %v", err, c.pulls)
	}
}

// TestClusterMakesNone: building, removing, and a package that isn't there fail at once, and say
// what to do.
func TestClusterMakesNone(t *testing.T) {
	c, e := onCluster(t, newBench(t))
	_, built := e.Build(t.Context(), "mine", nil)
	removed := e.Remove(t.Context(), "mine")
	_, missing := e.Find(t.Context(), parse(t, "'numpy'"))
	const makes = "makes and removes no images"
	for _, tc := range []struct {
		err        error
		says, hint string
	}{
		{built, makes, "podman or docker"}, {removed, makes, "take pushed out"},
		{missing, "no environment has numpy", "push it, and name it in data.toml"},
	} {
		var hinted interface{ Hint() string }
		if !errors.As(tc.err, &hinted) || !strings.Contains(hinted.Hint(), tc.hint) ||
			!strings.Contains(tc.err.Error(), tc.says) {
			t.Errorf("got %v, want a hint with %q", tc.err, tc.hint)
		}
	}
	if c.runs != 0 {
		t.Errorf("%d containers ran for a build that can't be", c.runs)
	}
}

// TestPushedRefused: a name without a digest, and labels that are missing, another environment's or
// none, are no environment.
func TestPushedRefused(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"is no image with its digest": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "mine.toml"), `pushed = "registry.example/team/mine:latest"`)
		},
		"labels.mine.json is missing": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "labels.mine.json")); err != nil {
				t.Fatal(err)
			}
		},
		"doesn't describe the environment mine": func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, "labels.mine.json"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "labels.mine.json"),
				strings.Replace(string(text), `environment": "mine"`, `environment": "other"`, 1))
		},
		"labels.mine.json: ": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "labels.mine.json"), "{")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c, e := onCluster(t, b)
			change(t, filepath.Dir(e.Definitions()[1].File))
			if all, err := e.List(t.Context()); err != nil || len(all) != 0 || len(c.pulls) != 0 {
				t.Errorf("got %v, %v, pulled %v; want none", all, err, c.pulls)
			}
			if _, err := e.ByName(t.Context(), "mine"); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %q", err, name)
			}
		})
	}
}

// TestPushedElsewhere: podman and docker go by their own images, whatever was pushed.
func TestPushedElsewhere(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "pushed = \""+pushed+"\"", "one")
	if all, err := b.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v; want none before a build", all, err)
	}
	if env := b.build(t, "mine"); env.Image.ID == pushed {
		t.Errorf("the image is the registry's: %+v", env.Image)
	}
}
