//go:build unix

package upstream

import (
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
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
	return discovery.Server{Name: "fake", Transport: discovery.HTTP, URL: h.URL + "/mcp",
		Source: discovery.Source{Path: "/home/u/servers.json"}}
}

// TestSelf: a bridge that is reached behind a name that says nothing is known by its answer to the
// handshake, in either protocol.
func TestSelf(t *testing.T) {
	ours := func(c *Config) { c.Instance = "ours" }
	for _, tt := range []struct {
		name   string
		server discovery.Server
		self   bool
	}{
		{"this bridge by URL", bridgeAt(t, "ours"), true},
		{"another bridge by URL, on this machine", bridgeAt(t, "theirs"), true},
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

// TestBridgesByURL: a bridge on another machine is a server like any other. One on this machine is
// none, whatever it is a part of.
func TestBridgesByURL(t *testing.T) {
	bridge := func(instance string) mcp.ServerCapabilities {
		said := map[string]any{SelfCapability: map[string]any{"instance": instance}}
		return mcp.ServerCapabilities{Experimental: said}
	}
	tests := []struct {
		url  string
		said mcp.ServerCapabilities
		self bool
	}{
		{"https://bridge.example/mcp", bridge("theirs"), false},
		{"https://bridge.example/mcp", bridge("ours"), true},
		{"http://192.0.2.7:8080/mcp", bridge("theirs"), false},
		{"http://127.0.0.1:8080/mcp", mcp.ServerCapabilities{}, false},
		{"http://127.8.9.1:8080/mcp", bridge("theirs"), true},
		{"http://LOCALHOST.:8080/mcp", bridge("theirs"), true},
		{"http://gateway.localhost:8080/mcp", bridge("theirs"), true},
		{"http://[::1]:8080/mcp", bridge("theirs"), true},
		{"http://0.0.0.0:8080/mcp", bridge("theirs"), true},
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		tests = append(tests, tests[4]) // of a bridge on this machine
		tests[len(tests)-1].url = "http://" + strings.ToUpper(name) + ":8080/mcp"
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			tests = append(tests, tests[4]) // of a bridge on this machine
			tests[len(tests)-1].url = "http://" + net.JoinHostPort(n.IP.String(), "8080") + "/mcp"
		}
	}
	for _, tt := range tests {
		for _, transport := range []discovery.Transport{discovery.HTTP, discovery.SSE} {
			s := &session{cfg: Config{Instance: "ours"}, server: discovery.Server{Transport: transport, URL: tt.url}}
			if err := (handshake{s}).loopTo(tt.said); errors.Is(err, ErrSelf) != tt.self {
				t.Errorf("%s: got %v, want one that says it is us: %v", tt.url, err, tt.self)
			}
		}
	}
}
