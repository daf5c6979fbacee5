//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containers/podman/v5/libpod/define"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// fakeAPI answers what a driver asks to get to know an engine.
func fakeAPI(t *testing.T, info map[string]any) (endpoint string) {
	t.Helper()
	return served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := asPodman(w, "4.3.1")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case strings.HasSuffix(r.URL.Path, "/info"):
			reply(http.StatusOK, info)
		default:
			http.NotFound(w, r)
		}
	}))
}

func info(rootless bool, cgroups string, controllers ...string) map[string]any {
	return map[string]any{
		"host": map[string]any{
			"security": map[string]any{"rootless": rootless}, "cgroupVersion": cgroups,
			"cgroupControllers": controllers,
			"ociRuntime":        map[string]any{"name": "crun"},
		},
		"version": map[string]any{"Version": "4.3.1"},
	}
}

// TestListedAsMachine: an engine with this machine's kernel is in no virtual machine, whatever the
// list of connections says.
func TestListedAsMachine(t *testing.T) {
	ours, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Skip("this machine's kernel isn't known: ", err)
	}
	for kernel, want := range map[string]bool{strings.TrimSpace(string(ours)): false, "6.6.32-machine": true} {
		about := &define.Info{Host: &define.HostInfo{Kernel: kernel}}
		e := endpoint{Endpoint: engine.Endpoint{URL: "unix:///run/podman/podman.sock", VM: true}}
		if f := facts(about, e, ""); f.Desktop != want || f.Remote != want {
			t.Errorf("%s: %+v", kernel, f)
		}
	}
}

func TestFacts(t *testing.T) {
	tests := []struct {
		name     string
		info     map[string]any
		rootful  bool // allowed
		want     runtime.Enforced
		refused  bool
		rootless bool
	}{
		{"rootless, cgroup v1", info(true, "v1"), false, runtime.Enforced{}, false, true},
		{"rootless, all delegated", info(true, "v2", "cpu", "io", "memory", "pids"), false,
			runtime.Enforced{Memory: true, PIDs: true, CPUs: true}, false, true},
		{"rootless, cpu not delegated", info(true, "v2", "memory", "pids"), false,
			runtime.Enforced{Memory: true, PIDs: true}, false, true},
		{"rootful", info(false, "v2", "memory"), false, runtime.Enforced{}, true, false},
		{"rootful, allowed", info(false, "v1"), true, runtime.Enforced{Memory: true, PIDs: true, CPUs: true},
			false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Config{Endpoint: fakeAPI(t, tt.info), AllowRootful: tt.rootful})
			defer d.Close()
			f, err := d.Facts(t.Context())
			var un *runtime.UnavailableError
			if tt.refused {
				if !errors.As(err, &un) || !strings.Contains(un.Hint(), "MCP_BRIDGE_ALLOW_ROOTFUL=true") {
					t.Errorf("got %v, want it refused with a hint", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Enforces != tt.want || f.Rootless != tt.rootless || f.Version != "4.3.1" || f.OCIRuntime != "crun" {
				t.Errorf("got %+v, want it to enforce %+v", f, tt.want)
			}
		})
	}
}

// TestEndpoints: what the user names comes first and alone; then the user's socket, the machine's,
// and podman's own list with its default first.
func TestEndpoints(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.Mkdir(filepath.Join(dir, "podman"), 0o700)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "podman", "podman.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stand := filepath.Join(dir, "stand-in")
	const list = `[{"Name":"a","URI":"ssh://a/podman.sock","Identity":"/k","IsMachine":false,"Default":false},
		{"Name":"b","URI":"ssh://b/podman.sock","IsMachine":true,"Default":true}]`
	if err := os.WriteFile(stand, []byte("#!/bin/sh\necho '"+list+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	urls := func(cfg Config) []string {
		var found []string
		for _, e := range New(cfg).endpoints(t.Context()) {
			if e.URL != "unix:///run/podman/podman.sock" { // the machine's own, if it is there
				found = append(found, e.URL)
			}
		}
		return found
	}
	if got, want := urls(Config{RuntimeDir: dir, Binary: stand}), []string{"unix://" + socket,
		"ssh://b/podman.sock", "ssh://a/podman.sock"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := urls(Config{Endpoint: "tcp://x:1", RuntimeDir: dir,
		Binary: stand}), []string{"tcp://x:1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestForeignSockets: a socket that the user has not named is passed over where others could have
// put it there, and the reason is told.
func TestForeignSockets(t *testing.T) {
	url := fakeAPI(t, info(true, "v2"))
	for _, tt := range []struct {
		name        string
		dir, podman os.FileMode
		want        string // in the reason; empty for none
	}{
		{"ours", 0o700, 0o700, ""},
		{"a shared runtime directory", 0o777 | os.ModeSticky, 0o700, "XDG_RUNTIME_DIR is ignored"},
		{"a shared directory below it", 0o700, 0o777, "podman can be written to by everybody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			place := filepath.Join(dir, "podman")
			if err := os.Mkdir(place, 0o700); err != nil {
				t.Fatal(err)
			}
			socket := filepath.Join(place, "podman.sock")
			if err := errors.Join(os.Link(strings.TrimPrefix(url, "unix://"), socket), os.Chmod(place, tt.podman),
				os.Chmod(dir, tt.dir)); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			d := New(Config{RuntimeDir: dir, Binary: "false", Log: slog.New(slog.NewTextHandler(&log, nil))})
			defer d.Close()
			found := d.endpoints(t.Context())
			if len(found) == 0 || found[0].URL != "unix://"+socket {
				t.Fatalf("got %v", found)
			}
			_, err := d.try(t.Context(), found[0])
			if tt.want == "" {
				if err != nil || len(engine.Refusals(found[:1])) > 0 || d.program.dir != dir {
					t.Errorf("got %v, %q", err, engine.Refusals(found))
				}
				return
			}
			var un *runtime.UnavailableError
			if !errors.As(err, &un) || !strings.Contains(un.Error(), tt.want) ||
				!strings.Contains(un.Hint(), "MCP_BRIDGE_RUNTIME=unix://"+socket) {
				t.Errorf("got %v, want %q and a hint", err, tt.want)
			}
			if why := engine.Refusals(found[:1]); len(why) != 1 || !strings.Contains(why[0], tt.want) {
				t.Errorf("the facts would say %q", why)
			}
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), dir) {
				t.Errorf("the log says %s", &log)
			}
			if ignored := d.program.dir == ""; ignored != (tt.dir != 0o700) {
				t.Errorf("XDG_RUNTIME_DIR is ignored for our own directories: %v", ignored)
			}
			t.Setenv("XDG_RUNTIME_DIR", dir)
			if withheld := !slices.ContainsFunc(d.program.environ(),
				func(kv string) bool {
					return strings.HasPrefix(kv,
						"XDG_RUNTIME_DIR=")
				}); withheld != (tt.dir != 0o700) {
				t.Errorf("XDG_RUNTIME_DIR is kept from podman: %v", withheld)
			}
			if tells := strings.Contains(d.none(nil, errors.New("it ended")).(*runtime.UnavailableError).Next,
				"set XDG_RUNTIME_DIR"); tells != (tt.dir != 0o700) {
				t.Errorf("where there is no engine, the next step names XDG_RUNTIME_DIR: %v", tells)
			}
			named := New(Config{Endpoint: "unix://" + socket, RuntimeDir: dir})
			defer named.Close()
			if _, err := named.Facts(t.Context()); err != nil {
				t.Errorf("one that the user names: %v", err)
			}
		})
	}
}

// TestNoPasswordInErrors: an endpoint may hold one.
func TestNoPasswordInErrors(t *testing.T) {
	d := New(Config{Endpoint: "tcp://user:hunter2@127.0.0.1:1"})
	defer d.Close()
	_, err := d.Facts(t.Context())
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
