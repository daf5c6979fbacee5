package discovery

import (
	"strings"
	"testing"
)

func TestSelf(t *testing.T) {
	links := map[string]string{
		"/usr/local/bin/bridge": "/opt/bin/mcp-bridge-1.0", // a link under another name
		"bridge":                "/opt/bin/mcp-bridge-1.0",
		"/home/u/b/mcp-bridge":  "/home/u/src/mcp-bridge",
	}
	env := linux()
	env.Resolve = func(command, path string) string {
		if command == "br" && path == "/own/bin" {
			return env.Executable
		}
		return links[command]
	}
	for _, tt := range []struct {
		command string // words, split at blanks, with _ for a blank within
		env     string
		self    bool
	}{
		{"/opt/bin/mcp-bridge-1.0", "", true},
		{"/opt/bin/mcp-bridge-1.0 serve", "", true},
		{"/usr/local/bin/bridge", "", true},
		{"bridge", "", true},
		{"br", "", false},
		{"br", `"PATH": "/own/bin"`, true},
		{"mcp-bridge", "", true},
		{"mcp-bridge.exe", "", true},
		{`C:\Tools\mcp-bridge.EXE`, "", true},
		{"./bin/mcp-bridge serve", "", true},
		{"npx mcp-bridge", "", true},
		{"npx -y mcp-bridge@latest", "", true},
		{"npx -y @mcp-bridge/mcp-bridge@1.2.3", "", true},
		{"npx --yes --package mcp-bridge something", "", true},
		{"npx -p @x/mcp-bridge@1 -c mcp-bridge_serve", "", true},
		{"/usr/bin/npx.cmd -y -- mcp-bridge", "", true},
		{"npm exec -y mcp-bridge", "", true},
		{"pnpm dlx mcp-bridge", "", true},
		{"bun x mcp-bridge", "", true},
		{"bunx mcp-bridge", "", true},
		{"uvx mcp-bridge", "", true},
		{"uvx mcp-bridge[all]==1.0 serve", "", true},
		{"uvx --python 3.12 --from mcp-bridge bridge", "", true},
		{"uvx --from git+https://github.com/mcp-bridge/mcp-bridge.git@main x", "", true},
		{"uv tool run mcp-bridge", "", true},
		{"uv run --with x mcp-bridge", "", true},
		{"pipx run mcp-bridge", "", true},
		{"python3.12 -m mcp-bridge", "", true},
		{"node /usr/lib/node_modules/mcp-bridge/bin/mcp-bridge.js", "", true},
		{"deno run -A npm:mcp-bridge@1", "", true},
		{"go run github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge@latest", "", true},
		{"docker run --rm -i ghcr.io/mcp-bridge/mcp-bridge:1.0", "", true},
		{"docker run --rm -i -v /w:/w --name x --network=none mcp-bridge@sha256:abc serve", "", true},
		{"docker run -itv /w:/w mcp-bridge", "", true},
		{"sh -c exec_mcp-bridge", "", true},
		{"bash -lc cd_/w_&&_A=b_nohup_/x/mcp-bridge_serve_2>/dev/null", "", true},
		{"bash -o pipefail -c true;mcp-bridge", "", true},
		{"sh -c 'npx'_-y_\"mcp-bridge@1\"", "", true},
		{"sh -c echo_\"a;_b\";_mcp-bridge", "", true},
		{"sh -c \"/opt/my_tools/mcp-bridge\"_serve", "", true},
		{`powershell -Command C:\Tools\mcp-bridge.exe`, "", true},
		{"sh /opt/mcp-bridge.sh", "", true},
		{"env A=b -u C mcp-bridge", "", true},
		{"env -S mcp-bridge_serve", "", true},
		{"/usr/bin/env -- mcp-bridge", "", true},
		{"nice -n 5 sudo -u me mcp-bridge", "", true},
		{"mise exec node@22 -- mcp-bridge", "", true},
		{"mise x -- npx mcp-bridge", "", true},
		{"dotenv -- mcp-bridge", "", true},
		{"cmd /c npx -y mcp-bridge", "", true},
		{"cmd.exe /d /s /c mcp-bridge", "", true},
		{"powershell -NoProfile -Command mcp-bridge_serve", "", true},
		{"pwsh -File C:/x/mcp-bridge.ps1", "", true},
		{"whatever --run /opt/bin/mcp-bridge-1.0", "", true},
		{"whatever --run /usr/local/bin/bridge", "", true},

		{"/opt/bin/mcp-bridge-1.0 demo-server", "", false},
		{"/opt/bin/mcp-bridge-1.0 demo-server github", "", false},
		{"mcp-bridge demo-server serve", "", true},
		{"mcp-bridge serve demo-server", "", true},
		// Known only once they are started, by MCP_BRIDGE_DEPTH and by what they say in the
		// handshake.
		{"docker exec -i -u me box /usr/bin/mcp-bridge", "", false},
		{"podman container run -i mcp-bridge", "", false},
		{"docker run -i --entrypoint mcp-bridge debian", "", false},
		{"docker run -i debian mcp-bridge", "", false},
		{"sh -c if_true;_then_mcp-bridge;_fi", "", false},
		{"sh -c echo_\"`mcp-bridge`\"", "", false},
		{"timeout 60 mcp-bridge", "", false},
		{"cmd /cmcp-bridge", "", false},

		{"npx -y @modelcontextprotocol/server-filesystem /home/u/src/mcp-bridge", "", false},
		{"npx -y @modelcontextprotocol/server-filesystem mcp-bridge", "", false},
		{"npx -y --registry mcp-bridge other", "", false},
		{"uvx mcp-server-git --repository /home/u/mcp-bridge", "", false},
		{"uvx mcp-bridge-client", "", false},
		{"uvx mcp-server-code-execution-mode", "", false},
		{"npx @mcp-bridge/other", "", false},
		{"docker run -i --rm --name mcp-bridge -v /src/mcp-bridge:/w other", "", false},
		{"docker run -i -w /mcp-bridge other --dir mcp-bridge", "", false},
		{"docker build mcp-bridge", "", false},
		{"sh -c cd_/src/mcp-bridge_&&_npx_other", "", false},
		{"sh -c echo_mcp-bridge", "", false},
		{"sh -c echo_\"a;_mcp-bridge\"", "", false},
		{"sh -c echo_'a&&mcp-bridge'", "", false},
		{"sh -c echo_a\\;_mcp-bridge", "", false},
		{"git-server mcp-bridge", "", false},
		{"sh", "", false},
		{"npx", "", false},
		{"docker run", "", false},
		{"env A=mcp-bridge other", "", false},
		{`whatever \\host\share\mcp-bridge`, "", false},
	} {
		t.Run(tt.command, func(t *testing.T) {
			words := strings.Fields(tt.command)
			for i, w := range words {
				words[i] = quoteJSON(strings.ReplaceAll(w, "_", " "))
			}
			entry := `{"command": ` + words[0] + `, "args": [` + strings.Join(words[1:], ",") +
				`], "env": {` + tt.env + `}}`
			c := Scan(tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {"s": ` + entry + `}}`}.fs(), env)
			self := len(c.Problems) == 1 && c.Problems[0].Reason == "this is mcp-bridge itself"
			if self != tt.self || len(c.Servers)+len(c.Problems) != 1 {
				t.Errorf("got %v, want self %v", c, tt.self)
			}
		})
	}
	t.Run("a wrapper in a wrapper, for ever", func(t *testing.T) {
		words := make([]string, 10000)
		for i := range words {
			words[i] = "env"
		}
		if n := len(programs(words, maxLaunchers)); n != maxLaunchers {
			t.Errorf("%d launchers were followed, want %d", n, maxLaunchers)
		}
	})
	t.Run("under another name, in any case of letters", func(t *testing.T) {
		env := Env{Home: `C:\Users\u`, GOOS: "windows", Executable: `C:\Bin\Other.exe`}
		c := Scan(tree{`C:\Users\u\.cursor\mcp.json`: `{"mcpServers": {"a": {"command": ` +
			`"c:/bin/OTHER.EXE"}, ` +
			`"b": {"command": "npx", "args": ["other"]}}}`}.fs(), env)
		check(t, c, []string{"b: npx other"}, []string{"a: this is mcp-bridge itself"})
	})
}
