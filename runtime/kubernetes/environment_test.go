//go:build kubernetes

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
)

// TestPushedEnvironment: an environment that was pushed is pulled by a pod once, and pods run it by
// its digest.
func TestPushedEnvironment(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	dir, image := t.TempDir(), "registry.example/frames@sha256:"+strings.Repeat("ab", 32)
	const label = `"io.mcp-bridge.environment`
	for name, text := range map[string]string{"frames.toml": "pushed = \"" + image + "\"\n",
		"labels.frames.json": `{` + label + `": "frames", ` + label + `.python": "{}", ` + label + `.size": "1", ` +
			label + `.packages": "[]", ` + label + `.built": "2026-11-01T00:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := environments.New(environments.Config{Driver: d, Dir: dir, Owner: runtime.Self()})
	for range 3 {
		env, err := e.ByName(t.Context(), "frames")
		if err != nil || env.Image.ID != image {
			t.Fatalf("got %+v, %v, want %s", env, err, image)
		}
	}
	created, pods := f.count("create pods")
	if created != 2 || pods != 0 { // one that looks for it, and one that has it pulled
		t.Errorf("%d pods were made, want 2, and %d are left", created, pods)
	}
	s := f.target(d)(t).Spec("print(1)")
	s.Image = image
	if _, err := d.Run(t.Context(), s, silent()); err != nil {
		t.Error(err)
	}
}
