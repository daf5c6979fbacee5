package upstream

import (
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestShown: what would be run is told, and no secret in it.
func TestShown(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    discovery.Server
		want string
	}{
		{"plain", discovery.Server{Command: "npx", Args: []string{"-y", "@scope/server-files@1.2", "/home/u/docs"}},
			"npx -y @scope/server-files@1.2 /home/u/docs"},
		{"an option", discovery.Server{Command: "x", Args: []string{"--token", "hunter2", "--api-key=hunter3"}},
			"x --token *** --api-key=***"},
		{"a variable", discovery.Server{Command: "x", Args: []string{"-c", "hunter2-long"},
			Env: map[string]string{"A": "hunter2-long"}}, "x -c ***"},
		{"a bearer", discovery.Server{Command: "npx", Args: []string{"mcp-remote",
			"https://h/mcp?k=hunter2&l=b#hunter3", "--header", "Authorization: Bearer hunter2"}},
			"npx mcp-remote https://h/mcp?k=***&l=***#*** --header ***"},
		{"a token of a known form", discovery.Server{Command: "x", Args: []string{"ghp_abcdef0123456789"}},
			"x ***"},
		{"an address", discovery.Server{URL: "https://u:hunter2@h.example/mcp?key=hunter2"},
			" https://***@h.example/mcp?key=***"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Join(append([]string{tc.s.Command}, tc.s.Args...), " ")
			if tc.s.URL != "" {
				text += " " + tc.s.URL
			}
			if got := Shown(tc.s)(text); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
