package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// newerServer is the configuration of a server over HTTP that knows only the protocol of 2026-07-28, and asks in its tool's result.
func newerServer(t *testing.T) (config string) {
	t.Helper()
	s := mcpserver.NewMCPServer("newer", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("greet"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a := mcpserver.ElicitationResponse(r.Params.InputResponses, "name")
		if a == nil {
			return mcpserver.NewInputRequestBuilder("half done").Elicit("name", mcp.ElicitationParams{Message: "Your name?", RequestedSchema: map[string]any{"type": "object"}}).ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s: %v, %s", r.Params.RequestState, a.Content, a.Action)), nil
	})
	h := mcpserver.NewStreamableHTTPServer(s)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") != mcp.LATEST_PROTOCOL_VERSION {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported protocol version"}}`)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	config = filepath.Join(t.TempDir(), "servers.json")
	must(t, os.WriteFile(config, []byte(`{"mcpServers":{"newer":{"type":"http","url":"`+ts.URL+`/mcp"}}}`), 0o600))
	return config
}

// TestQuestionInAResult: what a server asks over the newer protocol reaches the client of the run, and the code gets the result that follows
// from the answer; where the client can't be asked, the call fails and says why.
func TestQuestionInAResult(t *testing.T) {
	needEngine(t)
	config := newerServer(t)
	const code = `
try:
    print(mcp_newer.greet())
except Exception as e:
    print(type(e).__name__, e)
`
	args := map[string]any{"name": "run_python", "arguments": map[string]any{"code": code, "timeout": 60}}
	for _, tt := range []struct {
		name  string
		can   map[string]any
		asked int
		want  string
	}{
		{"a client that can", map[string]any{"elicitation": map[string]any{}}, 1, "half done: map[name:Ada], accept\n"},
		{"one that can't", map[string]any{}, 0, "the client can't be asked: it has not declared the capability elicitation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := command(t, nil)
			cmd.Env = append(cmd.Env, "MCP_BRIDGE_CONFIG="+config)
			c := serveTo(t, cmd, tt.can)
			_, answer := c.start("tools/call", args)
			asked := 0
			for late := time.After(2 * time.Minute); ; {
				select {
				case m := <-c.notes:
					if m.Method == "elicitation/create" {
						asked++
						if !strings.Contains(string(m.Params), `The MCP server \"newer\" asks, by way of mcp-bridge: Your name?`) {
							t.Errorf("the client is shown %s", m.Params)
						}
						c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)})
					}
				case m := <-answer:
					if got := parseAnswer(t, m); asked != tt.asked || !strings.Contains(got.Text, tt.want) {
						t.Errorf("asked %d times; the code got %s", asked, got.Text)
					}
					return
				case <-late:
					t.Fatal("no answer came")
				}
			}
		})
	}
}
