package install

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFullDisk: on a disk without room for what is to be written, all is as it was, and nothing is
// remembered. The disks are mounted in namespaces of the test's own, so that no root is needed.
func TestFullDisk(t *testing.T) {
	const inside = "MCP_BRIDGE_TEST_DISK"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) && os.Getenv("CI") == "" {
			t.Skipf("this system lets no user mount a disk of their own: %v", err)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk/the_journal") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	const text = `{"mcpServers": {"a": {"command": "a"}}}`
	for _, tt := range []struct{ name, disk, file string }{
		{"a host's file", ".cursor", cursor},
		{"the bridge's own", ".config/mcp/servers", adopted},
		{"the journal, and the bridge's own", ".local/state/mcp-bridge", adopted},
		{"the journal", ".local/state/mcp-bridge", cursor},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, "cursor", map[string]string{cursor: text})
			in := New(h.cfg)
			moves := in.PlanMoves(wish()).All
			h.fillDisk(tt.disk)
			own, others, err := in.MoveFiles(moves)
			if err != nil {
				t.Fatal(err)
			}
			f := own
			if tt.file == cursor {
				f = others[0]
			}
			before := h.files()
			if err := h.journal.Write(t.Context(), f); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff(before, h.files()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if back, err := h.journal.PlanUndo(nil, nil); err != nil || len(back) != 0 {
				t.Errorf("it is remembered: %v, %v", back, err)
			}
		})
	}
}

// fillDisk has a directory be a small disk of its own, which has the same files and no more room.
func (h *home) fillDisk(name string) {
	h.t.Helper()
	disk, was := h.path(name), h.t.TempDir()
	if err := os.MkdirAll(disk, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.CopyFS(was, os.DirFS(disk)); err != nil {
		h.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			h.t.Error(err)
		}
	})
	if err := os.CopyFS(disk, os.DirFS(was)); err != nil {
		h.t.Fatal(err)
	}
	err := os.WriteFile(h.path(name+"/big"), bytes.Repeat([]byte("x"), 1<<17), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		h.t.Fatalf("the disk isn't full: %v", err)
	}
}
