//go:build unix && remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// foreign is an API service that isn't the driver's: it comes and goes as the test likes.
type foreign struct {
	t       *testing.T
	socket  string
	process *guard.Process
}

// newForeign starts a service and a driver that has been told of it.
func newForeign(t *testing.T) (*foreign, runtimetest.Target, *Driver) {
	t.Helper()
	usual, err := newDriver(t).Facts(t.Context()) // there is an engine, with the image
	if err != nil {
		t.Fatal(err)
	}
	here, err := exec.Command("podman", "version", "--format", "{{.Client.Version}}").Output()
	if got := strings.TrimSpace(string(here)); err != nil || got != usual.Version {
		t.Skipf("the podman program here, %s, is not that of the engine, %s, so it can't be started and ended:"+
			" %v", got, usual.Version, err)
	}
	f := &foreign{t: t, socket: filepath.Join(t.TempDir(), "podman.sock")}
	f.start()
	t.Cleanup(func() { f.end(syscall.SIGKILL) })
	d := New(Config{Endpoint: "unix://" + f.socket, AllowRootful: os.Geteuid() == 0})
	d.Times.Silence, d.Times.Retry = 500*time.Millisecond, 100*time.Millisecond
	t.Cleanup(func() { d.Close() })
	return f, runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}, d
}

func (f *foreign) start() {
	f.t.Helper()
	cmd := exec.Command("podman", "system", "service", "--time=0", "unix://"+f.socket)
	// it would make it a client
	cmd.Env = slices.DeleteFunc(os.Environ(),
		func(kv string) bool { return strings.HasPrefix(kv, "CONTAINER_HOST=") })
	var err error
	if f.process, err = guard.Launch(cmd, nil); err != nil {
		f.t.Fatal(err)
	}
	for range time.Tick(10 * time.Millisecond) {
		if conn, err := net.Dial("unix", f.socket); err == nil {
			conn.Close()
			return
		}
		select {
		case <-f.process.Exited():
			f.t.Fatal("podman system service ended by itself")
		default:
		}
	}
}

func (f *foreign) signal(s syscall.Signal) {
	f.t.Helper()
	if err := syscall.Kill(f.process.PID(), s); err != nil {
		f.t.Error(err)
	}
}

// end kills the service and takes its socket away, as systemd does.
func (f *foreign) end(s syscall.Signal) {
	if f.process == nil {
		return
	}
	f.signal(s)
	f.process.End(time.Second)
	f.process = nil
	os.Remove(f.socket)
}

// one runs a small program.
func one(t *testing.T, g runtimetest.Target) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := g.Driver.Run(ctx, g.Spec("print(1)"),
		runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
	if err == nil && exit.Code != 0 {
		t.Errorf("got %+v", exit)
	}
	return err
}

// fails wants the error of an engine that is gone, before long.
func fails(t *testing.T, g runtimetest.Target, within time.Duration) {
	t.Helper()
	begun := time.Now()
	err := one(t, g)
	took := time.Since(begun)
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || un.Hint() == "" {
		t.Errorf("got %v; want an *UnavailableError with a hint", err)
	}
	if took > within {
		t.Errorf("it took %v, want at most %v", took, within)
	}
	t.Logf("after %v: %v", took, err)
}

// nothingLeft waits for the last container to go.
func nothingLeft(t *testing.T, d *Driver, owner runtime.Owner) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.Tick(50 * time.Millisecond); ; {
		n := count(t, d, owner)
		if n == 0 {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%d containers are left after a minute", n)
		}
	}
}

// TestEngineComesAndGoes: a socket that is gone fails a run at once, and one that is back serves
// it.
func TestEngineComesAndGoes(t *testing.T) {
	f, g, d := newForeign(t)
	for range 2 {
		if err := one(t, g); err != nil {
			t.Fatal(err)
		}
		f.end(syscall.SIGTERM)
		for range 2 { // with a connection that was, and without
			fails(t, g, time.Second)
		}
		f.start()
	}
	if err := one(t, g); err != nil {
		t.Error(err)
	}
	nothingLeft(t, d, g.Owner)
}

// TestEngineThatStops: an engine that answers nothing any more is found out, and used again when it
// goes on.
func TestEngineThatStops(t *testing.T) {
	needTime(t)
	f, g, d := newForeign(t)
	if err := one(t, g); err != nil {
		t.Fatal(err)
	}
	f.signal(syscall.SIGSTOP)
	fails(t, g, 5*time.Second)
	f.signal(syscall.SIGCONT)
	if err := one(t, g); err != nil {
		t.Error(err)
	}
	nothingLeft(t, d, g.Owner)

	ctx, cancel := context.WithCancel(t.Context())
	var at time.Time
	up := writer(func([]byte) { f.signal(syscall.SIGSTOP); at = time.Now(); cancel() })
	stdin, w := io.Pipe()
	defer w.Close()
	_, err := d.Run(ctx, g.Spec("import sys; print('up', flush=True); sys.stdin.read()"),
		runtime.Stdio{Stdin: stdin, Stdout: up, Stderr: io.Discard})
	if err == nil {
		t.Error("a run on an engine that is stopped has ended well")
	}
	if took := time.Since(at); took > 10*time.Second {
		t.Errorf("it took %v from cancel to the run's end", took)
	} else {
		t.Logf("%v from cancel: %v", took, err)
	}
	f.signal(syscall.SIGCONT)
	nothingLeft(t, d, g.Owner)
}

// TestEngineKilledInTheMiddle: the run says what happened, and its container goes.
func TestEngineKilledInTheMiddle(t *testing.T) {
	f, g, d := newForeign(t)
	up := writer(func([]byte) { f.end(syscall.SIGKILL) })
	stdin, w := io.Pipe()
	defer w.Close()
	begun := time.Now()
	_, err := d.Run(t.Context(), g.Spec("import sys; print('up', flush=True); sys.stdin.read()"),
		runtime.Stdio{Stdin: stdin, Stdout: up, Stderr: io.Discard})
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !strings.Contains(err.Error(), "went away") {
		t.Errorf("got %v; want it to say that the engine went away", err)
	}
	t.Logf("after %v: %v", time.Since(begun), err)
	f.start()
	nothingLeft(t, d, g.Owner)
	if err := one(t, g); err != nil {
		t.Error(err)
	}
}

type writer func([]byte)

func (f writer) Write(p []byte) (int, error) { f(p); return len(p), nil }

// TestTunnelOfALostEngine: an engine that goes away while the driver is being closed leaves no ssh
// behind.
func TestTunnelOfALostEngine(t *testing.T) {
	d := New(Config{RuntimeDir: t.TempDir()})
	tunnel, err := d.program.launch("ssh", func(string) *exec.Cmd { return exec.Command("sleep", "60") })
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{d: d, api: api{t.Context()}, tunnel: tunnel}
	d.Swap(nil, c)
	d.Go(func() {
		<-d.Life().Done() // Close has begun
		d.Drop(c)
	})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if tunnel.alive() {
		t.Error("it still runs")
		tunnel.stop()
	}
}
