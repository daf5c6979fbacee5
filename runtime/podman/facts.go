//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"slices"
	"strings"

	"github.com/containers/podman/v5/libpod/define"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// facts reads podman's own account. Rootless podman enforces no limit on cgroup v1, and on v2 those whose controller was
// delegated to the user.
func facts(info *define.Info, e endpoint, api string) runtime.Facts {
	f := runtime.Facts{
		Engine:        "podman",
		Version:       info.Version.Version,
		APIVersion:    api,
		Endpoint:      redact(e.url),
		Rootless:      info.Host.Security.Rootless,
		Remote:        !strings.HasPrefix(e.url, "unix:") || e.machine,
		CgroupVersion: 1,
	}
	if info.Host.OCIRuntime != nil {
		f.OCIRuntime = info.Host.OCIRuntime.Name
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
	return f
}
