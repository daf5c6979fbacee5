//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// realServer is an MCP server made with mcp-go, of four tools.
func realServer(t *testing.T) *mcpserver.MCPServer {
	stop := make(chan struct{}) // not every server is told of a call that is given up
	t.Cleanup(func() { close(stop) })
	s := mcpserver.NewMCPServer("real", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b, err := json.Marshal(r.GetArguments())
		return mcp.NewToolResultText(string(b)), err
	})
	s.AddTool(mcp.NewTool("grow"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("grown"), nil)
		return mcp.NewToolResultText("grown"), nil
	})
	s.AddTool(mcp.NewTool("wait"), func(ctx context.Context,
		_ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-ctx.Done():
		case <-stop:
		}
		return nil, errors.New("given up")
	})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("no license")
	})
	return s
}

// web serves h until the test ends, and is the configuration of a server there.
func web(t *testing.T, transport discovery.Transport, path string,
	h http.Handler) (discovery.Server, *httptest.Server) {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	return discovery.Server{Name: "fake", Transport: transport, URL: ts.URL + path,
		Source: discovery.Source{Path: "/home/u/servers.json"}}, ts
}

// counter counts the requests that pass it, by method.
type counter struct {
	http.Handler
	mu   sync.Mutex
	seen map[string]int
}

func counted(h http.Handler) *counter { return &counter{Handler: h, seen: map[string]int{}} }

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.seen[r.Method+" "+r.URL.Path]++
	c.mu.Unlock()
	c.Handler.ServeHTTP(w, r)
}

func (c *counter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}

// names is the names of the fake's tools.
func names(t *testing.T, p *Pool) string {
	t.Helper()
	tools, err := p.Tools(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

// eventually asks until ok; a test that never sees it fails.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond) // between two looks, not in place of one
	}
}

// TestRealServersOverHTTP: what holds over a pipe holds over both transports.
func TestRealServersOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name      string
		transport discovery.Transport
		path      string
		handler   func(*mcpserver.MCPServer) http.Handler
	}{
		{"streamable", discovery.HTTP, "/mcp", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true))
		}},
		{"streamable, the older protocol", discovery.HTTP, "/mcp", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true), older)
		}},
		{"streamable without sessions", discovery.HTTP, "/mcp", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateLess(true))
		}},
		{"sse", discovery.SSE, "/sse", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewSSEServer(s)
		}},
		{"sse where http is configured", discovery.HTTP, "/sse",
			func(s *mcpserver.MCPServer) http.Handler { return mcpserver.NewSSEServer(s) }},
		{"http where sse is configured", discovery.SSE, "/mcp", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true),
				mcpserver.WithDisableStreaming(true))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := web(t, tt.transport, tt.path, tt.handler(realServer(t)))
			p := open(t, nil, srv)
			if got := names(t, p); got != "echo fail grow wait" {
				t.Errorf("tools: %s", got)
			}
			if got := call(t, p, "echo", `{"n":9007199254740991}`); !strings.Contains(got, "echo") &&
				!strings.Contains(got, `n\":`) {
				t.Errorf("got %s", got)
			}
			_, err := p.Call(t.Context(), "fake", "fail", nil)
			serverError(t, err, "no license", "code -32603")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := p.Call(ctx, "fake", "wait", nil); err == nil || !strings.Contains(err.Error(), "deadline") {
				t.Errorf("a call whose time is up: %v", err)
			}
			if got := call(t, p, "echo", `{}`); got == "" {
				t.Error("no call after a cancelled one")
			}
		})
	}
}

// older has mcp-go's server know the older protocol alone.
var older = mcpserver.WithStreamableHTTPProtocolVersions(mcp.LegacyProtocolVersions()...)

// TestListChangedOverHTTP: a server's word that its tools changed is heard, over both transports
// and both protocols.
func TestListChangedOverHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		transport discovery.Transport
		stream    string // the request by which the notifications come
		handler   func(*mcpserver.MCPServer) http.Handler
	}{
		"newer": {discovery.HTTP, "POST /x", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true), mcpserver.WithEndpointPath("/x"))
		}},
		"older": {discovery.HTTP, "GET /x", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true), mcpserver.WithEndpointPath("/x"),
				older)
		}},
		"sse": {discovery.SSE, "GET /x", func(s *mcpserver.MCPServer) http.Handler {
			return mcpserver.NewSSEServer(s, mcpserver.WithSSEEndpoint("/x"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := counted(tt.handler(realServer(t)))
			srv, _ := web(t, tt.transport, "/x", c)
			p := open(t, nil, srv)
			if got := names(t, p); got != "echo fail grow wait" {
				t.Fatalf("tools: %s", got)
			}
			eventually(t, "the stream of notifications", func() bool { return c.of(tt.stream) > 0 })
			eventually(t, "the new tool", func() bool {
				call(t, p, "grow", "")
				return names(t, p) == "echo fail grow grown wait"
			})
		})
	}
}

// TestMannerIsRemembered: what a handshake found out isn't tried again by the next session.
func TestMannerIsRemembered(t *testing.T) {
	c := counted(mcpserver.NewSSEServer(realServer(t)))
	srv, ts := web(t, discovery.HTTP, "/sse", c)
	p := open(t, nil, srv)
	call(t, p, "echo", "{}")
	if n := c.of("POST /sse"); n != 2 {
		t.Fatalf("%d tries of the newer transport, want one by each protocol", n)
	}
	ts.CloseClientConnections()
	eventually(t, "another session", func() bool {
		_, err := p.Call(t.Context(), "fake", "echo", nil)
		return err == nil && c.of("GET /sse") > 1
	})
	if n := c.of("POST /sse"); n != 2 {
		t.Errorf("%d tries of the newer transport, want no more", n)
	}
}

// TestSessionsEnd: closing a pool ends the server's session.
func TestSessionsEnd(t *testing.T) {
	c := counted(mcpserver.NewStreamableHTTPServer(realServer(t), mcpserver.WithStateful(true), older))
	srv, _ := web(t, discovery.HTTP, "/mcp", c)
	p := open(t, nil, srv)
	call(t, p, "echo", "{}")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if c.of("DELETE /mcp") != 1 {
		t.Error("the server was not told")
	}
}

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
