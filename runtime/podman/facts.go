//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/containers/podman/v5/libpod/define"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// facts reads podman's own account. Rootless podman enforces no limit on cgroup v1, and on v2 those
// whose controller was delegated to the user.
func facts(info *define.Info, e endpoint, api string) runtime.Facts {
	e.VM = e.VM && runtime.OtherKernel(info.Host.Kernel)
	f := runtime.Facts{
		Engine:        "podman",
		Version:       info.Version.Version,
		APIVersion:    api,
		Endpoint:      runtime.Redacted(e.URL),
		Rootless:      info.Host.Security.Rootless,
		Remote:        elsewhere(info, e),
		Desktop:       e.VM,
		CgroupVersion: 1,
		Arch:          info.Host.Arch,
	}
	if info.Host.OCIRuntime != nil {
		f.OCIRuntime = filepath.Base(info.Host.OCIRuntime.Name) // it may be set as a path
		f.StartedBy(f.OCIRuntime)
	}
	if info.Host.CgroupsVersion == "v2" {
		f.CgroupVersion = 2
	}
	switch {
	case f.CgroupVersion == 2 && f.Rootless:
		has := func(controller string) bool { return slices.Contains(info.Host.CgroupControllers, controller) }
		f.Enforces = runtime.Enforced{Memory: has("memory"), PIDs: has("pids"), CPUs: has("cpu")}
	case !f.Rootless:
		f.Enforces = runtime.Enforced{Memory: true, PIDs: true, CPUs: true}
	}
	if info.Host.Security.AppArmorEnabled {
		f.LSM = append(f.LSM, "apparmor")
	}
	if info.Host.Security.SELinuxEnabled {
		f.LSM = append(f.LSM, "selinux")
	}
	return f
}

// elsewhere reports whether the engine can't see this machine's files. A socket here may be the end
// of somebody's tunnel, or the engine's of a machine whose container this is, so what the engine
// says of its machine is compared with ours. A container on its host's network has its host's name
// too, and not its files.
func elsewhere(info *define.Info, e endpoint) bool {
	if e.VM || strings.HasPrefix(e.URL, "ssh:") || goruntime.GOOS != "linux" {
		return true
	}
	host, err := os.Hostname()
	if err == nil && info.Host.Hostname != "" && info.Host.Hostname != host {
		return true
	}
	if info.Store != nil && info.Store.RunRoot != "" {
		if _, err := os.Stat(info.Store.RunRoot); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return runtime.OtherKernel(info.Host.Kernel)
}
