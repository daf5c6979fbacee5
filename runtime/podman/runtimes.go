package podman

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// hasRuntime looks for the OCI runtime before our own service is started with it.
func (d *Driver) hasRuntime(ctx context.Context) error {
	want := d.cfg.Hardening.OCIRuntime
	if want == "" || installed(want) || d.knowsRuntime(ctx, want) {
		return nil
	}
	have := slices.DeleteFunc(slices.Clone(ociRuntimes), func(name string) bool { return !installed(name) })
	return d.Unavailable("", fmt.Errorf("there is no OCI runtime %s; there are: %s", want,
		cmp.Or(strings.Join(have, ", "), "none")), obtain(want))
}

// obtain returns the next step where an OCI runtime is missing.
func obtain(name string) string {
	switch {
	case name == "crun" || name == "runc":
		return "install " + name + " (Debian: sudo apt install " + name +
			"), or choose another: MCP_BRIDGE_OCI_RUNTIME"
	case slices.Contains(ociRuntimes, name):
		return "install " + name + ", or choose another: MCP_BRIDGE_OCI_RUNTIME"
	}
	return "set MCP_BRIDGE_OCI_RUNTIME to one that there is, or unset it for the engine's choice"
}

// ociRuntimes are those that podman looks for by itself.
var ociRuntimes = []string{"crun", "runc", "runsc", "krun", "kata-runtime", "youki"}

// installed says whether a program is in one of the places where podman looks.
func installed(name string) bool {
	_, ok := installedAt(name)
	return ok
}

func installedAt(name string) (path string, ok bool) {
	if path, err := exec.LookPath(name); err == nil {
		return path, true
	}
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/sbin", "/bin",
		"/run/current-system/sw/bin"} {
		path := filepath.Join(dir, filepath.Base(name))
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && !filepath.IsAbs(name) {
			return path, true
		}
	}
	return "", false
}

// knowsRuntime asks podman's own program, which has read its settings.
func (d *Driver) knowsRuntime(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.cfg.Binary, "--runtime="+name, "info", "--format",
		"{{.Host.OCIRuntime.Name}}")
	cmd.Env = d.environ()
	cmd.WaitDelay = time.Second
	return cmd.Run() == nil
}

// noRuntime words an engine's complaint about an OCI runtime that it hasn't got; nil for any other.
func (d *Driver) noRuntime(c *connection, err error) error {
	want := d.cfg.Hardening.OCIRuntime
	if err == nil || want == "" || !strings.Contains(err.Error(), "OCI runtime") ||
		!strings.Contains(err.Error(), "not available") {
		return nil
	}
	return d.Unavailable(c.facts.Endpoint,
		fmt.Errorf("it has no OCI runtime %s: %s", want, runtime.OneLine(err.Error())),
		"install it there, or choose another: MCP_BRIDGE_OCI_RUNTIME")
}
