package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// newerServer is a server over HTTP that knows only the protocol of 2026-07-28, and asks in its
// tool's result.
func newerServer(t *testing.T) entry {
	t.Helper()
	s := mcpserver.NewMCPServer("newer", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("greet"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a := mcpserver.ElicitationResponse(r.Params.InputResponses, "name")
		if a == nil {
			return mcpserver.NewInputRequestBuilder("half done").Elicit("name",
				mcp.ElicitationParams{Message: "Your name?",
					RequestedSchema: map[string]any{"type": "object"}}).ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s: %v, %s", r.Params.RequestState, a.Content, a.Action)), nil
	})
	h := mcpserver.NewStreamableHTTPServer(s)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") != mcp.LATEST_PROTOCOL_VERSION {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported `+
				`protocol version"}}`)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	return entry{Type: "http", URL: ts.URL + "/mcp"}
}

// TestQuestionInAResult: what a server asks over the newer protocol reaches the client of the run,
// and the code gets the result that follows from the answer; where the client can't be asked, the
// call fails and says why.
func TestQuestionInAResult(t *testing.T) {
	needEngine(t)
	servers := map[string]entry{"newer": newerServer(t)}
	const code = `
try:
    print(mcp_newer.greet())
except Exception as e:
    print(type(e).__name__, e)
`
	for _, tt := range []struct {
		name  string
		can   map[string]any
		asked int
		want  string
	}{
		{"a client that can", map[string]any{"elicitation": map[string]any{}}, 1,
			"half done: map[name:Ada], accept\n"},
		{"one that can't", map[string]any{}, 0,
			"the client can't be asked: it has not declared the capability elicitation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serveTo(t, command(t, servers), tt.can)
			got, asked := c.asked("elicitation/create", `{"action":"accept","content":{"name":"Ada"}}`, code, nil)
			if len(asked) != tt.asked || !strings.Contains(got.Text, tt.want) {
				t.Errorf("asked %q; the code got %s", asked, got.Text)
			}
			for _, shown := range asked {
				holds(t, shown, `The MCP server \"newer\" asks, by way of mcp-bridge: Your name?`)
			}
		})
	}
}
