package runtimetest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// properties hold in every container, raw or with the guest in it.
var properties = []property{
	{"user", checkUser},
	{"no capabilities", checkCapabilities},
	{"no new privileges", func(in *inspection) {
		if in.NoNewPrivs != "1" {
			in.problem("NoNewPrivs is %q, want 1", in.NoNewPrivs)
		}
	}},
	{"setuid programs are powerless", checkSetuid},
	{"seccomp filter", func(in *inspection) {
		if in.Seccomp != "2" {
			in.problem("Seccomp is %q, want 2, a filter", in.Seccomp)
		}
	}},
	{"namespaces", checkNamespaces},
	{"user namespace", checkUserNamespace},
	{"processes of its own only", func(in *inspection) {
		if len(in.Processes) == 0 || in.Processes[0] != 1 || len(in.Processes) > 8 {
			in.problem("the processes are %v", in.Processes)
		}
	}},
	{"System V memory of its own only", func(in *inspection) {
		if in.IPC != nil && strings.Count(*in.IPC, "\n") > 0 {
			in.problem("there are others' segments: %s", *in.IPC)
		}
	}},
	{"network", checkNetwork},
	{"no sockets in the file system", func(in *inspection) {
		if len(in.Sockets) > 0 {
			in.problem("there are sockets: %v", in.Sockets)
		}
	}},
	{"mounts", checkMounts},
	{"writable places", checkWritable},
	{"programs can't be run from where they can be written", func(in *inspection) {
		if len(in.Executable) > 0 {
			in.problem("programs can be run from %v", in.Executable)
		}
	}},
	{"masked paths", checkMasked},
	{"files that stay as they are", func(in *inspection) { in.unopened(in.Fixed) }},
	{"control groups are read-only", func(in *inspection) { in.unopened(in.Cgroups) }},
	{"control group namespace", checkCgroupPaths},
	{"environment", func(in *inspection) {
		for k, v := range in.Env {
			if !slices.Contains(in.env, k) {
				in.problem("%s=%q is in the environment", k, v)
			}
		}
	}},
	{"hostname", func(in *inspection) {
		if host, err := os.Hostname(); err == nil && in.Hostname == host {
			in.problem("the hostname is the host's: %s", in.Hostname)
		}
	}},
	{"devices", func(in *inspection) {
		for _, d := range in.Devices {
			if !slices.Contains(knownDevices, d) {
				in.problem("/dev/%s is there", d)
			}
		}
	}},
	{"devices can't be made", func(in *inspection) { in.denied([]string{"mknod_null", "mknod_disk"}) }},
	{"no disk can be opened", func(in *inspection) {
		if in.Disk == "" || in.Disk == "opened" {
			in.problem("making a disk's device and opening it: %q", in.Disk)
		}
	}},
	{"descriptor limit", func(in *inspection) {
		if got, want := in.Rlimits["nofile"], in.spec.Limits.NoFile; !slices.Equal(got, []int64{want, want}) {
			in.problem("nofile is %v, want %d", got, want)
		}
	}},
	{"no core dumps", func(in *inspection) {
		if got := in.Rlimits["core"]; !slices.Equal(got, []int64{0, 0}) {
			in.problem("core is %v", got)
		}
	}},
	{"no process is safer from want of memory than the first", checkOOM},
}

// engineProperties can be told only with an engine's facts.
var engineProperties = []property{
	{"no swap beyond the memory limit", checkSwap},
	{"LSM", checkLSM},
}

func checkUser(in *inspection) {
	if ids := slices.Concat(in.UID, in.GID); !slices.Equal(ids, []int{65534, 65534, 65534, 65534}) {
		in.problem("uid and gid are %v", ids)
	}
	if slices.Contains(in.Groups, 0) {
		in.problem("groups are %v", in.Groups)
	}
}

func checkCapabilities(in *inspection) {
	for name, set := range in.Caps {
		if strings.Trim(set, "0") != "" {
			in.problem("%s is %s", name, set)
		}
	}
	if len(in.Caps) != 5 {
		in.problem("only %d sets of capabilities can be seen", len(in.Caps))
	}
}

// checkSetuid: a program that gets more than its caller has is told so by the kernel, and its
// loader shows nothing.
func checkSetuid(in *inspection) {
	for path, told := range in.Setuid {
		if told["error"] == "" && (told["AT_EUID"] != "65534" || told["AT_EGID"] != "65534" ||
			told["AT_SECURE"] != "0") {
			in.problem("%s is told %v", path, told)
		}
	}
	if len(in.Setuid) == 0 {
		in.problem("the image has no setuid program to try")
	}
}

func checkNamespaces(in *inspection) {
	for _, name := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
		in.ownNamespace(name)
	}
}

func (in *inspection) ownNamespace(name string) {
	host, err := os.Readlink("/proc/self/ns/" + name)
	if err != nil {
		in.problem("%v", err)
	}
	if got := in.Namespaces[name]; got == "" || got == host {
		in.problem("the %s namespace is %q, the host's %q", name, got, host)
	}
}

// checkUserNamespace: a rootful engine's containers may be in the machine's own.
func checkUserNamespace(in *inspection) {
	if f := in.facts; f != nil && !f.Rootless && !f.OwnUsers && !f.Desktop {
		if host, err := os.Readlink("/proc/self/ns/user"); err == nil && in.Namespaces["user"] == host {
			in.note("the user namespace is the machine's: uid 65534 is the same outside, and root would be root")
			return
		}
	}
	in.ownNamespace("user")
}

func checkNetwork(in *inspection) {
	if !slices.Equal(in.Interfaces, []string{"lo"}) {
		in.problem("interfaces are %v", in.Interfaces)
	}
	if in.TCP == "connected" || in.Abstract == "connected" {
		in.problem("the host was reached: tcp %s, abstract socket %s", in.TCP, in.Abstract)
	}
	if in.Resolves != "gaierror" {
		in.problem("looking up a name gave %s", in.Resolves)
	}
}

// kernelTypes are mounts of the kernel's own making, with nothing of the host's files in them.
var kernelTypes = []string{"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "devtmpfs"}

// engineFiles are the only files of the engine's that may be mounted.
var engineFiles = []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv",
	"/.dockerenv", "/root/.termination"}

// hostDevices are bound from the host's /dev in rootless containers, where they can't be made:
// runtime-spec, "default devices".
var hostDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	"/dev/console"}

var knownDevices = []string{"null", "zero", "full", "random", "urandom", "tty", "console", "core", "fd",
	"mqueue", "ptmx", "pts", "shm", "stderr", "stdin", "stdout"}

func checkMounts(in *inspection) {
	for _, m := range in.Mounts {
		masked := strings.HasPrefix(m.Path, "/proc/") || strings.HasPrefix(m.Path, "/sys/")
		switch {
		case m.Path == "/":
			if !slices.Contains(m.Options, "ro") {
				in.problem("the root is not read-only: %v", m.Options)
			}
		case slices.Contains(engineFiles, m.Path), slices.Contains(hostDevices, m.Path):
		case slices.Contains(kernelTypes, m.Type):
		case masked && slices.Contains(m.Options, "ro"), masked && m.Type == "devtmpfs":
		default:
			in.problem("%s is mounted from %s (%s, root %s)", m.Path, m.Source, m.Type, m.Root)
		}
		if m.Type == "sysfs" && m.Path == "/sys" && !slices.Contains(m.Options, "ro") {
			in.problem("/sys is not read-only: %v", m.Options)
		}
	}
}

// checkWritable: only the spec's tmpfs, /dev/shm and the message queues take files, all sized and
// none executable.
func checkWritable(in *inspection) {
	places := append(slices.Clone(in.spec.Tmpfs), runtime.Tmpfs{Path: "/dev/shm", Size: in.spec.Limits.Shm})
	for _, place := range in.Writable {
		below := func(p runtime.Tmpfs) bool { return place == p.Path || strings.HasPrefix(place, p.Path+"/") }
		if place != "/dev/mqueue" && !slices.ContainsFunc(places, below) {
			in.problem("%s is writable", place)
		}
	}
	for _, p := range places {
		if !slices.Contains(in.Writable, p.Path) {
			in.problem("%s is not writable", p.Path)
		}
		if got := in.Sizes[p.Path]; got != p.Size {
			in.problem("%s has %d bytes, want %d", p.Path, got, p.Size)
		}
		i := slices.IndexFunc(in.Mounts, func(m Mount) bool { return m.Path == p.Path })
		if i < 0 {
			in.problem("%s is no mount", p.Path)
			continue
		}
		for _, o := range []string{"nosuid", "nodev", "noexec"} {
			if !slices.Contains(in.Mounts[i].Options, o) {
				in.problem("%s is not mounted %s: %v", p.Path, o, in.Mounts[i].Options)
			}
		}
	}
}

// unmasked are places of the kernel's that Docker leaves open, and podman doesn't: names and
// numbers, no contents.
var unmasked = []string{"/sys/dev/block"}

func checkMasked(in *inspection) {
	for path, n := range in.Masked {
		if n != nil && *n > 0 && slices.Contains(unmasked, path) {
			in.note("%s shows which disks the machine has", path)
			continue
		}
		if n != nil && *n > 0 {
			in.problem("%s can be read", path)
		}
	}
	if len(in.Masked) == 0 {
		in.problem("nothing was tried")
	}
}

// unopened checks that none of what was tried could be opened to write or made.
func (in *inspection) unopened(tried map[string]string) {
	for path, came := range tried {
		if came == "opened" || came == "made" {
			in.problem("%s was %s", path, came)
		}
	}
	if len(tried) == 0 {
		in.problem("nothing was tried")
	}
}

// checkCgroupPaths: in a namespace of its own the container is at the root of each hierarchy, and
// sees no name from outside.
func checkCgroupPaths(in *inspection) {
	for _, p := range in.CgroupPaths {
		if p != "/" {
			in.problem("a control group's path is %s", p)
		}
	}
}

// checkSwap reads the limits where the container can see its control group.
func checkSwap(in *inspection) {
	if !in.facts.Enforces.Memory {
		in.note("the engine doesn't limit memory; the guest's watch counts what is in memory only")
		return
	}
	want := fmt.Sprint(in.spec.Limits.Memory)
	told := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	v1, v2 := in.Memory["v1"], in.Memory["v2"]
	switch {
	case len(v2) == 2 && told(v2[0]) != "":
		if told(v2[0]) != want || told(v2[1]) != "0" && v2[1] != nil {
			in.problem("memory is %s, swap %s, want %s and 0", told(v2[0]), told(v2[1]), want)
		}
	case len(v1) == 2 && told(v1[0]) != "":
		if told(v1[0]) != want || told(v1[1]) != want && v1[1] != nil {
			in.problem("memory is %s, with swap %s, want %s", told(v1[0]), told(v1[1]), want)
		}
	default:
		in.note("a container sees nothing of its control groups; that the memory limit holds is tested by " +
			"using it" +
			" up")
	}
	if len(v1) == 2 && len(v2) == 2 && v1[1] == nil && v2[1] == nil && strings.Count(told(in.Swaps), "\n") > 0 {
		in.note("this kernel doesn't count swap by control group, and the machine has some")
	}
}

// checkLSM: what the engine says it applies must be seen inside.
func checkLSM(in *inspection) {
	label := ""
	if in.Label != nil {
		label = *in.Label
	}
	switch {
	case len(in.facts.LSM) == 0:
		in.note("neither AppArmor nor SELinux confines containers here")
	case slices.Contains(in.facts.LSM, "apparmor") && (label == "" || strings.HasPrefix(label, "unconfined")):
		in.problem("AppArmor's label is %q", label)
	case slices.Contains(in.facts.LSM, "selinux") && (label == "" || strings.Contains(label, "unconfined")):
		in.problem("SELinux's label is %q", label)
	}
}

// checkOOM: the engine sets the least value that a process can get, if it may.
func checkOOM(in *inspection) {
	if !in.LowersOOM {
		return
	}
	const resource = 1 << 24 // CAP_SYS_RESOURCE, capabilities(7)
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		_, rest, _ := strings.Cut(string(b), "\nCapBnd:\t")
		line, _, _ := strings.Cut(rest, "\n")
		if set, err := strconv.ParseUint(line, 16, 64); err == nil && set&resource == 0 {
			in.note("this machine's root lacks CAP_SYS_RESOURCE, so it can't set how low a container's" +
				" oom_score_adj may get")
			return
		}
	}
	in.problem("a process can get an oom_score_adj lower than the first one's")
}
