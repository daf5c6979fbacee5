package approvals

import (
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestGrantee tries the names of tools that a grant may be for.
func TestGrantee(t *testing.T) {
	file := discovery.Source{Path: "/h/.claude.json"}
	c := discovery.Catalog{
		Servers: []discovery.Server{{Name: "a"}, {Name: "a.b"}},
		Problems: []discovery.Problem{
			{Source: file},
			{Source: file, Server: "github", State: discovery.New, Reason: heldReason, Next: "run: approve"},
			{Source: file, Server: "x.y", Reason: "it is disabled"},
		},
	}
	for _, tc := range []struct{ name, server, tool, err string }{
		{"a.get", "a", "get", ""},
		{"a.b.get", "a.b", "get", ""},
		{`"a".b.get`, "a", "b.get", ""},
		{`a.g\*`, "a", "g*", ""},
		{"a.*", "", "", "is a pattern"},
		{"github.create_issue", "", "",
			`server "github" is configured in /h/.claude.json but can't be used: it is new since the bridge started`},
		{"github.create_issue", "", "", "; run: approve"},
		{`"x.y".get`, "", "", "it is disabled; mcp-bridge servers lists"},
		{"x.y.get", "", "", "it is disabled"},
		{"githubber.get", "", "", "is no tool of a server that is configured here"},
	} {
		s, tool, err := Grantee(c, tc.name)
		if s.Name != tc.server || tool != tc.tool || (err != nil) != (tc.err != "") ||
			err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %s, %s, %v", tc.name, s.Name, tool, err)
		}
	}
}
