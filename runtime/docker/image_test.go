package docker

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// pulling is an engine that answers a pull with a stream of messages.
func pulling(t *testing.T, messages ...string) (d *Driver, f *fake, auth func() string) {
	t.Helper()
	handler, f, auth := pullHandler(messages...)
	l := listenUnix(t, t.TempDir())
	s := &http.Server{Handler: handler}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	d = New(Config{Endpoint: "unix://" + l.Addr().String()})
	t.Cleanup(func() { d.Close() })
	return d, f, auth
}

// pullHandler is such an engine's; auth is the login that came with the last pull.
func pullHandler(messages ...string) (h http.Handler, f *fake, auth func() string) {
	f = newFake()
	var header string
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/images/create") {
			header = r.Header.Get("X-Registry-Auth")
			for _, m := range messages {
				fmt.Fprintln(w, m)
			}
			return
		}
		f.ServeHTTP(w, r)
	}), f, func() string { return header }
}

// pullingTCP is such an engine on a port of this machine, with the certificates in dir or in the
// clear.
func pullingTCP(t *testing.T, dir string, secure bool) (address string, auth func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, _, auth := pullHandler(`{"status":"Status: fine"}`)
	s := &http.Server{Handler: handler}
	if secure {
		go s.ServeTLS(l, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	} else {
		go s.Serve(l)
	}
	t.Cleanup(func() { s.Close() })
	return l.Addr().String(), auth
}

// TestPullProgress: hundreds of messages become a few lines.
func TestPullProgress(t *testing.T) {
	alone(t)
	messages := []string{`{"status":"Pulling from library/python","id":"3.12-slim"}`,
		`{"status":"Pulling fs layer","progressDetail":{},"id":"aa"}`}
	for i := range 500 {
		for _, layer := range []string{"aa", "bb"} {
			messages = append(messages,
				fmt.Sprintf(`{"status":"Downloading","progressDetail":{"current":%d,"total":50000000},"progress":"[=>  `+
					`]","id":%q}`, i*100_000, layer))
		}
	}
	messages = append(messages, `{"status":"Pull complete","progressDetail":{},"id":"aa"}`,
		`{"status":"Already exists","progressDetail":{},"id":"bb"}`,
		`{"status":"Status: Downloaded newer image for python:3.12-slim"}`)
	d, _, _ := pulling(t, messages...)
	var lines []string
	i, err := d.PullImage(t.Context(), "python:3.12-slim", func(line string) { lines = append(lines, line) })
	if err != nil || i.ID != "sha256:1234" || i.Ref != "python:3.12-slim" {
		t.Errorf("got %+v, %v", i, err)
	}
	for _, want := range []string{"pulling docker.io/library/python:3.12-slim", "layer aa: pull complete",
		"layer bb: already exists", "downloaded 50MB of 100MB"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q", want)
		}
	}
	if len(lines) > 15 {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// TestPullFails: an error in the stream is the pull's, in the words that all engines share.
func TestPullFails(t *testing.T) {
	alone(t)
	tests := []struct{ name, message, want string }{
		{"no space", `{"errorDetail":{"message":"write /x: no space left on device"},"error":"write /x: no ` +
			`space left on device"}`, "no space left"},
		{"old engines have no detail", `{"error":"manifest for x:1 not found: manifest unknown"}`, "no such image"},
		{"broken off", `{"status":`, "broke off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, _, _ := pulling(t, tt.message)
			_, err := d.PullImage(t.Context(), "x:1", nil)
			var missing *runtime.ImageError
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), tt.want) || missing.Hint() == "" {
				t.Errorf("got %v, want an *ImageError with %q and a hint", err, tt.want)
			}
		})
	}
	d, _, _ := pulling(t)
	var bad *runtime.ImageError
	if _, err := d.PullImage(t.Context(), "No Name", nil); !errors.As(err, &bad) {
		t.Errorf("a bad name: got %v", err)
	}
}

// TestLogin: what docker login has stored goes to that registry and to no other.
func TestLogin(t *testing.T) {
	home := alone(t)
	auth := base64.StdEncoding.EncodeToString([]byte("me:se:cret"))
	bin := filepath.Join(home, "bin")
	write(t, filepath.Join(bin, "docker-credential-there"), `#!/bin/sh
read -r server
case $server in
token.example) echo '{"Username":"<token>","Secret":"t"}' ;;
kept.example) echo '{"Username":"kept","Secret":"s"}' ;;
*) echo 'credentials not found in native keychain'; exit 1 ;;
esac
`)
	if err := os.Chmod(filepath.Join(bin, "docker-credential-there"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	write(t, filepath.Join(home, ".docker", "config.json"),
		`{"auths":{"https://index.docker.io/v1/":{"auth":"`+auth+`"},"bad.example":{"auth":"!"}},
		"credHelpers":{"kept.example":"there","token.example":"there","none.example":"there","lost.example":"nowhere"}}`)
	tests := []struct {
		ref  string
		want registry.AuthConfig
	}{
		{"python:3.12", registry.AuthConfig{Username: "me", Password: "se:cret",
			ServerAddress: "https://index.docker.io/v1/"}},
		{"kept.example/x", registry.AuthConfig{Username: "kept", Password: "s", ServerAddress: "kept.example"}},
		{"token.example/x", registry.AuthConfig{IdentityToken: "t", ServerAddress: "token.example"}},
		{"none.example/x", registry.AuthConfig{}},
		{"other.example/x", registry.AuthConfig{}},
		{"bad.example/x", registry.AuthConfig{}},  // logged, and tried without
		{"lost.example/x", registry.AuthConfig{}}, // the same
	}
	for _, tt := range tests {
		t.Run(tt.ref, func(t *testing.T) {
			d, _, header := pulling(t, `{"status":"Status: fine"}`)
			if _, err := d.PullImage(t.Context(), tt.ref, nil); err != nil {
				t.Fatal(err)
			}
			var got registry.AuthConfig
			if header() != "" {
				b, err := base64.URLEncoding.DecodeString(header())
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(b, &got); err != nil {
					t.Fatal(err)
				}
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestLoginStaysHome: a login is sent only where no other can read it.
func TestLoginStaysHome(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("me:secret"))
	for _, tt := range []struct {
		name     string
		certs    bool // the listener has some
		context  bool // the endpoint is a context that says not to verify
		wantSent bool
	}{
		{"in the clear", false, false, false},
		{"TLS", true, false, true},
		{"TLS that isn't verified", true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := alone(t)
			dir := filepath.Join(home, "certs")
			authority(t, dir)
			address, header := pullingTCP(t, dir, tt.certs)
			config := `{"auths":{"reg.example":{"auth":"` + auth + `"}}}`
			write(t, filepath.Join(home, ".docker", "config.json"), config)
			switch {
			case tt.context:
				writeContext(t, filepath.Join(home, ".docker"), "careless",
					`{"Endpoints":{"docker":{"Host":"tcp://`+address+`","SkipTLSVerify":true}}}`)
				t.Setenv("DOCKER_CONTEXT", "careless")
			default:
				t.Setenv("DOCKER_HOST", "tcp://"+address)
			}
			if tt.certs && !tt.context {
				t.Setenv("DOCKER_CERT_PATH", dir)
			}
			var log bytes.Buffer
			d := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			defer d.Close()
			if _, err := d.PullImage(t.Context(), "reg.example/x", nil); err != nil {
				t.Fatal(err)
			}
			if sent := header() != ""; sent != tt.wantSent {
				t.Errorf("the login was sent: %v; want %v", sent, tt.wantSent)
			}
			if said := strings.Contains(log.String(), "is not sent"); said == tt.wantSent ||
				strings.Contains(log.String(), "secret") {
				t.Errorf("the log says %s", &log)
			}
		})
	}
}

// TestOpen: which ways to an engine others can read, however they are written.
func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		e    endpoint
		want bool
	}{
		{endpoint{Endpoint: engine.Endpoint{URL: "unix:///run/docker.sock"}}, false},
		{endpoint{Endpoint: engine.Endpoint{URL: "npipe:////./pipe/docker_engine"}}, false},
		{endpoint{Endpoint: engine.Endpoint{URL: "ssh://host"}}, false},
		{endpoint{Endpoint: engine.Endpoint{URL: "https://host"}}, false},
		{endpoint{Endpoint: engine.Endpoint{URL: "tcp://host:2376"}, secure: true}, false},
		{endpoint{Endpoint: engine.Endpoint{URL: "tcp://host:2375"}}, true},
		{endpoint{Endpoint: engine.Endpoint{URL: "TCP://host:2375"}}, true},
		{endpoint{Endpoint: engine.Endpoint{URL: "http://host"}, secure: true}, true},
		{endpoint{Endpoint: engine.Endpoint{URL: "tcp://host"}, secure: true, certs: certs{insecure: true}}, true},
		{endpoint{Endpoint: engine.Endpoint{URL: "https://host"}, secure: true, certs: certs{insecure: true}},
			true},
		{endpoint{Endpoint: engine.Endpoint{URL: "else://host"}}, true},
	} {
		if got := len(tt.e.open()) > 0; got != tt.want {
			t.Errorf("%+v: open is %v, want %v", tt.e, got, tt.want)
		}
	}
}

// TestImportFails: an error in the stream is the import's.
func TestImportFails(t *testing.T) {
	d, _, _ := pulling(t, `{"errorDetail":{"message":"archive/tar: invalid tar header"}}`)
	if err := d.ImportImage(t.Context(), "localhost/x:1", strings.NewReader("no tar")); err == nil ||
		!strings.Contains(err.Error(), "invalid tar header") {
		t.Errorf("got %v", err)
	}
}

// TestImport: an image of one file, found by its name and by its id.
func TestImport(t *testing.T) {
	d := newDriver(t, Config{})
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	if err := w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o644, Size: 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("world")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const ref = "localhost/mcp-bridge/test-import:latest"
	if err := d.ImportImage(t.Context(), ref, &file); err != nil {
		t.Fatal(err)
	}
	i, ok, err := d.FindImage(t.Context(), ref)
	if err != nil || !ok || !strings.HasPrefix(i.ID, "sha256:") || i.Arch == "" {
		t.Errorf("by name: %+v, %v, %v", i, ok, err)
	}
	if again, ok, err := d.FindImage(t.Context(), i.ID); err != nil || !ok || again.ID != i.ID {
		t.Errorf("by id: %+v, %v, %v", again, ok, err)
	}
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cli.ImageRemove(t.Context(), ref, image.RemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
	if _, ok, err := d.FindImage(t.Context(), ref); ok || err != nil {
		t.Errorf("removed: %v, %v", ok, err)
	}
}

func TestFindImage(t *testing.T) {
	f := newFake()
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	f.answer = map[string]reply{"GET json": {http.StatusOK,
		map[string]any{"Id": "sha256:77", "Architecture": "arm64",
			"RepoDigests": []string{"localhost/mine@sha256:aa", "docker.io/library/python@sha256:bb"}}}}
	i, ok, err := d.FindImage(t.Context(), "python")
	if want := (runtime.Image{Ref: "python", ID: "sha256:77", Digest: "sha256:bb",
		Arch: "arm64"}); err != nil || !ok || i != want {
		t.Errorf("got %+v, %v, %v", i, ok, err)
	}
	f.answer = map[string]reply{"GET json": {http.StatusNotFound, map[string]string{"message": "No such image"}}}
	if _, ok, err := d.FindImage(t.Context(), "none"); ok || err != nil {
		t.Errorf("a missing one: %v, %v", ok, err)
	}
	f.answer = map[string]reply{"GET json": {http.StatusInternalServerError,
		map[string]string{"message": "no disk"}}}
	if _, _, err := d.FindImage(t.Context(), "any"); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("a failure: %v", err)
	}
}
