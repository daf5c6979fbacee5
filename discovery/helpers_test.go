package discovery

import (
	"strings"
	"testing"
)

// TestNameOfTheHelpers: a server can't have the name under which code reaches the bridge's own
// helpers.
func TestNameOfTheHelpers(t *testing.T) {
	c := Scan(tree{"/home/u/.config/mcp/servers/a.json": `{"mcpServers": {"runtime": {"command": "x"}, ` +
		`"other": {"command": "y"}}}`}.fs(), linux())
	if len(c.Servers) != 1 || c.Servers[0].Name != "other" {
		t.Errorf("servers are %v, want only other", c.Servers)
	}
	if len(c.Problems) != 1 || c.Problems[0].Server != "runtime" ||
		!strings.Contains(c.Problems[0].Next, "another name") {
		t.Errorf("problems are %v", c.Problems)
	}
}
