//go:build unix

package upstream

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// bridgeAt is an HTTP server that says that it is a bridge, of that instance.
func bridgeAt(t *testing.T, instance string) discovery.Server {
	t.Helper()
	s := mcpserver.NewMCPServer("mcp-bridge", "1", mcpserver.WithToolCapabilities(false),
		mcpserver.WithExperimental(map[string]any{SelfCapability: map[string]any{"instance": instance}}))
	h := httptest.NewServer(mcpserver.NewStreamableHTTPServer(s))
	t.Cleanup(h.Close)
	return discovery.Server{Name: "fake", Transport: discovery.HTTP, URL: h.URL + "/mcp", Source: discovery.Source{Path: "/home/u/servers.json"}}
}

// TestSelf: a bridge that is reached behind a name that says nothing is known by its answer to the handshake, in either protocol.
func TestSelf(t *testing.T) {
	ours := func(c *Config) { c.Instance = "ours" }
	for _, tt := range []struct {
		name   string
		server discovery.Server
		self   bool
	}{
		{"this bridge by URL", bridgeAt(t, "ours"), true},
		{"another bridge by URL", bridgeAt(t, "theirs"), false},
		{"this bridge as a program", fake("bridge", "ours"), true},
		{"another bridge as a program", fake("bridge", "theirs"), true},
		{"another program", fake("normal"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(t, ours, tt.server).Tools(t.Context(), "fake")
			if errors.Is(err, ErrSelf) != tt.self || !tt.self && err != nil {
				t.Errorf("got %v, want one that says it is us: %v", err, tt.self)
			}
			if tt.self && !strings.Contains(err.Error(), "/home/u/servers.json") {
				t.Errorf("the error %q doesn't say where to take it out", err)
			}
		})
	}
}
