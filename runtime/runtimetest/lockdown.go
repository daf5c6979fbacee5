package runtimetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Probe is a program that prints, as JSON, what the place it runs in looks like from inside: a Report. Its arguments are
// those of Outside; without arguments, it tries no particular port and socket.
//
//go:embed probe.py
var Probe string

// Report is what Probe prints.
type Report struct {
	UID, GID   []int
	Groups     []int
	Caps       map[string]string
	NoNewPrivs string
	Seccomp    string
	Mounts     []Mount
	Writable   []string // directories in which a file could be made
	Executable []string // those of Writable from which a program could be run
	Namespaces map[string]string
	Interfaces []string
	Env        map[string]string
	Hostname   string
	TCP        string // what came of connecting to a listener of the host
	Abstract   string // the same, an abstract socket
	Devices    []string
	Rlimits    map[string][]int64
	Sizes      map[string]int64
	Calls      map[string]*string // null: the call went through
}

// Mount is a line of /proc/self/mountinfo, proc(5).
type Mount struct {
	Root, Path, Type, Source string
	Options, Super           []string
}

// ParseReport reads what Probe printed.
func ParseReport(t *testing.T, out string) Report {
	t.Helper()
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("the probe did not report: %v\n%s", err, out)
	}
	return r
}

// Outside opens what a container must not reach: a TCP listener on the loopback and an abstract socket. It returns Probe's
// two arguments and lasts until the test is over.
func Outside(t *testing.T) (port, abstract string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	name := fmt.Sprintf("mcp-bridge-outside-%d", os.Getpid())
	unix, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close() })
	return fmt.Sprint(tcp.Addr().(*net.TCPAddr).Port), name
}

// LockDown looks from inside a container at everything that the design's security brief lists and an engine can give.
func LockDown(t *testing.T, newTarget func(*testing.T) Target) {
	g := newTarget(t)
	facts, err := g.Driver.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	port, abstract := Outside(t)
	t.Setenv("MCP_BRIDGE_TEST_SECRET", "must-not-be-seen")
	spec := g.Spec(Probe, port, abstract)
	exit, out, errs := g.run(t, spec)
	if exit.Code != 0 {
		t.Fatalf("the probe ended with code %d: %s", exit.Code, errs)
	}
	r := ParseReport(t, out)
	want := []string{"PATH", "HOME", "LANG"}
	CheckReport(t, r, spec, append(want, engineEnv...))
	t.Run("limits that the engine enforces bite", func(t *testing.T) { limitsBite(t, g, facts) })
	t.Run("calls", func(t *testing.T) {
		// What every engine denies; the guest's own filter denies the rest, which podman's default profile lets through.
		for _, name := range []string{"bpf", "perf_event_open"} {
			CheckDenied(t, r, name)
		}
	})
}

// engineEnv is what engines add to the environment by themselves; none of it tells anything of the host.
var engineEnv = []string{"container", "HOSTNAME", "TERM", "LC_CTYPE"}

// CheckReport checks what must be so in every container, raw or with the guest in it. Env are the names that may be set.
func CheckReport(t *testing.T, r Report, s runtime.Spec, env []string) {
	t.Helper()
	check := func(name string, f func(t *testing.T)) { t.Helper(); t.Run(name, f) }
	check("user", func(t *testing.T) {
		ids := slices.Concat(r.UID, r.GID)
		if !slices.Equal(ids, []int{65534, 65534, 65534, 65534}) {
			t.Errorf("uid and gid are %v", ids)
		}
		if slices.Contains(r.Groups, 0) {
			t.Errorf("groups are %v", r.Groups)
		}
	})
	check("no capabilities", func(t *testing.T) {
		for name, set := range r.Caps {
			if strings.Trim(set, "0") != "" {
				t.Errorf("%s is %s", name, set)
			}
		}
		if len(r.Caps) != 5 {
			t.Errorf("got %d sets", len(r.Caps))
		}
	})
	check("no new privileges, seccomp", func(t *testing.T) {
		if r.NoNewPrivs != "1" || r.Seccomp != "2" {
			t.Errorf("NoNewPrivs %s, Seccomp %s; want 1, 2 (filter)", r.NoNewPrivs, r.Seccomp)
		}
	})
	check("namespaces", func(t *testing.T) { checkNamespaces(t, r) })
	check("network", func(t *testing.T) {
		if !slices.Equal(r.Interfaces, []string{"lo"}) {
			t.Errorf("interfaces are %v", r.Interfaces)
		}
		if r.TCP == "connected" || r.Abstract == "connected" {
			t.Errorf("the host was reached: tcp %s, abstract socket %s", r.TCP, r.Abstract)
		}
	})
	check("mounts", func(t *testing.T) { checkMounts(t, r) })
	check("writable places", func(t *testing.T) { checkWritable(t, r, s) })
	check("environment", func(t *testing.T) {
		for k, v := range r.Env {
			if !slices.Contains(env, k) {
				t.Errorf("%s=%q is in the environment", k, v)
			}
		}
	})
	check("hostname and devices", func(t *testing.T) {
		if host, err := os.Hostname(); err == nil && r.Hostname == host {
			t.Errorf("the hostname is the host's: %s", r.Hostname)
		}
		for _, d := range []string{"kvm", "fuse", "mem", "kmsg", "sda", "vda", "nvme0", "dri"} {
			if slices.Contains(r.Devices, d) {
				t.Errorf("/dev/%s is there", d)
			}
		}
	})
	check("rlimits", func(t *testing.T) {
		if got := r.Rlimits["nofile"]; !slices.Equal(got, []int64{s.Limits.NoFile, s.Limits.NoFile}) {
			t.Errorf("nofile is %v, want %d", got, s.Limits.NoFile)
		}
		if got := r.Rlimits["core"]; !slices.Equal(got, []int64{0, 0}) {
			t.Errorf("core is %v", got)
		}
	})
}

// CheckDenied checks that a call of Probe was refused before the kernel looked at its arguments.
func CheckDenied(t *testing.T, r Report, name string) {
	t.Helper()
	got, ok := r.Calls[name]
	switch {
	case !ok:
		t.Errorf("%s was not tried", name)
	case got == nil:
		t.Errorf("%s went through", name)
	case *got != "Operation not permitted" && *got != "Function not implemented":
		t.Errorf("%s was not refused but failed: %s", name, *got)
	}
}

func checkNamespaces(t *testing.T, r Report) {
	for _, name := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		host, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Namespaces[name]; got == "" || got == host {
			t.Errorf("%s namespace is %q, the host's %q", name, got, host)
		}
	}
}

// kernelTypes are mounts of the kernel's own making, with nothing of the host's files in them.
var kernelTypes = []string{"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "devtmpfs"}

// engineFiles are the only files of the engine's that may be mounted.
var engineFiles = []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/.dockerenv"}

// hostDevices are bound from the host's /dev in rootless containers, where they can't be made: runtime-spec, "default devices".
var hostDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/console"}

func checkMounts(t *testing.T, r Report) {
	for _, m := range r.Mounts {
		masked := strings.HasPrefix(m.Path, "/proc/") || strings.HasPrefix(m.Path, "/sys/")
		switch {
		case m.Path == "/":
			if !slices.Contains(m.Options, "ro") {
				t.Errorf("the root is not read-only: %v", m.Options)
			}
		case slices.Contains(engineFiles, m.Path), slices.Contains(hostDevices, m.Path):
		case slices.Contains(kernelTypes, m.Type):
		case masked && slices.Contains(m.Options, "ro"), masked && m.Type == "devtmpfs":
		default:
			t.Errorf("%s is mounted from %s (%s, root %s)", m.Path, m.Source, m.Type, m.Root)
		}
		if m.Type == "sysfs" && m.Path == "/sys" && !slices.Contains(m.Options, "ro") {
			t.Errorf("/sys is not read-only: %v", m.Options)
		}
	}
}

// checkWritable: only the spec's tmpfs, /dev/shm and the message queues take files, all sized and none executable.
func checkWritable(t *testing.T, r Report, s runtime.Spec) {
	sizes := map[string]int64{"/dev/shm": s.Limits.Shm}
	for _, m := range s.Tmpfs {
		sizes[m.Path] = m.Size
	}
	for _, place := range r.Writable {
		if _, ok := sizes[place]; !ok && place != "/dev/mqueue" {
			t.Errorf("%s is writable", place)
		}
	}
	for place, want := range sizes {
		if !slices.Contains(r.Writable, place) {
			t.Errorf("%s is not writable", place)
		}
		if got := r.Sizes[place]; got != want {
			t.Errorf("%s has %d bytes, want %d", place, got, want)
		}
		i := slices.IndexFunc(r.Mounts, func(m Mount) bool { return m.Path == place })
		if i < 0 {
			t.Errorf("%s is no mount", place)
			continue
		}
		for _, o := range []string{"nosuid", "nodev", "noexec"} {
			if !slices.Contains(r.Mounts[i].Options, o) {
				t.Errorf("%s is not mounted %s: %v", place, o, r.Mounts[i].Options)
			}
		}
	}
	if len(r.Executable) > 0 {
		t.Errorf("programs can be run from %v", r.Executable)
	}
}

// limitsBite uses up what the engine says it limits.
func limitsBite(t *testing.T, g Target, f runtime.Facts) {
	if f.Enforces.Memory {
		exit, _, _ := g.run(t, g.Spec("b = bytearray(1<<30)\nfor i in range(0, len(b), 4096): b[i] = 1"))
		if !exit.OOMKilled && exit.Code != 137 {
			t.Errorf("1 GiB could be used: %+v", exit)
		}
	}
	if f.Enforces.PIDs {
		_, out, _ := g.run(t, g.Spec("import os,time\nn=0\ntry:\n  while n < 1000:\n    if os.fork() == 0: time.sleep(30); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n < 100, end='')"))
		if out != "True" {
			t.Error("more than 100 processes could be started")
		}
	}
	_, out, _ := g.run(t, g.Spec("n=0\ntry:\n  with open('/tmp/f','wb') as f:\n    while True: n += f.write(bytes(1<<20)); f.flush()\nexcept OSError as e: print(e.errno, n <= 8<<20, end='')"))
	if out != "28 True" { // ENOSPC
		t.Errorf("filling /tmp: got %q, want ENOSPC at its size", out)
	}
}
