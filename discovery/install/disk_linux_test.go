package install

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFullDisk: on a disk without room for the new file all is as it was, and nothing is
// remembered.
func TestFullDisk(t *testing.T) {
	h := newHome(t, map[string]string{".cursor/x": ""})
	disk := h.path(".cursor")
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small disk can be mounted by root only: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	h.write(cursorFile, "{}")
	err := os.WriteFile(h.path(".cursor/big"), bytes.Repeat([]byte("x"), 1<<17), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk isn't full: %v", err)
	}
	before := h.files()
	p, err := h.plan("cursor")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.journal.Write(t.Context(), p.Files[0]); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(before, h.files()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if back, err := h.journal.PlanUndo(nil, nil); err != nil || len(back) != 0 {
		t.Errorf("it is remembered: %v, %v", back, err)
	}
}
