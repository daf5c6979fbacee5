//go:build linux && remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// held is an engine whose API service can be killed exactly when a container was made and is not
// written down yet.
type held struct {
	t    *testing.T
	slow runtimetest.Slow
	d    *Driver
}

func newHeld(t *testing.T) *held {
	t.Helper()
	usual := newDriver(t)
	f, err := usual.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if usual.service.child == nil || f.Remote {
		t.Skip("the engine's service isn't the driver's own here")
	}
	oci, err := exec.LookPath(f.OCIRuntime)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{t: t, slow: runtimetest.NewSlow(t, oci)}
	program, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal(err)
	}
	podman := filepath.Join(t.TempDir(), "podman")
	if err := os.WriteFile(podman, fmt.Appendf(nil, "#!/bin/sh\nexec %s --runtime=%s \"$@\"\n", program,
		h.slow.Program), 0o700); err != nil {
		t.Fatal(err)
	}
	h.d = New(Config{RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), AllowRootful: os.Geteuid() == 0, Binary: podman})
	h.d.Times.Retry = 100 * time.Millisecond
	t.Cleanup(func() { h.d.Close() })
	return h
}

// made waits until the container is there, and returns its conmon.
func (h *held) made(is func(monitor) bool) monitor {
	h.t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.Tick(10 * time.Millisecond); !h.slow.Made(); {
		select {
		case <-tick:
		case <-deadline:
			h.t.Fatal("no container was made within a minute")
		}
	}
	for m := range monitors {
		if is(m) {
			if all, _ := m.container(); len(all) < 2 { // the OCI runtime, and what it has made
				h.t.Fatalf("conmon has %d processes, so that this test can't fail", len(all))
			}
			return m
		}
	}
	h.t.Fatal("there is no conmon, so that this test can't fail")
	return monitor{}
}

// killService kills the API service, and all that is in its group.
func (h *held) killService() {
	h.t.Helper()
	h.d.service.mu.Lock()
	s := h.d.service.child
	h.d.service.mu.Unlock()
	if err := syscall.Kill(-s.process.PID(), syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	<-s.process.Exited()
}

// ended wants a conmon and its container to be gone, and podman to know nothing of it.
func (h *held) ended(m monitor) {
	h.t.Helper()
	if all, _ := m.container(); m.there() || len(all) > 0 {
		h.t.Errorf("conmon is there: %v, with %d processes of the container", m.there(), len(all))
	}
	for _, root := range []string{"/run", os.Getenv("XDG_RUNTIME_DIR")} {
		if _, err := os.Stat(filepath.Join(root, filepath.Base(m.oci), m.id)); err == nil {
			h.t.Errorf("the OCI runtime still has the container in %s", root)
		}
	}
}

// TestServiceKilledBetweenCreateAndStart: nothing is left of a container whose service died when it
// was made and not written down, though podman has forgotten it. The bridge lives on, and so does
// the next run.
func TestServiceKilledBetweenCreateAndStart(t *testing.T) {
	for _, returned := range []bool{true, false} {
		t.Run(fmt.Sprintf("the OCI runtime has returned: %v", returned), func(t *testing.T) {
			h := newHeld(t)
			g := runtimetest.Target{Driver: h.d, Image: image, Owner: runtime.Self()}
			ended := make(chan error, 1)
			stdin, w := io.Pipe()
			defer w.Close()
			go func() {
				_, err := h.d.Run(t.Context(), g.Spec("pass"),
					runtime.Stdio{Stdin: stdin, Stdout: io.Discard, Stderr: io.Discard})
				ended <- err
			}()
			m := h.made(func(m monitor) bool {
				o, _ := runtime.OwnerNamed(m.name, g.Owner)
				return o.PID == os.Getpid()
			})
			h.killService()
			if returned {
				h.slow.Open(t)
			}
			var un *runtime.UnavailableError
			if err := <-ended; !errors.As(err, &un) {
				t.Errorf("got %v; want an *UnavailableError", err)
			}
			h.ended(m)
			if err := one(t, g); err != nil {
				t.Errorf("the next run: %v", err)
			}
			nothingLeft(t, h.d, g.Owner)
		})
	}
}

// TestReapForgotten: what a killed bridge and its killed service have left is found and removed,
// though podman doesn't list it; but not what belongs to a living bridge.
func TestReapForgotten(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		pid  int
		want int
	}{
		{"of a dead bridge", dead.Process.Pid, 1},
		{"of a living bridge", os.Getppid(), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHeld(t)
			c, err := h.d.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			owner := runtime.Self()
			owner.PID, owner.Started = tt.pid, ""
			g := runtimetest.Target{Driver: h.d, Image: image, Owner: owner}
			spec := generate(g.Spec("pass"), c, "")
			spec.Name = owner.NewName()
			made, err := containers.CreateWithSpec(c.with(t.Context()), spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			started := make(chan error, 1)
			go func() { started <- containers.Start(c.with(ctx), made.ID, nil) }()
			m := h.made(func(m monitor) bool { return m.id == made.ID })
			t.Cleanup(func() { h.d.endMonitors(context.WithoutCancel(t.Context()), made.ID) })
			h.killService()
			cancel()
			if err := <-started; err == nil {
				t.Fatal("it was started")
			}
			h.slow.Open(t)
			found, err := runtime.Reap(t.Context(), h.d, runtime.Self())
			if err != nil {
				t.Error(err)
			}
			found = mine(found, made.ID)
			if len(found) != tt.want {
				t.Fatalf("found %v, want %d", found, tt.want)
			}
			if tt.want == 0 {
				if !m.there() {
					t.Error("it was ended all the same")
				}
				return
			}
			if found[0].Name != spec.Name || found[0].Owner.PID != tt.pid {
				t.Errorf("found %+v", found[0])
			}
			h.ended(m)
		})
	}
}

// TestReapExternal: a container that is in podman's storage and not in its database, as a service
// leaves that is killed in between, is found by its name and removed, so that it holds no image. A
// living owner's stays. A second podman makes it, with a database of its own over the same storage.
func TestReapExternal(t *testing.T) {
	d := newDriver(t)
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.service.child == nil {
		t.Skip("the engine's service isn't the driver's own here, and podman's command may ask another")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "containers.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "[engine]\nstatic_dir = %q\n", filepath.Join(dir, "libpod")),
		0o600); err != nil {
		t.Fatal(err)
	}
	other := func(args ...string) {
		cmd := exec.Command("podman", args...)
		cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", cmd.Args, err, out)
		}
	}
	gone, living := runtime.Self(), runtime.Self()
	gone.PID, gone.Started = dead.Process.Pid, ""
	forgotten, kept := gone.NewName(), living.NewName()
	for _, name := range []string{forgotten, kept} {
		other("create", "--name", name, image, "true")
		t.Cleanup(func() { _ = exec.Command("podman", "rm", "--force", name).Run() }) // it may be gone
		if exec.Command("podman", "container", "exists", name).Run() == nil {
			t.Fatalf("podman's database has %s, so that this test can't fail", name)
		}
	}
	found, err := runtime.Reap(t.Context(), d, runtime.Self())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found,
		func(o runtime.Orphan) bool { return o.Name == forgotten && o.Owner.PID == gone.PID }) {
		t.Errorf("%s is not among %v", forgotten, found)
	}
	out, err := exec.Command("podman", "ps", "-a", "--external", "--format", "{{.Names}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.Fields(string(out)); slices.Contains(names, forgotten) || !slices.Contains(names, kept) {
		t.Errorf("podman lists %q; want it without %s and with %s", names, forgotten, kept)
	}
}

// mine leaves out what other tests on this machine have left.
func mine(all []runtime.Orphan, id string) (found []runtime.Orphan) {
	for _, o := range all {
		if o.ID == id {
			found = append(found, o)
		}
	}
	return found
}

// TestNoMonitor: only a conmon counts, whatever a process says of itself.
func TestNoMonitor(t *testing.T) {
	name := runtime.Self().NewName()
	sh := exec.Command("sh") // waits for its input, whatever its other arguments are
	sh.Args = []string{"/usr/bin/conmon", "-c", "read -r _", strings.Repeat("a", 64), "-n", name, "-c",
		strings.Repeat("a", 64)}
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	defer sh.Wait() //nolint:errcheck // only its end matters
	defer in.Close()
	seen := false
	for o := range guard.Processes {
		seen = seen || o.PID == sh.Process.Pid
		if m, ok := asMonitor(o); ok && m.name == name {
			t.Errorf("%v is taken for conmon", m.args)
		}
	}
	if !seen {
		t.Error("the process isn't seen at all")
	}
}

// TestForkOfMonitor: what conmon has forked and what hasn't become podman yet is spared, unlike the
// container's process. A shell stands for conmon, and its subshell for the fork.
func TestForkOfMonitor(t *testing.T) {
	program, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	conmon := filepath.Join(t.TempDir(), "conmon")
	if err := os.WriteFile(conmon, data, 0o700); err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("a", 64)
	sh := exec.Command(conmon, "-c", "exec 3<&0; cat <&3 & (read -r _ <&3); wait", id, "-n",
		runtime.Self().NewName(), "-c", id, "--exit-command", "podman")
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	defer sh.Wait() //nolint:errcheck // only its end matters
	defer in.Close()

	deadline := time.After(time.Minute)
	for tick := time.Tick(10 * time.Millisecond); ; {
		var m monitor
		var children []string
		for o := range guard.Processes {
			if found, ok := asMonitor(o); ok && o.PID == sh.Process.Pid {
				m = found
			} else if o.Parent == sh.Process.Pid {
				children = append(children, o.Program())
			}
		}
		// cat has been executed
		if len(children) == 2 && slices.Contains(children, "conmon") && children[0] != children[1] {
			all, ending := m.container()
			if len(all) != 1 || all[0].Program() == "conmon" || !ending {
				t.Errorf("the container's are %v, ending is %v; want cat alone, and true", all, ending)
			}
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("the shell has %v, so that this test can't fail", children)
		}
	}
}

// TestMonitorIsFound: the conmon of a container is told by its arguments, whatever podman's
// version; else what podman forgets would not be found either.
func TestMonitorIsFound(t *testing.T) {
	d := newDriver(t)
	f, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Remote {
		t.Skip("the engine is on another machine, as far as the driver knows")
	}
	g := runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}
	stdin, w := io.Pipe()
	looked := false
	look := writer(func([]byte) {
		defer w.Close() // ends the run
		looked = true
		for m := range monitors {
			o, _ := runtime.OwnerNamed(m.name, g.Owner)
			all, ending := m.container()
			if o.PID == os.Getpid() && o.Started == g.Owner.Started && len(all) > 0 && !ending {
				return
			}
		}
		t.Error("there is no conmon with the container's process")
	})
	if _, err := d.Run(t.Context(), g.Spec("import sys; print('up', flush=True); sys.stdin.read()"),
		runtime.Stdio{Stdin: stdin, Stdout: look, Stderr: io.Discard}); err != nil {
		t.Error(err)
	}
	if !looked {
		t.Error("it did not come up")
	}
}
