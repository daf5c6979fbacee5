package entrypoint

import (
	"os"
	"os/exec"
	"testing"
)

// python is the python3 of this machine. Without one the test is skipped, or fails where nothing
// may be skipped.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), path, "-c", "import sys; sys.exit(sys.version_info < (3, 10))").
			Run()
	}
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("no python3 of version 3.10 or newer: %v; install one", err)
	}
	t.Skipf("no python3 of version 3.10 or newer: %v", err)
	return ""
}

// TestPython runs the guest's own tests, which also play the transcripts.
func TestPython(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; make python runs them under every Python")
	}
	cmd := exec.CommandContext(
		t.Context(),
		python(t),
		"-B",
		"-m",
		"unittest",
		"discover",
		"-s",
		"guest_tests",
		"-t",
		".",
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
