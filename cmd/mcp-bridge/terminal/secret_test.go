package terminal

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadSecretFromAFile: what is no terminal can't be kept from showing what is typed, and isn't
// read.
func TestReadSecretFromAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if line, err := ReadSecret(t.Context(), f); err == nil {
		t.Errorf("got %q and no error", line)
	}
}
