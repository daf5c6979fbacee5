//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// served is an endpoint at which h answers until the test ends.
func served(t *testing.T, h http.Handler) (endpoint string) {
	t.Helper()
	l, endpoint := listening(t)
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return endpoint
}

// listening is a socket for an http.Server, which closes it.
func listening(t *testing.T) (l net.Listener, endpoint string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "podman.sock"))
	if err != nil {
		t.Fatal(err)
	}
	return l, "unix://" + l.Addr().String()
}

// asPodman makes w's answer one of podman's API. Reply sends it, with v as JSON.
func asPodman(w http.ResponseWriter, version string) (reply func(status int, v any)) {
	w.Header().Set("Libpod-API-Version", version)
	w.Header().Set("Content-Type", "application/json")
	return func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
}

// attached is the connection of a container's streams, once the answer to attach is on its way; nil
// for one that is gone.
func attached(w http.ResponseWriter) net.Conn {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return nil
	}
	_, _ = buf.WriteString("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	_ = buf.Flush()
	return conn
}
