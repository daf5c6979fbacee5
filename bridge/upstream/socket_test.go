//go:build unix

package upstream

import (
	"net"
	"net/http/httptest"
	"path/filepath"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestServerOnSocket reaches a server that listens on a Unix socket, over both transports.
func TestServerOnSocket(t *testing.T) {
	for _, kind := range []discovery.Transport{discovery.HTTP, discovery.SSE} {
		t.Run(string(kind), func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			s := realServer(t)
			ts := httptest.NewUnstartedServer(mcpserver.NewStreamableHTTPServer(s))
			path := "/mcp"
			if kind == discovery.SSE {
				ts.Config.Handler, path = mcpserver.NewSSEServer(s), "/sse"
			}
			ts.Listener.Close()
			ts.Listener = l
			ts.Start()
			t.Cleanup(func() {
				ts.CloseClientConnections()
				ts.Close()
			})
			p := open(t, nil, discovery.Server{Name: "fake", Transport: kind, URL: "http://localhost" + path,
				Socket: socket})
			if got := names(t, p); got != "echo fail grow wait" {
				t.Errorf("tools: %s", got)
			}
		})
	}
}
