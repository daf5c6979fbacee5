//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// opened is what a containers.conf may hold that would open the wall, if podman had the last word.
const opened = `
[containers]
userns = %q
pidns = "host"
ipcns = "host"
utsns = "host"
cgroupns = "host"
netns = "host"
privileged = true
default_capabilities = ["CHOWN", "SYS_ADMIN", "SYS_PTRACE", "NET_RAW"]
default_ulimits = ["nofile=4096:4096", "core=1000000:1000000"]
env = ["LEAK=1"]
env_host = true
http_proxy = true
init = true
no_new_privileges = false
read_only = false
label = false
log_driver = "k8s-file"
pids_limit = 0
shm_size = "1g"
umask = "0000"
`

// TestSettingsDoNotOpen: what containers.conf says of namespaces, privileges, limits and
// environment doesn't count. (What it adds to a container, such as a volume, the guest sees and the
// run is refused: TestSettingsThatOpenTheWall of the whole program.)
func TestSettingsDoNotOpen(t *testing.T) {
	usual := newDriver(t)
	if f, err := usual.Facts(t.Context()); err != nil || usual.service.child == nil {
		t.Skipf("a podman service listens already, which has read its settings: %s, %v", f.Endpoint, err)
	}
	for _, userns := range []string{"host", "keep-id"} {
		if userns == "keep-id" && os.Geteuid() == 0 {
			continue // it is for ordinary users only
		}
		t.Run("userns "+userns, func(t *testing.T) {
			t.Setenv("CONTAINERS_CONF", settings(t, fmt.Sprintf(opened, userns)))
			t.Setenv("MCP_BRIDGE_TEST_SECRET", "must-not-be-seen")
			t.Setenv("HTTP_PROXY", "http://must-not-be-seen")
			g := runtimetest.Target{Driver: newDriver(t), Image: image, Owner: runtime.Self()}
			port, abstract := runtimetest.Outside(t)
			spec := g.Spec(runtimetest.Probe, port, abstract)
			var out, errs strings.Builder
			exit, err := g.Driver.Run(t.Context(), spec,
				runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if err != nil || exit.Code != 0 {
				t.Fatalf("%+v, %v: %s", exit, err, errs.String())
			}
			runtimetest.CheckReport(t, runtimetest.ParseReport(t, out.String()), spec,
				[]string{"PATH", "HOME", "LANG", "container", "HOSTNAME", "TERM", "LC_CTYPE"})
		})
	}
}

// TestSettingsWithoutSeccomp: a filter that the settings turn off is missed, and ours takes its
// place.
func TestSettingsWithoutSeccomp(t *testing.T) {
	usual := newDriver(t)
	if f, err := usual.Facts(t.Context()); err != nil || usual.service.child == nil {
		t.Skipf("a podman service listens already, which has read its settings: %s, %v", f.Endpoint, err)
	}
	t.Setenv("CONTAINERS_CONF", settings(t, "\n[containers]\nseccomp_profile = \"unconfined\"\n"))
	for _, tt := range []struct {
		name, want string
		profile    *runtime.SeccompProfile
		lacks      int
		mode       string // of the kernel
	}{
		{"none of ours", "", nil, 1, "0"},
		{"ours", "allow", &runtime.SeccompProfile{Name: "allow",
			JSON: []byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["bpf"],` +
				`"action":"SCMP_ACT_ERRNO"}]}`)}, 0, "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDriver(t)
			d.cfg.Hardening.Seccomp = tt.profile
			made, _ := d.Current() // without
			d.Drop(made)
			f, err := d.Facts(t.Context())
			if err != nil || f.Seccomp != tt.want || len(f.Lacks) != tt.lacks {
				t.Errorf("got %q, %q, %v; want %q and %d lacks", f.Seccomp, f.Lacks, err, tt.want, tt.lacks)
			}
			g := runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}
			var out strings.Builder
			exit, err := d.Run(t.Context(), g.Spec(
				"print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')), end='')"),
				runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
			if err != nil || exit.Code != 0 || out.String() != tt.mode {
				t.Errorf("got mode %q, %+v, %v; want %s", out.String(), exit, err, tt.mode)
			}
		})
	}
}

// settings is the user's own containers.conf with something added.
func settings(t *testing.T, more string) string {
	t.Helper()
	own := os.Getenv("CONTAINERS_CONF")
	if own == "" {
		own = filepath.Join(os.Getenv("HOME"), ".config", "containers", "containers.conf")
	}
	base, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "containers.conf")
	if err := os.WriteFile(path, append(base, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
