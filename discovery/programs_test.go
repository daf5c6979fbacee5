package discovery

import "testing"

// TestMoreHosts: each host in its own dialect, from files as it writes them, where it keeps them on
// each system.
func TestMoreHosts(t *testing.T) {
	vars := []string{"KEY=k", "TOKEN=t"}
	unset := func(what string) string { return what + " needs the variable NO, which is not set here" }
	for _, tt := range []struct {
		name     string
		env      Env
		files    tree
		servers  []string
		problems []string
	}{
		{"Codex", linux(vars...), tree{"/home/u/.codex/config.toml": `
model = "gpt-5"
notify = ["say", "done"]

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs", "${KEY}"]
cwd = "/w"
env_vars = ["TOKEN", "NO", { name = "KEY", source = "local" }]
startup_timeout_sec = 20
enabled_tools = ["search"]
disabled_tools = ["delete"]
[mcp_servers.docs.env]
MODE = "fast"

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-Region" = "us" }
env_http_headers = { "X-Key" = "KEY", "X-No" = "NO" }
scopes = ["read"]
oauth_resource = "https://figma.com"

[mcp_servers.bare]
url = "https://bare"
bearer_token_env_var = "NO"

[mcp_servers."off"]
command = "off"
enabled = false

[projects."/w/p"]
trust_level = "trusted"
`, "/w/p/.codex/config.toml": "[mcp_servers.local]\ncommand = \"local\"\n"},
			[]string{
				`docs: npx -y docs ${KEY} KEY=k MODE=fast TOKEN=t allow ["search"] deny ["delete"] in /w`,
				"figma: http https://mcp.figma.com/mcp X-Key: k X-Region: us bearer TOKEN {Off:false " +
					"ClientID: ClientSecret: Scopes:[read] CallbackPort:0 MetadataURL: " +
					"Resource:https://figma.com}",
				"local: local",
			}, []string{"bare: it needs the variable NO for its token, which is not set here", "off: it is disabled there"}},
		{"Codex, elsewhere, in a project that isn't trusted", linux("CODEX_HOME=/cx"), tree{
			"/cx/config.toml": "[mcp_servers.a]\ncommand = " +
				"\"a\"\n[projects.\"/w/p\"]\ntrust_level = \"untrusted\"\n",
			"/w/p/.codex/config.toml": "[mcp_servers.local]\ncommand = \"local\"\n"},
			[]string{"a: a"}, []string{"local: Codex isn't told to trust this folder"}},
		{"Codex, files that are wrong", linux(), tree{
			"/home/u/.codex/config.toml": "[mcp_servers.a]\ncommand = 7\n[mcp_servers.b]\ncommand = " +
				"\"b\"\nenabled_tools = \"x\"\n[mcp_servers.c]\ncommand = \"c\"\nenv_vars = " +
				"[1]\n[mcp_servers.d]\ncommand = \"d\"\nenabled = \"no\"\n"},
			nil, []string{"a: its command is a number, not a string",
				"b: its enabled_tools is a string, not an array",
				"c: its env_vars[0] is no name of a variable", "d: its enabled is a string, not true or false"}},
		{"Gemini CLI", linux(vars...), tree{"/home/u/.gemini/trustedFolders.json": `{"/w/p": "TRUST_FOLDER"}`, "/home/u/.gemini/settings.json": `{
	// written by hand
	"mcp": {"excluded": ["bad"]},
	"mcpServers": {
		"py": {"command": "python", "args": ["-m", "$KEY", "${KEY}", "${NO:-none}"], "env": {"T": "$TOKEN"}, "cwd": "/w", "timeout": 3000, "trust": true,
			"includeTools": ["a"], "excludeTools": ["b"]},
		"stream": {"httpUrl": "https://h/mcp", "headers": {"A": "Bearer $TOKEN"}},
		"events": {"url": "https://h/sse"},
		"typed": {"url": "https://h/mcp2", "type": "http", "oauth": {"enabled": false, "clientId": "id", "scopes": ["s"]}},
		"bad": {"command": "bad"},
		"lost": {"command": "x", "args": ["$NO"]},
	}}`},
			[]string{"events: sse https://h/sse", `py: python -m k k none T=t allow ["a"] deny ["b"] in /w`,
				"stream: http https://h/mcp A: Bearer t",
				"typed: http https://h/mcp2 {Off:true ClientID:id ClientSecret: Scopes:[s] CallbackPort:0 " +
					"MetadataURL: Resource:}"},
			[]string{"bad: Gemini CLI excludes it, in /home/u/.gemini/settings.json (Gemini CLI, user)",
				"lost: " + unset("its args[0]")}},
		{"Gemini CLI, a folder that isn't trusted", linux(),
			tree{"/w/p/.gemini/settings.json": `{"mcpServers": {"a": {"command": "a"}}}`},
			nil, []string{"a: Gemini CLI uses no servers in this folder until it is trusted"}},
		{"Gemini CLI, one that is", linux(), tree{"/w/p/.gemini/settings.json": `{"mcp": {"allowed": ` +
			`["a"]}, "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`,
			"/home/u/.gemini/trustedFolders.json": `{"/w/p": "TRUST_FOLDER", "/w": "DO_NOT_TRUST"}`},
			[]string{"a: a"}, []string{"b: Gemini CLI doesn't allow it: it is not in mcp.allowed of " +
				"/w/p/.gemini/settings.json (Gemini CLI, project)"}},
		{"Gemini CLI, a folder beside one", linux(),
			tree{"/w/p/.gemini/settings.json": `{"mcpServers": {"a": {"command": "a"}}}`,
				"/home/u/.gemini/trustedFolders.json": `{"/w/other": "TRUST_PARENT"}`}, []string{"a: a"}, nil},
		{"OpenCode", linux(vars...), tree{"/home/u/.config/opencode/opencode.json": `{"$schema": "https://opencode.ai/config.json", "mcp": {
			"local": {"type": "local", "command": ["bun", "x", "s", "{env:KEY}", "${KEY}"], "environment": {"T": "{file:secret.txt}"}, "enabled": true, "timeout": 5000},
			"far": {"type": "remote", "url": "https://far/mcp", "headers": {"A": "Bearer {env:TOKEN}"}, "oauth": false},
			"off": {"type": "local", "command": ["off"], "enabled": false},
			"lost": {"type": "local", "command": ["x", "{env:NO}"]},
			"gone": {"type": "local", "command": ["x", "{file:~/gone}"]},
			"none": {"type": "local", "command": []},
			"odd": {"type": "local", "command": ["x", 1]}}}`, "/home/u/.config/opencode/secret.txt": "s3\n"},
			[]string{"far: http https://far/mcp A: Bearer t {Off:true ClientID: ClientSecret: Scopes:[] " +
				"CallbackPort:0 MetadataURL: Resource:}", "local: bun x s k ${KEY} T=s3"},
			[]string{"gone: its args[0] takes its value from /home/u/gone, and of that: it does not exist",
				"lost: " + unset("its args[0]"), "none: it has no command",
				"odd: its command[1] is a number, not a string", "off: it is disabled there"}},
		{"OpenCode, the newer shape, and a variable's file", linux("OPENCODE_CONFIG=/oc.json"), tree{
			"/oc.json": `{"mcp": {"servers": {"a": {"type": "local", "command": ["a"], ` +
				`"cwd": "/w"}, "b": {"type": "local", "command": ["b"], "disabled": true}}}}`,
			"/w/p/opencode.jsonc":    `{"mcp": {"theirs": {"type": "local", "command": ["rm"]}}, /* x */}`,
			"/home/u/.opencode.json": `{"mcp": {"unread": {"type": "local", "command": ["x"]}}}`},
			[]string{"a: a in /w"}, []string{"/home/u/.opencode.json: it is not read: the earlier " +
				"mcp-bridge did, and no host does", "b: it is disabled there",
				"theirs: the bridge doesn't start what a project brings along unless its user has said " +
					"so, and OpenCode doesn't ask"}},
		{"OpenCode, a variable under its own name", linux("KEY=k"), tree{
			"/home/u/.config/opencode/opencode.json": `{"mcp": {"s": {"type": "local", "command": ["s"],
				"environment": {"KEY": "{env:KEY}"}}}}`}, []string{"s: s KEY=k"}, nil},
		{"OpenCode, a server of the name servers", linux(),
			tree{"/home/u/.config/opencode/opencode.json": `{"mcp": {"servers": {"type": "local", ` +
				`"command": ["s"]}}}`},
			[]string{"servers: s"}, nil},
		{"OpenCode, servers an array", linux(), tree{"/home/u/.config/opencode/opencode.json": `{"mcp": []}`},
			nil,
			[]string{`/home/u/.config/opencode/opencode.json: its "mcp" is an array, not an object`}},
		{"Copilot CLI", linux(vars...), tree{"/home/u/.copilot/mcp-config.json": `{"mcpServers": {
			"a": {"type": "local", "command": "a", "args": [], "env": {"K": "${KEY}"}, "tools": ["*"]},
			"b": {"type": "http", "url": "https://b", "headers": {}, "tools": ["x", "y"]},
			"c": {"type": "sse", "url": "https://c", "tools": []}}}`, "/w/p/.github/mcp.json": `{"mcpServers": {"theirs": {"command": "x"}}}`},
			[]string{"a: a K=k", `b: http https://b allow ["x" "y"]`},
			[]string{"theirs: Copilot CLI isn't told to trust this folder",
				"c: its tools is empty, so that Copilot CLI lets a model use none of its tools"}},
		{"Windsurf and Devin", linux(vars...), tree{
			"/home/u/.codeium/windsurf/mcp_config.json": `{"mcpServers": {"a": {"command": "a", "env": {"K": "${env:KEY}", "L": "${KEY}"}, "disabledTools": ["x"]},
				"b": {"serverUrl": "https://b/sse"}, "off": {"command": "x", "disabled": true}, "f": {"command": "x", "args": ["${file:/etc/token}"]}}}`,
			"/home/u/.config/devin/mcp_config.json": `{"mcpServers": {"d": {"url": "https://d"}}}`,
			"/etc/token":                            "tok"},
			[]string{`a: a K=k L=${KEY} deny ["x"]`, "b: http https://b/sse", "d: http https://d",
				"f: x tok"}, []string{"off: it is disabled there"}},
		{"Cline", linux(vars...), tree{
			"/home/u/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json": `{"mcpServers": {
				"a": {"command": "a", "env": {"K": "${env:KEY}"}, "disabled": false, "autoApprove": ["x"], "alwaysAllow": ["y"], "timeout": 60},
				"b": {"url": "https://b/sse"}, "c": {"url": "https://c/mcp", "type": "streamableHttp"}, "off": {"command": "o", "disabled": true}}}`,
			"/home/u/.cline/data/settings/cline_mcp_settings.json": `{"mcpServers": {"cli": {"command": ` +
				`"cli"}}}`},
			[]string{"a: a K=k", "b: sse https://b/sse", "c: http https://c/mcp",
				"cli: cli"}, []string{"off: it is disabled there"}},
		{"Cline, where its variable says", linux("CLINE_MCP_SETTINGS_PATH=/c.json", "CLINE_DIR=/cl"), tree{
			"/c.json": `{"mcpServers": {"a": {"command": "a"}}}`, "/cl/data/settings/cline_mcp_settings.json": `{"mcpServers": {"b": {"command": "b"}}}`},
			[]string{"a: a", "b: b"}, nil},
		{"Roo Code", linux(), tree{"/home/u/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json": `{"mcpServers": {
			"a": {"type": "streamable-http", "url": "https://a", "disabledTools": ["x"]}, "b": {"url": "https://b"}}}`},
			[]string{`a: http https://a deny ["x"]`}, []string{"b: it has a url and no type, and is " +
				"skipped by Roo Code as invalid"}},
		{"Zed", linux(), tree{"/home/u/.config/zed/settings.json": `// Zed settings
{
	"theme": "One Dark",
	"context_servers": {
		"a": {"source": "custom", "command": "a", "args": ["$HOME", "${X}"], "env": {}},
		"old": {"command": {"path": "/old", "args": ["1"], "env": {"K": "v"}}, "settings": {}},
		"far": {"url": "https://far", "headers": {"A": "b"}},
		"ext": {"source": "extension", "settings": {"key": "x"}},
		"off": {"source": "custom", "enabled": false, "command": "x", "args": []},
	},
}`}, []string{"a: a $HOME ${X}", "far: http https://far A: b", "old: /old 1 K=v"},
			[]string{"ext: it has no command: these are settings of an extension, which only Zed can start",
				"off: it is disabled there"}},
		{"Goose", linux(vars...), tree{"/home/u/.config/goose/config.yaml": `
GOOSE_PROVIDER: anthropic
extensions:
  developer: {type: builtin, name: developer, enabled: true, bundled: true}
  todo: {type: platform, name: todo, enabled: true}
  github:
    name: GitHub
    type: stdio
    enabled: true
    cmd: npx
    args: [-y, gh, "123"]
    envs: {HOST: github.com, PORT: 8080}
    env_keys: [TOKEN]
    timeout: 300
    available_tools: []
  secret:
    {type: stdio, enabled: true, cmd: x, args: [], env_keys: [NO]}
  far:
    type: streamable_http
    uri: https://far/mcp
    headers: {Authorization: "Bearer ${TOKEN}"}
    enabled: true
    available_tools: [one]
  off: {type: sse, uri: https://off, enabled: false}
`}, []string{"far: http https://far/mcp Authorization: Bearer t " + `allow ["one"]`, "github: npx -y gh 123 HOST=github.com PORT=8080 TOKEN=t"},
			[]string{"developer: it is built into Goose, which alone can start it",
				"off: it is disabled there",
				"secret: its variable NO is in the keyring of Goose, which nothing else can read", "todo: it is a part of Goose itself"}},
		{"Continue", linux(vars...), tree{
			"/home/u/.continue/config.yaml": "name: mine\nversion: 0.0.1\nmcpServers:\n  - name: a\n    " +
				"command: a\n    args: [\"${{ secrets.KEY }}\"]\n    cwd: /w\n" +
				"  - name: far\n    type: streamable-http\n    url: https://far\n    requestOptions:\n    " +
				"  headers: {A: b}\n    apiKey: ${{ secrets.TOKEN }}\n" +
				"  - name: lost\n    command: x\n    env: {K: \"${{ inputs.KEY }}\"}\n  - command: " +
				"nameless\n  - text\n",
			"/home/u/.continue/mcpServers/one.json":    `{"mcpServers": {"j": {"command": "j"}}}`,
			"/w/p/.continue/mcpServers/theirs.yml":     "mcpServers: [{name: theirs, command: x}]",
			"/home/u/.continue/mcpServers/ignored.txt": "x"},
			[]string{"a: a k in /w", "far: http https://far A: b Authorization: Bearer t", "j: j"},
			[]string{"theirs: the bridge doesn't start what a project brings along unless its user has " +
				"said so, and Continue doesn't ask",
				"/home/u/.continue/config.yaml: entry 4 of its list of servers has no name", "/home/u/.continue/config.yaml: entry 5 of its list of servers is a string, not an object",
				"lost: its env.K asks for ${…}, which only Continue can fill in"}},
		{"Kiro and Amazon Q", linux(vars...), tree{
			"/home/u/.kiro/settings/mcp.json": `{"mcpServers": {"a": {"command": "a", "env": {"K": ` +
				`"${KEY}"}, "autoApprove": ["x"], "disabledTools": ["y"]}, "off": {"command": "x", ` +
				`"disabled": true}}}`,
			"/home/u/.aws/amazonq/mcp.json": `{"mcpServers": {"q": {"command": "q"}}}`},
			[]string{`a: a K=k deny ["y"]`, "q: q"}, []string{"off: it is disabled there"}},
		{"Amp", linux(vars...), tree{"/home/u/.config/amp/settings.json": `{"amp.mcpServers": {"a": ` +
			`{"command": "a", "args": ["${KEY}"], "includeTools": ["browser_*"]}, "b": {"url": ` +
			`"https://b"}}, "amp.notifications": true}`},
			[]string{`a: a k allow ["browser_*"]`, "b: http https://b"}, nil},
		{"Crush", linux(vars...), tree{"/home/u/.config/crush/crush.json": `{"mcp": {"a": {"type": "stdio", "command": "a", "args": ["$KEY"], "disabled_tools": ["x"]},
			"b": {"type": "http", "url": "https://b", "headers": {"A": "$(echo $TOKEN)"}}, "c": {"type": "sse", "url": "https://c", "disabled": true}}}`},
			[]string{`a: a k deny ["x"]`}, []string{
				"b: its headers.A has a command or an expansion of a shell in it, which the bridge " +
					"doesn't run", "c: it is disabled there"}},
		{"Crush, its script", linux(), tree{"/home/u/.config/crush/crushrc": "mcp add github --type http " +
			"--url https://x"}, nil, []string{
			"/home/u/.config/crush/crushrc: it is a script, and which servers it would add can't be known " +
				"without running it"}},
		{"Antigravity, Junie, LM Studio and Warp", linux(), tree{
			"/home/u/.gemini/config/mcp_config.json": `{"mcpServers": {"g": {"serverUrl": "https://g"}, ` +
				`"h": {"command": "h", "disabledTools": ["x"]}}}`,
			"/home/u/.junie/mcp/mcp.json": `{"mcpServers": {"j": {"command": "j"}, "odd": ` +
				`{"command": "j", "args": ["${KEY}"]}}}`,
			"/home/u/.lmstudio/mcp.json": `{"mcpServers": {"l": {"url": "https://l"}}}`,
			"/home/u/.warp/.mcp.json": `{"mcpServers": {"w": {"command": "w", "args": [], ` +
				`"working_directory": "/w"}}}`},
			[]string{"g: http https://g", `h: h deny ["x"]`, "j: j", "l: http https://l", "w: w in /w"},
			[]string{"odd: its args[0] has a ${…} in it, and what Junie makes of that isn't known"}},
		{"Claude Desktop knows no remote servers", linux(),
			tree{"/home/u/.config/Claude/claude_desktop_config.json": `{"mcpServers": {"a": {"url": ` +
				`"https://a", "type": "http"}, "b": {"command": "b", "args": ["${HOME}"]}}}`},
			[]string{"b: b ${HOME}"}, []string{"a: it is a remote server, and Claude Desktop starts " +
				"programs only"}},
		{"Claude Code, remote", linux(vars...), tree{"/home/u/.claude.json": `{"mcpServers": {
			"a": {"type": "http", "url": "https://${HOST:-h}/mcp", "headers": {"A": "Bearer ${TOKEN}", "B": "$TOKEN"}, "headersHelper": "/bin/token",
				"oauth": {"clientId": "id", "callbackPort": 8080, "scopes": "a b", "authServerMetadataUrl": "https://m"}},
			"w": {"type": "ws", "url": "wss://w"}, "f": {"type": "http", "url": "file:///x"}, "n": {"type": "http"}, "h": {"type": "http", "url": "https://h", "headers": {"a b": "c"}},
			"i": {"type": "http", "url": "https://h", "headers": {"a": "b\r\nc: d"}}, "o": {"type": "http", "url": "https://h", "oauth": 1}}}`},
			[]string{"a: http https://h/mcp A: Bearer t B: $TOKEN helper /bin/token {Off:false " +
				"ClientID:id ClientSecret: Scopes:[a b] CallbackPort:8080 MetadataURL:https://m Resource:}"},
			[]string{"f: its url is of the kind file:, which isn't HTTP",
				"h: it has a header whose name can't be sent",
				"i: the value of its header a has a line break or a NUL in it", "n: it has no url", "o: its oauth is a number, not an object",
				"w: it is reached by WebSocket, which the protocol doesn't have"}},
		{"Cursor, remote", linux(vars...), tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {"a": {"url": "https://a/${env:KEY}", "headers": {"H": "${userHome}${/}x"},
			"auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "${env:TOKEN}", "scopes": ["s"]}}}}`},
			[]string{"a: http https://a/k H: /home/u/x {Off:false ClientID:id ClientSecret:t Scopes:[s] " +
				"CallbackPort:0 MetadataURL: Resource:}"}, nil},
		{"VS Code, remote", linux(), tree{"/home/u/.config/Code/User/mcp.json": `{"servers": {"u": {"type": "http", "url": "unix:///run/x.sock#/mcp/sub"}, "p": {"type": "http", "url": "pipe:///pipe/x"}, "v": {"type": "http", "url": "unix://run/x.sock"},
			"i": {"type": "http", "url": "https://i", "headers": {"A": "Bearer ${input:key}"}}, "c": {"command": "x", "args": ["${command:pick}"]}}}`},
			[]string{"u: http http://localhost/mcp/sub {Off:true ClientID: ClientSecret: Scopes:[] " +
				"CallbackPort:0 MetadataURL: Resource:} at /run/x.sock"}, []string{
				"c: its args[0] asks for ${command}, which only VS Code can fill in",
				"i: its headers.A asks for an input of VS Code, which nothing else can read", "p: its url is of the kind pipe:, which isn't HTTP",
				"v: its url names a Unix socket that can't be connected to here"}},
		{"home-manager's file, and our own dialect", linux(vars...), tree{
			"/home/u/.config/mcp/mcp.json": `{"mcpServers": {"a": {"command": "a", "env": {"K": ` +
				`"${KEY}"}, "allowedTools": ["r*"], "disabledTools": ["rm"]}}}`,
			"/home/u/.config/mcp/servers/b.json": `{"url": "https://b", "bearerTokenEnv": "TOKEN"}`},
			[]string{`a: a K=k allow ["r*"] deny ["rm"]`, "b: http https://b bearer TOKEN"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Scan(tt.files.fs(), tt.env), tt.servers, tt.problems)
		})
	}
}
