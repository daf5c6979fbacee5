//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containers/podman/v5/pkg/bindings/system"
)

// TestServiceKnowsNoPackages: dpkg, which podman's answer to what it is would wait for, is sent to
// a directory of ours that has no database.
func TestServiceKnowsNoPackages(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "podman")
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\nls -A \"$DPKG_ADMINDIR\" >'" + said + "' && echo \"$DPKG_ADMINDIR\" >>'" + said +
		"'\nexit 1\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DPKG_ADMINDIR", "/var/lib/dpkg")
	d := New(Config{Binary: binary, RuntimeDir: dir, AllowRootful: true})
	defer d.Close()
	if _, err := d.service.start(t.Context()); err == nil {
		t.Fatal("a service that has ended listens")
	}
	got, err := os.ReadFile(said)
	if err != nil || filepath.Dir(strings.TrimSpace(string(got))) != dir {
		t.Errorf("got %q, %v; want an empty directory in %s", got, err, dir)
	}
}

// TestInfoNamesNoPackages: a real one doesn't wait for dpkg.
func TestInfoNamesNoPackages(t *testing.T) {
	d := newDriver(t)
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.service.child == nil {
		t.Skipf("a podman service listens already at %s", c.facts.Endpoint)
	}
	info, err := system.Info(c.with(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := info.Host.Conmon.Package; strings.HasPrefix(p, "conmon_") || strings.HasPrefix(p, "conmon:") {
		t.Errorf("conmon's package is %q, as only dpkg can have said", p)
	}
}
