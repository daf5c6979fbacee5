package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// play runs a container on a fake engine, with standard input that gives nothing until the test is
// over.
func play(t *testing.T, ctx context.Context, d runtime.Driver) (runtime.Exit, string, error) {
	t.Helper()
	stdin, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	var out bytes.Buffer
	g := runtimetest.Target{Driver: d, Image: "i", Owner: runtime.Self()}
	exit, err := d.Run(ctx, g.Spec("pass"), runtime.Stdio{Stdin: stdin, Stdout: &out, Stderr: io.Discard})
	return exit, out.String(), err
}

// TestEngineThatDoesNotAnswer: whatever the engine leaves unanswered, a run that is cancelled ends,
// and what was created is removed.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	for _, at := range []string{"create", "attach", "start", "wait", "kill"} {
		t.Run(at, func(t *testing.T) {
			f := newFake()
			f.hang = at
			d := New(Config{Endpoint: f.listen(t)})
			d.Times.Cleanup = 100 * time.Millisecond
			defer d.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reached := f.reached
			if at == "kill" { // which is asked for only when the run ends
				reached = make(chan struct{})
				close(reached)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				<-reached
				if at == "kill" {
					f.await("POST start")
				}
				cancel()
			}()
			exit, _, err := play(t, ctx, d)
			<-done
			if err == nil {
				t.Errorf("got %+v and no error", exit)
			}
			if left := f.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// await returns once something was asked.
func (f *fake) await(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !slices.Contains(f.asked, what) {
		f.asks.Wait()
	}
}

// TestExit: the code and the kill for memory are right whether or not the engine has
// removed the container before it is asked.
func TestExit(t *testing.T) {
	tests := []struct {
		name         string
		forgets, oom bool
		want         runtime.Exit
	}{
		{"inspected", false, false, runtime.Exit{Code: 7}},
		{"gone already", true, false, runtime.Exit{Code: 7}},
		{"gone already, killed for memory", true, true, runtime.Exit{Code: 7, OOMKilled: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.instant, f.forgets, f.oom = true, tt.forgets, tt.oom
			d := New(Config{Endpoint: f.listen(t)})
			defer d.Close()
			exit, out, err := play(t, t.Context(), d)
			if err != nil || exit != tt.want || out != "out" {
				t.Errorf("got %+v, %q, %v; want %+v", exit, out, err, tt.want)
			}
			if left := f.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestRefusals: what the engine answers to a create, a start and a remove.
func TestRefusals(t *testing.T) {
	no := func(status int, message string) reply { return reply{status, map[string]string{"message": message}} }
	tests := []struct {
		name string
		at   string
		says reply
		want string // in the error
	}{
		{"image gone since", "POST create", no(http.StatusNotFound, "No such image: sha256:1234"), "can't be had"},
		{"name taken", "POST create", no(http.StatusConflict, "name is in use"), "name is in use"},
		{"bad parameter", "POST create", no(http.StatusBadRequest, "invalid seccomp profile"),
			"invalid seccomp profile"},
		{"no such program", "POST start", no(http.StatusBadRequest, "exec: \"nope\": not found"), "nope"},
		{"not attached", "POST attach", no(http.StatusConflict, "paused"), "attaching"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.answer = map[string]reply{tt.at: tt.says}
			d := New(Config{Endpoint: f.listen(t)})
			defer d.Close()
			_, _, err := play(t, t.Context(), d)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
			var missing *runtime.ImageError
			if tt.says.status == http.StatusNotFound && !errors.As(err, &missing) {
				t.Errorf("got %T, want an *ImageError", err)
			}
			if left := f.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestEngineDiesMeanwhile: a container that is running when its engine goes away is an error, not
// an exit, and is removed when the engine is back; also where the driver is one of those that an
// engine is chosen from.
func TestEngineDiesMeanwhile(t *testing.T) {
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprintf("chosen from %v", behind), func(t *testing.T) {
			f := newFake()
			dir := t.TempDir()
			s := &http.Server{Handler: f}
			go s.Serve(listenUnix(t, dir))
			d := New(Config{Endpoint: "unix://" + dir + "/docker.sock"})
			d.Times.Cleanup = time.Second
			var used runtime.Driver = d
			if behind {
				opened := 0
				open := func() runtime.Driver {
					if opened++; opened > 1 {
						t.Error("the driver that owes the removal was replaced")
					}
					return d
				}
				used = detect.New(detect.Config{Candidates: []detect.Candidate{{Name: "docker", Open: open}}})
			}
			defer used.Close()
			go func() {
				f.await("POST start")
				s.Close()
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, c := range f.names {
					c.die() // its attached connection was not the server's any more
				}
			}()
			exit, _, err := play(t, t.Context(), used)
			var un *runtime.UnavailableError
			if !errors.As(err, &un) {
				t.Errorf("got %+v, %v; want an *UnavailableError", exit, err)
			}
			if len(f.left()) != 1 {
				t.Fatalf("the engine has %v", f.left())
			}
			s = &http.Server{Handler: f}
			go s.Serve(listenUnix(t, dir))
			defer s.Close()
			if _, err := used.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.Settle()
			if left := f.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestWarningsAreLoggedOnce: docker leaves limits out with nothing but a warning.
func TestWarningsAreLoggedOnce(t *testing.T) {
	f := newFake()
	f.instant = true
	const warning = "Your kernel does not support swap limit capabilities"
	var log bytes.Buffer
	d := New(Config{Endpoint: f.listen(t), Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer d.Close()
	for range 2 {
		f.mu.Lock()
		f.names["given"] = &fakeContainer{dead: make(chan struct{})}
		f.answer = map[string]reply{"POST create": {http.StatusCreated,
			map[string]any{"Id": "given", "Warnings": []string{warning}}}}
		f.mu.Unlock()
		if _, _, err := play(t, t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), warning); n != 1 {
		t.Errorf("the log has the warning %d times:\n%s", n, log.String())
	}
}

// TestRequest is the lock-down as it is asked for.
func TestRequest(t *testing.T) {
	profile := &runtime.SeccompProfile{Name: "strict",
		JSON: []byte("{\n  \"defaultAction\": \"SCMP_ACT_ERRNO\"\n}")}
	f := newFake()
	f.instant, f.info = true, dockerInfo(true, "2")
	f.answer = map[string]reply{"GET json": {http.StatusOK, map[string]any{"Id": "sha256:1234",
		"Config": map[string]any{"Env": []string{"PATH=/image", "SECRET=1", "LANG=C"},
			"Volumes": map[string]any{"/srv": struct{}{}, "/tmp": struct{}{}}}}}}
	d := New(Config{Endpoint: f.listen(t), Hardening: runtime.Hardening{Seccomp: profile, OCIRuntime: "crun"}})
	defer d.Close()
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := runtimetest.Target{Driver: d, Image: "i", Owner: runtime.Self()}
	s := g.Spec("pass")
	s.Limits.CPUs = 64
	if _, err := c.Create(t.Context(), "n", s); err != nil {
		t.Fatal(err)
	}
	var got struct {
		container.Config
		HostConfig container.HostConfig
	}
	if err := json.Unmarshal([]byte(f.bodies["create"]), &got); err != nil {
		t.Fatal(err)
	}
	h := got.HostConfig
	for what, ok := range map[string]bool{
		"auto-remove":  h.AutoRemove,
		"read-only":    h.ReadonlyRootfs,
		"no network":   h.NetworkMode == "none" && got.NetworkDisabled,
		"capabilities": slices.Equal(h.CapDrop, []string{"ALL"}) && len(h.CapAdd) == 0 && !h.Privileged,
		"security": slices.Equal(h.SecurityOpt,
			[]string{"no-new-privileges", `seccomp={"defaultAction":"SCMP_ACT_ERRNO"}`}),
		"namespaces": h.IpcMode == "private" && h.CgroupnsMode == "private" && h.PidMode == "" &&
			h.UTSMode == "" && h.UsernsMode == "",
		"nothing else": len(h.Binds) == 0 && len(h.Mounts) == 0 && len(h.Devices) == 0 &&
			len(h.VolumesFrom) == 0 && len(h.GroupAdd) == 0,
		"log":         h.LogConfig.Type == "none",
		"OCI runtime": h.Runtime == "crun",
		"memory":      h.Memory == s.Limits.Memory && h.MemorySwap == s.Limits.Memory,
		"pids":        h.PidsLimit != nil && *h.PidsLimit == s.Limits.PIDs,
		"cpus":        h.NanoCPUs == 2e9, // all there are
		"environment": slices.Equal(got.Env, append(slices.Clone(s.Env), "HOSTNAME", "SECRET")),
		"image by id": got.Image == "sha256:1234",
		"user":        got.User == s.User,
		"input":       got.OpenStdin && got.StdinOnce && !got.Tty,
		"image volume": strings.HasPrefix(h.Tmpfs["/srv"], "ro,") &&
			strings.HasPrefix(h.Tmpfs["/tmp"], "rw,nosuid,nodev,noexec,size=8388608"),
		"health check":  got.Healthcheck != nil && slices.Equal(got.Healthcheck.Test, []string{"NONE"}),
		"owner's label": got.Labels[runtime.LabelInstance] == g.Owner.Instance,
	} {
		if !ok {
			t.Errorf("%s: %s", what, f.bodies["create"])
		}
	}
	if facts, err := d.Facts(t.Context()); err != nil || facts.Seccomp != "strict" ||
		facts.OCIRuntime != "crun" {
		t.Errorf("facts are %+v, %v", facts, err)
	}
}
