package catalog

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestListedOnce: aliases, declarations and index belong to a list of tools as long as it stays the
// same.
func TestListedOnce(t *testing.T) {
	c := New(quiet, []discovery.Server{{Name: "a"}, {Name: "b"}}, nil)
	s := c.servers[0]
	tools := []upstream.Tool{{Name: "x", InputSchema: json.RawMessage(`{}`)}}
	first := c.Listed(s, tools)
	if c.Listed(s, slices.Clone(tools)) != first || c.known("a") != first {
		t.Error("the same list was made again")
	}
	if c.Listed(s, []upstream.Tool{{Name: "x", InputSchema: json.RawMessage(`{"a":1}`)}}) == first {
		t.Error("another list is taken for the old one")
	}
	if c.known("b") != nil {
		t.Error("a server that was never asked is known")
	}
}
