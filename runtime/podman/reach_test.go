//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestPlainTCP: code isn't sent over a network in the clear.
func TestPlainTCP(t *testing.T) {
	for host, refused := range map[string]bool{
		"192.0.2.1:2375": true, "engine.example:2375": true, "[2001:db8::1]:2375": true,
		"127.0.0.1.example:1": true,
		"127.0.0.1:1":         false, "[::1]:1": false, "localhost:1": false, "[::ffff:127.0.0.1]:1": false,
	} {
		d := New(Config{Endpoint: "tcp://" + host})
		_, err := d.Facts(t.Context())
		d.Close()
		var un *runtime.UnavailableError
		if !errors.As(err, &un) || strings.Contains(err.Error(), "without TLS") != refused || refused &&
			!strings.Contains(un.Hint(), "DOCKER_CERT_PATH") {
			t.Errorf("%s: got %v; refused should be %v", host, err, refused)
		}
	}
}

// front is an HTTP server before the engine that a driver has found, with what it is asked handed
// to see.
func front(t *testing.T, d *Driver, see func(*http.Request)) http.Handler {
	t.Helper()
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.socket == "" {
		t.Skipf("%s is no socket to stand before", c.facts.Endpoint)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			see(r.In)
			r.SetURL(&url.URL{Scheme: "http", Host: "d"})
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		}},
	}
}

// TestTLS: with a certificate that we know, a container's streams pass too; with another, nothing
// does.
func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(front(t, newDriver(t), func(*http.Request) {}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	d := New(Config{Endpoint: strings.Replace(s.URL, "https:", "tcp:", 1), TLS: TLS{CA: ca}, AllowRootful: true})
	defer d.Close()
	g := runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}
	var out strings.Builder
	exit, err := d.Run(t.Context(), g.Spec("import sys; print(sys.stdin.read()[::-1], end='')"),
		runtime.Stdio{Stdin: strings.NewReader("over there"), Stdout: &out, Stderr: io.Discard})
	if err != nil || exit.Code != 0 || out.String() != "ereht revo" {
		t.Errorf("got %q, %+v, %v", out.String(), exit, err)
	}
	plain := New(Config{Endpoint: strings.Replace(s.URL, "https:", "tcp:", 1)})
	defer plain.Close()
	if _, err := plain.Facts(t.Context()); err == nil {
		t.Error("an engine that wants TLS was reached without")
	}
}

// TestRequestsOfARun: what a run asks of the engine, from create to gone. One more is a millisecond
// or more for every call.
func TestRequestsOfARun(t *testing.T) {
	engines := newDriver(t)
	for _, unneeded := range []bool{true, false} {
		var mu sync.Mutex
		asked := map[string]int{}
		d := New(Config{AllowRootful: true, Endpoint: served(t, front(t, engines, func(r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.Method+" "+r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]++
		}))})
		t.Cleanup(func() { d.Close() })
		if _, err := d.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		clear(asked)
		mu.Unlock()
		g := runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}
		std := runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
			ExitUnneeded: func() bool { return unneeded }}
		exit, err := d.Run(t.Context(), g.Spec("print(1)"), std)
		if err != nil || exit.Code != 0 && !unneeded {
			t.Fatal(exit, err)
		}
		d.Close() // which waits for what is asked beside the run
		looks, sum := asked["GET json"], 0
		for _, n := range asked {
			sum += n
		}
		// Of five one is the removal. Where the end is asked for, how often is a matter of time: with a
		// pause that doubles, ten times at most.
		if most := map[bool]int{true: 0, false: 10}[unneeded]; sum-looks != 5 || looks > most || !unneeded &&
			looks == 0 {
			t.Errorf("got %v; want create, attach, wait, start and the removal, and at most %d looks at its end",
				asked, most)
		}
	}
}

func oneOf(t *testing.T, g runtimetest.Target) error {
	t.Helper()
	exit, err := g.Driver.Run(t.Context(), g.Spec("print(1)"),
		runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
	if err == nil && exit.Code != 0 {
		t.Errorf("got %+v", exit)
	}
	return err
}

// TestUsers: who gets a user namespace for each container.
func TestUsers(t *testing.T) {
	with := func(rootless bool, kernel, driver string, size int) map[string]any {
		i := info(rootless, "v1")
		host := i["host"].(map[string]any)
		host["kernel"] = kernel
		ids := []any{map[string]any{"container_id": 0, "host_id": 1000, "size": 1},
			map[string]any{"container_id": 1, "host_id": 100000, "size": size}}
		host["idMappings"] = map[string]any{"uidmap": ids, "gidmap": ids}
		i["store"] = map[string]any{"graphDriverName": driver}
		return i
	}
	for _, tt := range []struct {
		name       string
		info       map[string]any
		base, size int
		why        string
	}{
		{"rootless", with(true, "6.1.0-13-amd64", "overlay", 65536), 0, 65537, ""},
		{"an old kernel", with(true, "5.10.0", "overlay", 65536), 0, 0, "5.14"},
		{"copies", with(true, "6.1.0", "vfs", 65536), 0, 0, "podman system reset"},
		{"few users", with(true, "6.1.0", "overlay", 1000), 0, 0, "/etc/subuid"},
		{"rootful", with(false, "6.1.0", "overlay", 0), rootfulBase, rootfulSize, ""},
		{"rootful, an old kernel", with(false, "5.15.0", "overlay", 0), 0, 0, "idmapped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Config{Endpoint: fakeAPI(t, tt.info), AllowRootful: true})
			defer d.Close()
			c, err := d.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.users.base != tt.base || c.users.size != tt.size || !strings.Contains(c.users.why, tt.why) ||
				c.facts.OwnUsers != (tt.size > 0) {
				t.Errorf("got %+v, facts %+v; want %d numbers from %d, %q", c.users, c.facts, tt.size, tt.base, tt.why)
			}
		})
	}
}

// TestRefusedUsers: an engine that makes no such namespace still runs, and its facts say so from
// then on.
func TestRefusedUsers(t *testing.T) {
	d := newDriver(t)
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad := *c
	bad.users = users{base: math.MaxUint32 - 10, size: 1 << 16} // beyond the last there is
	bad.facts.OwnUsers = true
	d.Swap(c, &bad)
	if err := oneOf(t, runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}); err != nil {
		t.Fatal(err)
	}
	if f, err := d.Facts(t.Context()); err != nil || f.OwnUsers ||
		!slices.ContainsFunc(f.Lacks, func(s string) bool { return strings.Contains(s, "refused") }) {
		t.Errorf("got %+v, %v", f, err)
	}
}

// TestOCIRuntime: one that isn't there is named, with those that are; podman finds it out only when
// a container starts.
func TestOCIRuntime(t *testing.T) {
	d := newDriver(t)
	f, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	missing := New(Config{Endpoint: f.Endpoint, RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), AllowRootful: true,
		SSHKey: os.Getenv("CONTAINER_SSHKEY"), Hardening: runtime.Hardening{OCIRuntime: "nope"}})
	defer missing.Close()
	err = oneOf(t, runtimetest.Target{Driver: missing, Image: image, Owner: runtime.Self()})
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !strings.Contains(err.Error(), "nope") ||
		!strings.Contains(un.Hint(), "MCP_BRIDGE_OCI_RUNTIME") {
		t.Errorf("got %v", err)
	}
	same := New(Config{Endpoint: f.Endpoint, RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), AllowRootful: true,
		SSHKey: os.Getenv("CONTAINER_SSHKEY"), Hardening: runtime.Hardening{OCIRuntime: f.OCIRuntime}})
	defer same.Close()
	if err := oneOf(t, runtimetest.Target{Driver: same, Image: image, Owner: runtime.Self()}); err != nil {
		t.Error(err)
	}
}

// TestProfileElsewhere: an engine that can't see our files, on another machine or on that whose
// container this is, can't have our profile, and the facts say so.
func TestProfileElsewhere(t *testing.T) {
	secure := map[string]any{"rootless": true, "seccompEnabled": true}
	for name, change := range map[string]func(info, host map[string]any){
		"another machine": func(_, host map[string]any) { host["hostname"] = "elsewhere" },
		"in a container on the host's network": func(info, _ map[string]any) {
			info["store"] = map[string]any{"runRoot": filepath.Join(t.TempDir(), "none")}
		},
	} {
		i := info(true, "v1")
		host := i["host"].(map[string]any)
		host["security"] = secure
		change(i, host)
		profile := &runtime.SeccompProfile{Name: "strict", JSON: json.RawMessage("{}")}
		d := New(Config{Endpoint: fakeAPI(t, i), RuntimeDir: t.TempDir(),
			Hardening: runtime.Hardening{Seccomp: profile}})
		defer d.Close()
		f, err := d.Facts(t.Context())
		if err != nil || !f.Remote || f.Seccomp != "engine" ||
			!slices.ContainsFunc(f.Lacks, func(s string) bool { return strings.Contains(s, "profile strict") }) {
			t.Errorf("%s: got %+v, %v", name, f, err)
		}
	}
}

// TestProfileIsPrivate: the file is this user's alone, and gone after Close.
func TestProfileIsPrivate(t *testing.T) {
	dir := t.TempDir()
	d := New(Config{RuntimeDir: dir})
	path, err := d.profile.write(d.program, &runtime.SeccompProfile{Name: "strict", JSON: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if fi, err := os.Stat(p); err != nil || fi.Mode() != want {
			t.Errorf("%s is %v, %v; want %v", p, fi.Mode(), err, want)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSSH: what ssh is given can't be more than a host, and it asks no questions.
func TestSSH(t *testing.T) {
	for raw, ok := range map[string]bool{
		"ssh://me@host:22/run/podman.sock": true, "ssh://host/run/podman.sock": true,
		"ssh://-oProxyCommand=x/run/podman.sock": false, "ssh://-l@host/run/podman.sock": false,
		"ssh:///run/podman.sock": false, "ssh://me:secret@host/x": false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		args, err := sshArgs(u, "/k")
		if (err == nil) != ok {
			t.Errorf("%s: got %q, %v", raw, args, err)
		}
		if ok && (!slices.Contains(args, "BatchMode=yes") || !slices.Contains(args, "/k") ||
			!slices.Equal(args[len(args)-2:], []string{"--", "host"})) {
			t.Errorf("%s: got %q", raw, args)
		}
	}
}

// TestUnknownHost: over ssh, the key of a host that the user has not accepted is not accepted by us
// either, and is not written down.
func TestUnknownHost(t *testing.T) {
	endpoint := os.Getenv("CONTAINER_HOST")
	if !strings.HasPrefix(endpoint, "ssh:") {
		t.Skip("CONTAINER_HOST is no ssh endpoint: test/engines/with-engine podman-ssh has one")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "localhost:" + u.Port() // the same host under a name that isn't in known_hosts
	d := New(Config{Endpoint: u.String(), SSHKey: os.Getenv("CONTAINER_SSHKEY"),
		RuntimeDir: os.Getenv("XDG_RUNTIME_DIR")})
	defer d.Close()
	_, err = d.Facts(t.Context())
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !strings.Contains(err.Error(), "Host key verification failed") ||
		!strings.Contains(un.Hint(), "log in once by hand") {
		t.Errorf("got %v", err)
	}
}
