//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportLeavesTheFile: the caller closes the file of an image, and is not told that somebody
// else has.
func TestImportLeavesTheFile(t *testing.T) {
	var got []byte
	endpoint := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := asPodman(w, "4.3.1")
		switch {
		case strings.HasSuffix(r.URL.Path, "/images/import"):
			got, _ = io.ReadAll(r.Body)
			reply(200, map[string]any{"Id": "1"})
		case strings.HasSuffix(r.URL.Path, "/info"):
			reply(200, info(true, "v1"))
		}
	}))
	name := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(name, []byte("a tar"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Endpoint: endpoint})
	defer d.Close()
	if err := d.ImportImage(t.Context(), "localhost/x", f); err != nil {
		t.Fatal(err)
	}
	if string(got) != "a tar" {
		t.Errorf("podman has got %q", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
