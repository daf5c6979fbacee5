package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// alone takes docker's variables out of the test's environment and gives it a home of its own.
func alone(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
		"DOCKER_API_VERSION", "DOCKER_CONFIG"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	return home
}

func listenUnix(t *testing.T, dir string) net.Listener {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeContext(t *testing.T, dir, name, meta string) (id string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	id = hex.EncodeToString(sum[:])
	write(t, filepath.Join(dir, "contexts", "meta", id, "meta.json"), meta)
	return id
}

// TestEndpoints: what the user names comes alone; otherwise docker's current context, then the
// sockets, the rootful one last.
func TestEndpoints(t *testing.T) {
	home := alone(t)
	run := filepath.Join(home, "run")
	for _, dir := range []string{run, filepath.Join(home, ".docker", "run")} {
		defer listenUnix(t, dir).Close()
	}
	write(t, filepath.Join(home, ".docker", "config.json"), `{"currentContext": "there"}`)
	writeContext(t, filepath.Join(home, ".docker"), "there",
		`{"Name":"there","Endpoints":{"docker":{"Host":"ssh://there"}}}`)
	id := writeContext(t, filepath.Join(home, ".docker"), "safe",
		`{"Name":"safe","Endpoints":{"docker":{"Host":"tcp://safe:2376","SkipTLSVerify":false}}}`)
	write(t, filepath.Join(home, ".docker", "contexts", "tls", id, "docker", "ca.pem"), "x")
	usual := []string{"unix://" + run + "/docker.sock", "unix://" + home + "/.docker/run/docker.sock"}
	tests := []struct {
		name     string
		env      map[string]string
		endpoint string
		want     []string
		only     bool
	}{
		{"context, then sockets", nil, "", append([]string{"ssh://there"}, usual...), false},
		{"DOCKER_HOST", map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_CONTEXT": "safe"}, "",
			[]string{"tcp://h:1"}, true},
		{"named", map[string]string{"DOCKER_HOST": "tcp://h:1"}, "unix:///x", []string{"unix:///x"}, true},
		{"DOCKER_CONTEXT", map[string]string{"DOCKER_CONTEXT": "safe"}, "", []string{"tcp://safe:2376"}, true},
		{"the default context", map[string]string{"DOCKER_CONTEXT": "default"}, "", usual, false},
		{"another configuration", map[string]string{"DOCKER_CONFIG": home + "/none"}, "", usual, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			d := New(Config{RuntimeDir: run, Endpoint: tt.endpoint})
			defer d.Close()
			f, err := d.endpoints()
			var got []string
			for _, e := range f.list {
				if e.URL != "unix:///var/run/docker.sock" { // of the machine that the test runs on
					got = append(got, e.URL)
				}
				if e.secure != (e.URL == "tcp://safe:2376") || e.VM != strings.Contains(e.URL, ".docker") {
					t.Errorf("%s: secure %v, vm %v", e.URL, e.secure, e.VM)
				}
			}
			if err != nil || !slices.Equal(got, tt.want) || f.only != tt.only {
				t.Errorf("got %v (only %v), %v; want %v", got, f.only, err, tt.want)
			}
		})
	}
}

// TestBadContexts: a context that can't be read is named, with the command that lists them.
func TestBadContexts(t *testing.T) {
	tests := []struct{ name, config, meta string }{
		{"no such context", `{"currentContext": "other"}`, `{}`},
		{"no docker in it", `{"currentContext": "here"}`, `{"Name":"here","Endpoints":{"kubernetes":{}}}`},
		{"no JSON in it", `{"currentContext": "here"}`, `{`},
		{"no JSON in the configuration", `{`, `{}`},
		{"a configuration without an end", strings.Repeat(" ", maxFile+1), `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := alone(t)
			write(t, filepath.Join(home, ".docker", "config.json"), tt.config)
			writeContext(t, filepath.Join(home, ".docker"), "here", tt.meta)
			d := New(Config{})
			defer d.Close()
			_, err := d.Facts(t.Context())
			var un *runtime.UnavailableError
			if !errors.As(err, &un) || !strings.Contains(un.Hint(), "docker context ls") {
				t.Errorf("got %v, want an *UnavailableError with a hint", err)
			}
		})
	}
}

// TestExposedSettings: what others could have written into docker's files chooses no engine, and
// the command that mends it is told.
func TestExposedSettings(t *testing.T) {
	for _, exposed := range []string{"config.json", "contexts/meta"} {
		t.Run(exposed, func(t *testing.T) {
			home := alone(t)
			dir := filepath.Join(home, ".docker")
			write(t, filepath.Join(dir, "config.json"), `{"currentContext": "there"}`)
			writeContext(t, dir, "there", `{"Name":"there","Endpoints":{"docker":{"Host":"unix:///none"}}}`)
			path := filepath.Join(dir, filepath.FromSlash(exposed))
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
			d := New(Config{})
			defer d.Close()
			_, err := d.Facts(t.Context())
			var un *runtime.UnavailableError
			if !errors.As(err, &un) || !strings.Contains(err.Error(), path+" can be written to by everybody") ||
				!strings.Contains(un.Hint(), "chmod o-w "+path) {
				t.Errorf("got %v", err)
			}
			if _, err := d.settings.login(t.Context(), "docker.io"); (err != nil) != (exposed == "config.json") {
				t.Errorf("its logins: %v", err)
			}
		})
	}
}

// with is info with some of it changed.
func with(info map[string]any, kv ...any) map[string]any {
	for i := 0; i < len(kv); i += 2 {
		info[kv[i].(string)] = kv[i+1]
	}
	return info
}

func TestFacts(t *testing.T) {
	all := runtime.Enforced{Memory: true, PIDs: true, CPUs: true}
	tests := []struct {
		name    string
		info    map[string]any
		rootful bool // allowed
		refused bool
		want    runtime.Facts // of the fields below
	}{
		{"rootless, cgroup v1", dockerInfo(true, "1"), false, false,
			runtime.Facts{Engine: "docker", Rootless: true, CgroupVersion: 1, Arch: "amd64", OCIRuntime: "runc",
				Seccomp: "engine"}},
		{"rootless, cgroup v2", with(dockerInfo(true, "2"), "CpuCfsQuota", false, "Architecture", "aarch64"), false,
			false, runtime.Facts{Engine: "docker", Rootless: true, CgroupVersion: 2, Arch: "arm64", OCIRuntime: "runc",
				Seccomp: "engine", Enforces: runtime.Enforced{Memory: true, PIDs: true}}},
		{"rootless, cgroup v2, no driver", with(dockerInfo(true, "2"), "CgroupDriver", "none"), false, false,
			runtime.Facts{Engine: "docker", Rootless: true, CgroupVersion: 2, Arch: "amd64", OCIRuntime: "runc",
				Seccomp: "engine"}},
		{"rootful", dockerInfo(false, "2"), false, true, runtime.Facts{}},
		{"rootful, allowed", dockerInfo(false, "1"), true, false,
			runtime.Facts{Engine: "docker", CgroupVersion: 1, Arch: "amd64", OCIRuntime: "runc", Seccomp: "engine",
				Enforces: all}},
		{"Docker Desktop", with(dockerInfo(false, "2"), "OperatingSystem", "Docker Desktop"), false, false,
			runtime.Facts{Engine: "docker", CgroupVersion: 2, Arch: "amd64", OCIRuntime: "runc", Seccomp: "engine",
				Enforces: all, Desktop: true, Remote: true}},
		{"users remapped", with(dockerInfo(false, "2"), "SecurityOptions",
			[]string{"name=apparmor", "name=userns", "name=seccomp,profile=unconfined"}), true, false,
			runtime.Facts{Engine: "docker", CgroupVersion: 2, Arch: "amd64", OCIRuntime: "runc", Enforces: all,
				OwnUsers: true, LSM: []string{"apparmor"}}},
		{"gVisor", with(dockerInfo(true, "2"), "DefaultRuntime", "sentry"), false, false,
			runtime.Facts{Engine: "docker", Rootless: true, CgroupVersion: 2, Arch: "amd64", OCIRuntime: "sentry",
				Enforces: runtime.Enforced{Memory: true, CPUs: true}, OwnUsers: true,
				OwnKernel: true, OwnDevices: []string{"/dev/fuse", "/dev/net"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.info = tt.info
			url := f.listen(t)
			d := New(Config{Endpoint: url, AllowRootful: tt.rootful})
			defer d.Close()
			got, err := d.Facts(t.Context())
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
			if got.Endpoint != url || got.Version != "20.10.24" || got.APIVersion != "1.41" ||
				!strings.Contains(got.Lacks[0], "clock") {
				t.Errorf("got %+v", got)
			}
			got.Endpoint, got.Version, got.APIVersion, got.Lacks = "", "", "", nil
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestVersions: the older of both sides' versions is spoken, and one that is too old is refused.
func TestVersions(t *testing.T) {
	for server, want := range map[string]string{"1.41": "1.41", "1.45": "1.45", "1.99": "1.51", "1.40": "",
		"": "1.41"} {
		f := newFake()
		f.version = server
		d := New(Config{Endpoint: f.listen(t)})
		facts, err := d.Facts(t.Context())
		if facts.APIVersion != want || (want == "") != (err != nil) {
			t.Errorf("%q: got %q, %v; want %q", server, facts.APIVersion, err, want)
		}
		d.Close()
	}
}

// TestPodmanIsRefused: podman's imitation of docker's API is told from docker, with the setting for
// podman's own.
func TestPodmanIsRefused(t *testing.T) {
	f := newFake()
	f.components = []string{"Podman Engine", "Conmon"}
	endpoint := f.listen(t)
	d := New(Config{Endpoint: endpoint})
	defer d.Close()
	_, err := d.Facts(t.Context())
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !strings.Contains(un.Error(), "podman answers there") ||
		!strings.HasSuffix(un.Hint(), "MCP_BRIDGE_RUNTIME="+endpoint) {
		t.Errorf("got %v", err)
	}
}

// TestPlainTCPElsewhere: code isn't sent over a network in the clear.
func TestPlainTCPElsewhere(t *testing.T) {
	alone(t)
	for endpoint, refused := range map[string]bool{
		"tcp://192.0.2.1:2375": true, "http://192.0.2.1": true, "tcp://engine.example:2375": true,
		"tcp://[2001:db8::1]:2375": true, "tcp://127.0.0.1.example:1": true,
		"tcp://127.0.0.1:1": false, "tcp://[::1]:1": false, "http://localhost:1": false,
		"tcp://[::ffff:127.0.0.1]:1": false,
	} {
		d := New(Config{Endpoint: endpoint})
		_, err := d.Facts(t.Context())
		d.Close()
		var un *runtime.UnavailableError
		if !errors.As(err, &un) || strings.Contains(err.Error(), "without TLS") != refused || refused &&
			!strings.Contains(un.Hint(), "DOCKER_CERT_PATH") {
			t.Errorf("%s: got %v; refused should be %v", endpoint, err, refused)
		}
	}
	if safe := (endpoint{Endpoint: engine.Endpoint{URL: "tcp://192.0.2.1:2376"}, secure: true}); safe.plain() {
		t.Error("with TLS it is taken for plain")
	}
}

// TestPlainTCP: it works on this machine, and the facts say what it means.
func TestPlainTCP(t *testing.T) {
	alone(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.instant = true
	s := &http.Server{Handler: f}
	go s.Serve(l)
	defer s.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // which is not for engines
	for _, scheme := range []string{"tcp://", "http://"} {
		d := New(Config{Endpoint: scheme + l.Addr().String()})
		if exit, _, err := play(t, t.Context(), d); err != nil || exit.Code != 7 {
			t.Errorf("%s: %+v, %v", scheme, exit, err)
		}
		if facts, err := d.Facts(t.Context()); err != nil ||
			!strings.Contains(strings.Join(facts.Lacks, " "), "neither encrypted") {
			t.Errorf("%s: facts are %+v, %v", scheme, facts, err)
		}
		d.Close()
	}
}

// TestDialIsBounded: an engine that takes the connection and says nothing.
func TestDialIsBounded(t *testing.T) {
	f := newFake()
	f.hang = "_ping"
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
