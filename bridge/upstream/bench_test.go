//go:build unix

package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// BenchmarkCall is one call of a tool that does nothing, there and back.
func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct{ name, tool, args string }{
		{name: "small", tool: "echo", args: `{"a":1}`},
		{name: "100KB", tool: "echo", args: `{"a":"` + strings.Repeat("x", 100<<10) + `"}`},
		{name: "10MB-result", tool: "big", args: `{}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			p := NewPool(Config{Servers: []discovery.Server{fake("normal")}})
			defer func() { _ = p.Close() }()
			if _, err := p.Call(b.Context(), "fake", bb.tool, json.RawMessage(bb.args)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := p.Call(b.Context(), "fake", bb.tool, json.RawMessage(bb.args)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
