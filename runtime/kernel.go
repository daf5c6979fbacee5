package runtime

import "path/filepath"

// ownKernels are the OCI runtimes whose containers have a kernel of their own, and the files in /dev that it adds to them.
var ownKernels = map[string][]string{
	"runsc":        {"/dev/fuse", "/dev/net"}, // gVisor
	"krun":         nil,
	"kata":         nil,
	"kata-runtime": nil,
}

// StartedBy sets what follows from the program, a name or a path, that starts the engine's containers.
func (f *Facts) StartedBy(program string) {
	f.OwnDevices, f.OwnKernel = ownKernels[filepath.Base(program)]
}
