package environments_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fullVar has the test run itself again where it may mount.
const fullVar = "MCP_BRIDGE_TEST_FULL_DISK"

// TestFullDisk builds on a disk of 1 MB, which is full while wheels are downloaded, or while the
// layer is written. The error says what to do, nothing is left, and the same build is whole once
// there is room.
func TestFullDisk(t *testing.T) {
	if os.Getenv(fullVar) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), fullVar+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) && os.Getenv("CI") == "" {
			t.Skipf("no user namespace can be made here: %v", err)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	for _, tt := range []struct {
		name  string
		noise int // bytes that can't be compressed
		want  string
	}{
		{"while wheels are downloaded", 3 << 20, "downloading large-1"},
		{"while the layer is written", 700 << 10, "no space left on device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			disk(t, b.cfg.CacheDir, "1m", 0)
			noise := make([]byte, tt.noise)
			_, _ = rand.Read(noise) // it never fails
			b.defineSources(t, "large", map[string]string{"large.py": "x = 1\n", "large.bin": string(noise)})
			_, err := b.Build(t.Context(), "large", nil)
			var hinted interface{ Hint() string }
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), tt.want) ||
				!errors.As(err, &hinted) || !strings.HasPrefix(hinted.Hint(), "free some space") {
				t.Errorf("got %v", err)
			}
			b.clean(t)
			left, err := filepath.Glob(filepath.Join(b.cfg.CacheDir, "wheels", "*.part"))
			if err != nil || len(left)+len(b.engine.images) > 0 {
				t.Errorf("left are %q and %d images, %v", left, len(b.engine.images), err)
			}
			disk(t, b.cfg.CacheDir, "64m", syscall.MS_REMOUNT)
			_, files := unpack(t, b.engine.layers[b.build(t, "large").Image.ID])
			if files["opt/env/large.bin"] != string(noise) {
				t.Error("the layer isn't whole")
			}
		})
	}
}

// disk mounts a disk of that size at dir.
func disk(t *testing.T, dir, size string, flags uintptr) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%s,mode=700", size)); err != nil {
		t.Fatal(err)
	}
	if flags == 0 {
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // it goes with the namespace
	}
}
