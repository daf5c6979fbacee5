package approvals

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWayUp: ".." in a link's target is the parent of where the names before it lead, not of the
// name.
func TestWayUp(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"a", "b/deep"} {
		w.must(os.MkdirAll(w.path(dir), 0o700))
	}
	w.must(os.Symlink(w.path("b/deep"), w.path("a/link")))
	w.must(os.Symlink("a/link/../file", w.path("start")))
	w.later()
	w.write("b/file", "x")
	if all := changes([]string{w.path("start")}); !slices.Contains(all, changed(w.path("b/file"))) {
		t.Errorf("%v lack the time of the file itself, %v", all, changed(w.path("b/file")))
	}
	w.must(os.Symlink("loop", w.path("loop")))
	if all := changes([]string{filepath.Join(w.root, "loop")}); len(all) == 0 {
		t.Error("a loop has no time")
	}
}
