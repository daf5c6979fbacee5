package runtime

import (
	"slices"
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
