package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// imageRef is what the tests run: made from the distribution's packages where no registry is
// reachable.
const imageRef = "localhost/mcp-bridge/python:latest"

// newDriver is the docker at DOCKER_HOST, rootful or not. Without MCP_BRIDGE_TEST_RUNTIME=docker a
// machine that has none skips these tests; with it they fail.
func newDriver(t testing.TB, cfg Config) *Driver {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "docker" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not docker: no engine to test against")
	}
	cfg.RuntimeDir, cfg.AllowRootful = os.Getenv("XDG_RUNTIME_DIR"), true
	d := New(cfg)
	t.Cleanup(func() { d.Close() })
	_, has, err := d.FindImage(t.Context(), imageRef)
	if err != nil {
		t.Fatal(err)
	}
	if !has {
		t.Fatalf("there is no image %s: run mcp-bridge image build", imageRef)
	}
	return d
}

func target(d *Driver) func(*testing.T) runtimetest.Target {
	owner := runtime.Self()
	return func(t *testing.T) runtimetest.Target {
		return runtimetest.Target{Driver: d, Image: imageRef, Owner: owner,
			Count: func() int { return count(t, d, owner) }}
	}
}

func count(t *testing.T, d *Driver, owner runtime.Owner) int {
	t.Helper()
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	about := filters.NewArgs(filters.Arg("label", runtime.LabelInstance+"="+owner.Instance))
	list, err := c.cli.ContainerList(t.Context(), container.ListOptions{All: true, Filters: about})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestBehaviour(t *testing.T) { runtimetest.Behaviour(t, target(newDriver(t, Config{}))) }

func TestLayers(t *testing.T) { runtimetest.Layers(t, target(newDriver(t, Config{}))) }

func TestLockDown(t *testing.T) { runtimetest.LockDown(t, target(newDriver(t, Config{}))) }

// runProgram runs a spec with nothing on standard input.
func runProgram(t *testing.T, d *Driver, s runtime.Spec) (out string, exit runtime.Exit) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit, err := d.Run(t.Context(), s, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &stdout,
		Stderr: &stderr})
	if err != nil {
		t.Fatalf("Run: %v (stderr %q)", err, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Logf("stderr: %s", stderr.String())
	}
	return stdout.String(), exit
}

// TestImageBringsNothing: an image's volumes, variables, user, directory and health check stay
// outside, and so do docker's own variables.
func TestImageBringsNothing(t *testing.T) {
	d := newDriver(t, Config{})
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const ref = "localhost/mcp-bridge/test-brings:latest"
	made, err := c.cli.ContainerCreate(t.Context(), &container.Config{Image: imageRef, Cmd: []string{"true"}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.cli.ContainerCommit(t.Context(), made.ID,
		container.CommitOptions{Reference: ref, Changes: []string{
			"VOLUME /srv", "VOLUME /tmp", "VOLUME /opt/deep", "ENV SECRET=of-the-image", "ENV HOME=/elsewhere",
			"USER root", "WORKDIR /srv",
			"ENTRYPOINT [\"/bin/false\"]", "CMD [\"no\"]"}, Config: &container.Config{}})
	if rerr := c.cli.ContainerRemove(t.Context(), made.ID, container.RemoveOptions{Force: true}); err != nil ||
		rerr != nil {
		t.Fatal(err, rerr)
	}
	defer func() {
		if _, err := c.cli.ImageRemove(context.WithoutCancel(t.Context()), ref,
			image.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}()
	volumes := func() int {
		list, err := c.cli.VolumeList(t.Context(), volume.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Volumes)
	}
	before := volumes()
	g := target(d)(t)
	during := -1
	g.Image = ref
	spec := g.Spec(runtimetest.Probe)
	out := new(bytes.Buffer)
	exit, err := d.Run(t.Context(), spec, runtime.Stdio{Stdin: strings.NewReader(""), Stderr: io.Discard,
		Stdout: writerFunc(func(p []byte) { during = volumes(); out.Write(p) })})
	if err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	if during != before {
		t.Errorf("there were %d volumes before and %d while it ran", before, during)
	}
	r := runtimetest.ParseReport(t, out.String())
	if r.Env["SECRET"] != "" || r.Env["HOME"] != "/workspace" {
		t.Errorf("the environment is %v", r.Env)
	}
	if r.UID[0] != 65534 {
		t.Errorf("it runs as %v", r.UID)
	}
	for _, place := range r.Writable {
		if place == "/srv" || place == "/opt/deep" {
			t.Errorf("the image's volume %s is writable", place)
		}
	}
	where, _ := runProgram(t, d, g.Spec("import os; print(os.getcwd(), os.listdir('/srv'), end='')"))
	if where != "/ []" {
		t.Errorf("it runs in %s", where)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// TestAbandoned: when the bridge is gone, its connections with it, the container's input ends, so
// the container ends, and the engine removes it.
func TestAbandoned(t *testing.T) {
	d := newDriver(t, Config{})
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := target(d)(t)
	spec := g.Spec("import sys; print('up', flush=True); sys.stdin.read()")
	id, err := c.Create(t.Context(), "mcp-bridge-"+rand.Text(), spec)
	if err != nil {
		t.Fatal(err)
	}
	streams, err := c.cli.ContainerAttach(t.Context(), id,
		container.AttachOptions{Stream: true, Stdin: true, Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	gone, failed := c.cli.ContainerWait(ctx, id, container.WaitConditionNextExit)
	if err := c.cli.ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(streams.Reader, make([]byte, 8+3)); err != nil { // it is up
		t.Fatal(err)
	}
	streams.Close()
	select {
	case <-gone:
	case err := <-failed:
		t.Fatalf("it runs on: %v", err)
	}
	for g.Count() > 0 {
		if ctx.Err() != nil {
			t.Fatal("it has ended and is not removed")
		}
	}
}

// TestMemory: the engine's word for what the kernel killed when out of memory, also where the
// container is gone before it can be inspected.
func TestMemory(t *testing.T) {
	d := newDriver(t, Config{})
	f, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !f.Enforces.Memory {
		return // nothing is killed
	}
	g := target(d)(t)
	for name, program := range map[string]string{
		"the first process": "b = bytearray(1<<30)\nfor i in range(0, len(b), 4096): b[i] = 1",
		"a child": "import os\nif os.fork() == 0:\n  b = bytearray(1<<30)\n  for i in range(0, len(b)," +
			" 4096): b[i] = 1\nos.wait()",
	} {
		t.Run(name, func(t *testing.T) {
			if _, exit := runProgram(t, d, g.Spec(program)); !exit.OOMKilled {
				t.Errorf("%+v, want a kill for memory", exit)
			}
		})
	}
	t.Run("asked afterwards", func(t *testing.T) {
		c, err := d.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for program, want := range map[string]bool{"b = bytearray(1<<30)\nfor i in range(0, len(b), 4096): b[i] =" +
			" 1": true, "pass": false} {
			spec := g.Spec(program)
			var id string
			create := func(ctx context.Context, name string) (string, error) {
				made, err := c.Create(ctx, name, spec)
				id = made
				return made, err
			}
			std := runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
			exit, _, err := d.Attempt(t.Context(), c, spec, create, std)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.OutOfMemory(t.Context(), id); got != want || exit.OOMKilled != want {
				t.Errorf("%+v, and afterwards %v; want %v", exit, got, want)
			}
		}
	})
}

// TestSeccompProfile: a profile of ours takes the place of the engine's.
func TestSeccompProfile(t *testing.T) {
	const profile = `{
		"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]
	}`
	d := newDriver(t, Config{Hardening: runtime.Hardening{Seccomp: &runtime.SeccompProfile{Name: "ours",
		JSON: []byte(profile)}}})
	f, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := runProgram(t, d, target(d)(t).Spec(
		"import os\ntry: print(os.getpriority(os.PRIO_PROCESS, 0), end='')\nexcept OSError as e: print(e.errno,"+
			" end='')"))
	want := "95"
	if f.OCIRuntime == "runsc" { // which says so
		want = "0"
		if !strings.Contains(strings.Join(f.Lacks, " "), `"ours"`) {
			t.Errorf("lacks %v", f.Lacks)
		}
	}
	if out != want || (f.Seccomp == "ours") != (want == "95") {
		t.Errorf("the call gave %s, want %s; the facts say %q", out, want, f.Seccomp)
	}
}

// TestNoSuchOCIRuntime: it is said when the engine is found, not with the first container.
func TestNoSuchOCIRuntime(t *testing.T) {
	newDriver(t, Config{}) // skips, or the engine is there
	d := New(Config{AllowRootful: true, Hardening: runtime.Hardening{OCIRuntime: "none-such"}})
	defer d.Close()
	_, err := d.Facts(t.Context())
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !strings.Contains(un.Error(), "none-such") ||
		!strings.Contains(un.Error(), "runc") || un.Hint() == "" {
		t.Errorf("got %v", err)
	}
}

func TestUnavailable(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		t.Setenv(name, "")
	}
	t.Setenv("DOCKER_CONFIG", dir)
	tests := []struct {
		name     string
		endpoint string
	}{
		{"nothing listens at the endpoint", "unix://" + filepath.Join(dir, "docker.sock")},
		{"an endpoint that is no URL", "::"},
		{"an unknown scheme", "gopher://x"},
		{"a relative socket", "unix://docker.sock"},
		{"no host", "tcp://"},
		{"a password for ssh", "ssh://me:secret@host"},
		{"nothing listens at the port", "tcp://127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Config{Endpoint: tt.endpoint})
			defer d.Close()
			_, err := d.Facts(t.Context())
			var un *runtime.UnavailableError
			if !errors.As(err, &un) || un.Hint() == "" || un.Error() == "" {
				t.Fatalf("Facts: got %v, want an *UnavailableError with a hint", err)
			}
			t.Logf("%v; %s", un, un.Hint())
		})
	}
}
