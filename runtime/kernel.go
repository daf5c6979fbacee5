package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
)

// ownKernels are the OCI runtimes whose containers have a kernel of their own, and the files in
// /dev that it adds to them.
var ownKernels = map[string][]string{
	"runsc":        {"/dev/fuse", "/dev/net"}, // gVisor
	"krun":         nil,
	"kata":         nil,
	"kata-runtime": nil,
}

// StartedBy sets what follows from the program, a name or a path, that starts the engine's
// containers.
func (f *Facts) StartedBy(program string) {
	f.OwnDevices, f.OwnKernel = ownKernels[filepath.Base(program)]
}

// KernelSince reports whether a release such as "6.1.0-13-amd64" is that version of Linux or a
// later one. It is false for what is not a release.
func KernelSince(release string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// OtherKernel reports whether a release is of another kernel than this machine's. An empty one
// isn't, nor is any where ours isn't known: a socket's path or an entry in a list doesn't make an
// engine one in a virtual machine.
func OtherKernel(release string) bool {
	if goruntime.GOOS != "linux" { // where all engines run
		return true
	}
	ours, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return err == nil && release != "" && release != strings.TrimSpace(string(ours))
}
