package main

import (
	"archive/tar"
	"bytes"
	"os/exec"
	"testing"
)

// emptyImage is an image without Python, or anything else.
func emptyImage(t *testing.T) string {
	t.Helper()
	const ref = "localhost/mcp-bridge/test-empty:latest"
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []string{"etc/", "ipc/", "proc/", "sys/", "dev/", "tmp/", "workspace/"} {
		must(t, w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}))
	}
	must(t, w.Close())
	cmd := exec.Command("podman", "import", "-q", "-", ref)
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("podman import: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("podman", "rmi", "-f", ref).CombinedOutput(); err != nil {
			t.Errorf("podman rmi: %v: %s", err, out)
		}
	})
	return ref
}
