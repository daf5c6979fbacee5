package runtime

import (
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
)

func TestStartedBy(t *testing.T) {
	tests := []struct {
		program string
		kernel  bool
		devices []string
	}{
		{"/usr/bin/runsc", true, []string{"/dev/fuse", "/dev/net"}},
		{"krun", true, nil},
		{"runc", false, nil},
		{"", false, nil},
	}
	f := Facts{OCIRuntime: "kept"}
	for _, tt := range tests {
		if f.StartedBy(tt.program); f.OwnKernel != tt.kernel || !slices.Equal(f.OwnDevices, tt.devices) ||
			f.OCIRuntime != "kept" {
			t.Errorf("%q: got %+v", tt.program, f)
		}
	}
}

func TestKernelSince(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-13-amd64": true, "5.14.0": true, "5.14-rc1": true, "5.13.9": false, "4.19.0": false, "": false,
		"x": false,
	} {
		if got := KernelSince(release, 5, 14); got != want {
			t.Errorf("%q: got %v, want %v", release, got, want)
		}
	}
}

func TestOtherKernel(t *testing.T) {
	ours, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if goruntime.GOOS != "linux" || err != nil {
		t.Skip("no kernel is known")
	}
	for release, want := range map[string]bool{"": false, strings.TrimSpace(string(ours)): false,
		"6.6.32-linuxkit": true} {
		if got := OtherKernel(release); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}
