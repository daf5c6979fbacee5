package discovery

import (
	"strings"
	"testing"
)

// TestFilledInIsTold: what a definition takes from elsewhere is told by its place there, of each
// way that there is to take it.
func TestFilledInIsTold(t *testing.T) {
	env := linux()
	env.Getenv = func(name string) string {
		return map[string]string{"FROM": "from-env", "KEY": "key-env", "REGION": "region-env"}[name]
	}
	files := tree{
		"/home/u/.cursor/mcp.json": `{"mcpServers": {"cursor": {"command": "c", "envFile": ` +
			`"/home/u/vars", "env": {"A": "${env:FROM}", "B": "here"}}}}`,
		"/home/u/vars": "REGION=eu\nAPI_TOKEN=of-file\n",
		"/home/u/.codex/config.toml": "[mcp_servers.codex]\ncommand = \"x\"\nenv_vars = [\"KEY\", " +
			"\"REGION\"]\n[mcp_servers.remote]\nurl = \"https://x.example/mcp\"\nbearer_token_env_var = " +
			"\"KEY\"\nenv_http_headers = { \"X-Key\" = \"KEY\" }\nhttp_headers = { \"X-Plain\" = \"here\" " +
			"}\n",
	}
	want := map[string]string{
		"cursor": "Variable \"A\": filled in for \"${env:FROM}\"\nVariable \"API_TOKEN\": not shown, 7 " +
			"characters\nVariable \"B\": \"here\"\nVariable \"REGION\": \"eu\"",
		"codex": "Variable \"KEY\": filled in for \"${KEY}\"\nVariable \"REGION\": filled in for " +
			"\"${REGION}\"",
		"remote": "Header \"X-Key\": filled in for \"${KEY}\"\nHeader \"X-Plain\": \"here\"\nHeader " +
			"\"Authorization\", from the variable: \"KEY\"",
	}
	c := Scan(files.fs(), env)
	for _, s := range c.Servers {
		if told := s.Describe(); !strings.HasSuffix(told, "\n"+want[s.Name]) || strings.Contains(told, "-env") {
			t.Errorf("%s: got %s\nwant %s", s.Name, told, want[s.Name])
		}
	}
	if len(c.Servers) != len(want) {
		t.Errorf("%d servers: %v", len(c.Servers), c.Problems)
	}
}

// TestFileIsOneLine: a path can't add rows to a listing.
func TestFileIsOneLine(t *testing.T) {
	for path, want := range map[string]string{
		"/home/u/.cursor/mcp.json": "/home/u/.cursor/mcp.json",
		"/home/u/a b":              "/home/u/a b",
		"/x\nfiles  mcp_files":     `"/x\nfiles  mcp_files"`,
		"/x\x1b[2J\r":              `"/x\x1b[2J\r"`,
		"/x\tmcp_files":            `"/x\tmcp_files"`,
		"/x\u202eelif":             `"/x\u202eelif"`,
	} {
		if got := (Source{Path: path}).File(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
