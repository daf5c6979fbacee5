package bridge

import (
	"encoding/json"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// BenchmarkCall is the bridge's own part of a tool call, from the sandbox's question to the
// server's, with nothing recorded or exported.
func BenchmarkCall(b *testing.B) {
	br := build(b, nil)
	ctx, c, release := br.pin(b.Context())
	defer release()
	r := br.newRun(request{}, nil)
	r.args = arguments{catalog: c, servers: c.Servers()}
	h := r.host(b.Context(), nil)
	call := sandbox.Call{Run: "run", ID: "1", Provider: "github", Tool: "me",
		Input: json.RawMessage(`{"text":"x"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Call(ctx, call); err != nil {
			b.Fatal(err)
		}
	}
}
