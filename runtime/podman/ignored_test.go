//go:build unix

package podman

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIgnoredRuntimeDirIsKeptFromPodman: what the driver doesn't use for itself, podman's service
// must not use for its containers.
func TestIgnoredRuntimeDirIsKeptFromPodman(t *testing.T) {
	tmp := t.TempDir()
	said := filepath.Join(tmp, "said")
	stand := filepath.Join(tmp, "podman")
	script := "#!/bin/sh\necho \"$1 ${XDG_RUNTIME_DIR-unset}\" >>" + said + "\nexit 1\n"
	if err := os.WriteFile(stand, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(tmp, "none")
	for dir, want := range map[string]string{missing: "unset", tmp: tmp} {
		t.Setenv("XDG_RUNTIME_DIR", dir)
		d := New(Config{RuntimeDir: dir, Binary: stand, AllowRootful: true})
		defer d.Close()
		if _, err := d.service.start(t.Context()); err == nil {
			t.Fatal("a program that ends is taken for a service")
		}
		_ = d.program.ask(t.Context(), nil, "system")
		_ = d.program.run(t.Context(), nil, "machine")
		got, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(strings.TrimSpace(string(got)), "\n"); len(lines) != 3 ||
			strings.Count(string(got), " "+want+"\n") != 3 {
			t.Errorf("with XDG_RUNTIME_DIR=%s podman was given %q", dir, lines)
		}
		if err := os.Remove(said); err != nil {
			t.Fatal(err)
		}
	}
}
