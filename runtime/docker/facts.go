package docker

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// noClock is what no docker has and podman does.
const noClock = "docker has no clock of its own that ends a container which is too old: the bridge ends it" +
	" while it lives, and the code in it sees its input end when it doesn't"

// facts reads docker's own account.
func facts(info system.Info, e endpoint, api string) runtime.Facts {
	options := securityOptions(info.SecurityOptions)
	e.VM = e.VM && runtime.OtherKernel(info.KernelVersion)
	local := strings.HasPrefix(e.URL, "unix:") || strings.HasPrefix(e.URL, "npipe:")
	f := runtime.Facts{
		Engine:        "docker",
		Version:       info.ServerVersion,
		APIVersion:    api,
		Endpoint:      runtime.Redacted(e.URL),
		OCIRuntime:    info.DefaultRuntime,
		Desktop:       e.VM || info.OperatingSystem == "Docker Desktop" || info.OperatingSystem == "OrbStack",
		CgroupVersion: 1,
		Arch:          goarch(info.Architecture),
		Lacks:         []string{noClock},
	}
	_, f.Rootless = options["rootless"]
	f.Remote = !local || f.Desktop
	if info.CgroupVersion == "2" {
		f.CgroupVersion = 2
	}
	// Without a driver docker neither sets nor refuses a limit; the flags tell of the kernel only.
	if info.CgroupDriver != "none" && (!f.Rootless || f.CgroupVersion == 2) {
		f.Enforces = runtime.Enforced{Memory: info.MemoryLimit, PIDs: info.PidsLimit, CPUs: info.CPUCfsQuota}
	}
	if f.Enforces.Memory && !info.SwapLimit {
		f.Lacks = append(f.Lacks, "the kernel doesn't count swap against the limit of memory")
	}
	f.Lacks = append(f.Lacks, e.open()...)
	if profile, ok := options["seccomp"]; ok && profile != "unconfined" {
		f.Seccomp = "engine"
	}
	for _, lsm := range []string{"apparmor", "selinux"} {
		if _, ok := options[lsm]; ok {
			f.LSM = append(f.LSM, lsm)
		}
	}
	if _, remapped := options["userns"]; remapped {
		f.OwnUsers = runtime.KernelSince(info.KernelVersion, 5, 14) // RLIMIT_NPROC then counts in one
	}
	return f
}

// harden checks what was asked for against what the engine has, and says in the facts what comes of
// it.
func (c *connection) harden(info system.Info) error {
	h, f := c.d.cfg.Hardening, &c.facts
	if h.OCIRuntime != "" {
		if _, ok := info.Runtimes[h.OCIRuntime]; !ok {
			has := slices.Sorted(maps.Keys(info.Runtimes))
			err := fmt.Errorf("it has no OCI runtime %q; it has %s", h.OCIRuntime, strings.Join(has, ", "))
			return c.d.Unavailable(f.Endpoint, err, "name it under \"runtimes\" in the engine's daemon.json,"+
				" or set MCP_BRIDGE_OCI_RUNTIME to one that it has")
		}
		f.OCIRuntime = h.OCIRuntime
	}
	program := info.Runtimes[f.OCIRuntime].Path // any name may stand for it
	if program == "" {
		program = f.OCIRuntime
	}
	f.StartedBy(program)
	gVisor := path.Base(program) == runsc
	if gVisor { // the machine sees none of its processes; it keeps RLIMIT_NPROC for each container
		f.Enforces.PIDs, f.OwnUsers, f.Seccomp = false, true, ""
	}
	var why string
	_, hasSeccomp := securityOptions(info.SecurityOptions)["seccomp"]
	switch {
	case gVisor:
		why = "gVisor answers a container's system calls by itself and applies no seccomp profile to it"
	case !hasSeccomp:
		why = "docker or its kernel is without seccomp"
	case h.Seccomp != nil:
		f.Seccomp = h.Seccomp.Name
	}
	if why != "" && h.Seccomp != nil {
		why += fmt.Sprintf(", so %q is not set", h.Seccomp.Name)
	}
	if why != "" {
		f.Lacks = append(f.Lacks, why)
	}
	return nil
}

// runsc is gVisor's OCI runtime.
const runsc = "runsc"

// securityOptions reads "name=seccomp,profile=default"; the value is the profile, which most have
// none of.
func securityOptions(list []string) map[string]string {
	options := map[string]string{}
	for _, o := range list {
		var name, profile string
		for kv := range strings.SplitSeq(o, ",") {
			switch k, v, _ := strings.Cut(kv, "="); k {
			case "name":
				name = v
			case "profile":
				profile = v
			}
		}
		options[name] = profile
	}
	return options
}

// goarch returns GOARCH's name of what uname calls a machine.
func goarch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	case "i386", "i686":
		return "386"
	}
	return machine
}
