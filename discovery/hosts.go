package discovery

// The forms of the hosts. What they say was seen in the hosts themselves (Claude Code, Codex, Gemini CLI, OpenCode, Copilot CLI)
// or taken from their documentation.

const (
	own        = "mcp-bridge"
	claudeCode = "Claude Code"
	codex      = "Codex"
	gemini     = "Gemini CLI"
	qwen       = "Qwen Code"
	copilot    = "Copilot CLI"
	amp        = "Amp"
)

// plainForm is what most hosts have in common.
func plainForm() form {
	return form{
		keys: []string{"mcpServers"}, foreign: "servers", command: "command", env: "env",
		urls: []urlMember{{"url", HTTP}}, headers: "headers", disabled: "disabled", enabled: "enabled", dialect: undocumented,
	}
}

// with is a copy that differs from f as change says.
func (f form) with(change func(*form)) form {
	change(&f)
	return f
}

// claudeForm heeds neither disabled nor cwd, as Claude Code does not.
var claudeForm = form{
	keys: []string{"mcpServers"}, strict: true, dialect: braces, command: "command", env: "env",
	urls: []urlMember{{"url", HTTP}}, typedURL: true, headers: "headers", helper: "headersHelper",
	oauth: "oauth", oauthWords: oauthWords{clientID: "clientId", scopes: "scopes", port: "callbackPort", metadata: "authServerMetadataUrl"},
	rules: func(s *scan, server string) []RuleList { return s.claude.toolRules(server) },
}

var claudePluginForm = claudeForm.with(func(f *form) { f.dialect = options })

var claudeProjectForm = claudeForm.with(func(f *form) { f.foreign, f.gate = "servers", asked })

var desktopForm = plainForm().with(func(f *form) { f.strict, f.programs, f.dialect = true, true, dialect{} })

// ownForm is of the bridge's own files: either key, or a single entry.
var ownForm = plainForm().with(func(f *form) {
	f.keys, f.foreign, f.single = []string{"mcpServers", "servers"}, "", true
	f.cwd, f.nullEnv, f.dialect = "cwd", true, braces
	f.helper, f.bearerEnv = "headersHelper", "bearerTokenEnv"
	f.oauth, f.oauthWords = "oauth", claudeForm.oauthWords
	f.oauthWords.clientSecret = "clientSecret"
	f.allow, f.deny, f.globs = "allowedTools", "disabledTools", true
	f.envFile = "envFile"
})

var noSandbox = cannot{"sandboxEnabled", refusal{"VS Code runs it in a sandbox of its own, which the bridge can't do", "list it in a file of MCP_BRIDGE_CONFIG to run it without"}}

func cursorForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.dialect, f.envFile = g, editor, "envFile"
		f.oauth, f.oauthWords = "auth", oauthWords{clientID: "CLIENT_ID", clientSecret: "CLIENT_SECRET", scopes: "scopes"}
	})
}

func codeForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.keys, f.foreign, f.gate, f.dialect = []string{"servers"}, "mcpServers", g, editor
		f.cwd, f.nullEnv, f.envFile, f.cannot = "cwd", true, "envFile", []cannot{noSandbox}
		f.access, f.sockets = g == open, true
	})
}

var visualStudioForm = codeForm(open).with(func(f *form) { f.access = false })

// windsurfForm is of Windsurf and of its next name, Devin Desktop.
func windsurfForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.dialect, f.deny = g, prefixedFiles, "disabledTools"
		f.urls = []urlMember{{"serverUrl", HTTP}, {"url", HTTP}}
	})
}

var clineForm = plainForm().with(func(f *form) {
	f.dialect, f.enabled, f.urls = prefixed, "", []urlMember{{"url", SSE}} // alwaysAllow and autoApprove are about asking, not filters
})

func rooForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.dialect, f.enabled, f.typedURL, f.cwd, f.deny = g, prefixed, "", true, "cwd", "disabledTools"
	})
}

func zedForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.keys, f.foreign, f.gate, f.dialect = []string{"context_servers"}, "mcpServers", g, dialect{}
		f.disabled, f.nested, f.extensions = "", true, true
	})
}

func codexForm(g gate) form {
	return form{
		keys: []string{"mcp_servers"}, foreign: "mcpServers", gate: g, command: "command", env: "env", cwd: "cwd", forward: "env_vars", enabled: "enabled",
		urls: []urlMember{{"url", HTTP}}, headers: "http_headers", envHeaders: "env_http_headers", helper: "http_headers_helper",
		bearerEnv: "bearer_token_env_var", scopes: "scopes", resource: "oauth_resource", allow: "enabled_tools", deny: "disabled_tools",
	}
}

func geminiForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.dialect, f.cwd, f.disabled, f.enabled, f.foreign = g, dollars, "cwd", "", "", ""
		f.urls = []urlMember{{"httpUrl", HTTP}, {"url", SSE}}
		f.allow, f.deny, f.noneAll = "includeTools", "excludeTools", true
		f.oauth, f.oauthWords = "oauth", oauthWords{clientID: "clientId", clientSecret: "clientSecret", scopes: "scopes", switchedOn: "enabled"}
	})
}

func droidForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.dialect, f.enabled, f.allow, f.deny = g, braces, "", "enabledTools", "disabledTools"
	})
}

// openCodeForm reads both of the shapes that OpenCode takes: the servers under mcp, and under mcp.servers.
func openCodeForm(host string, g gate) form {
	return plainForm().with(func(f *form) {
		f.keys, f.foreign, f.gate, f.dialect = []string{"mcp"}, "mcpServers", g, curly
		f.array, f.env, f.cwd = true, "environment", "cwd"
		f.rules = func(s *scan, server string) []RuleList { return s.openCode[host].of(server, s.places.windows) }
		f.oauth, f.oauthWords = "oauth", oauthWords{clientID: "clientId", clientSecret: "clientSecret", scopes: "scope"}
	})
}

func copilotForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.dialect, f.allow, f.foreign = g, braces, "tools", ""
	})
}

var gooseForm = form{
	keys: []string{"extensions"}, foreign: "mcpServers", command: "cmd", env: "envs", keyring: "env_keys", enabled: "enabled", dialect: dollars,
	urls: []urlMember{{"uri", HTTP}}, headers: "headers", allow: "available_tools", noneAll: true,
	kinds: map[string]refusal{
		"builtin": {"it is built into Goose, which alone can start it", ""}, "platform": {"it is a part of Goose itself", ""},
		"frontend": {"it is a part of Goose's own window", ""}, "inline_python": {"it is code within Goose's settings, which Goose alone runs", ""},
	},
}

func continueForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.listed, f.gate, f.dialect, f.cwd, f.foreign = true, g, templates, "cwd", ""
		f.disabled, f.enabled, f.headers, f.apiKey = "", "", "requestOptions/headers", "apiKey"
	})
}

func kiroForm(g gate) form {
	return plainForm().with(func(f *form) { f.gate, f.dialect, f.enabled, f.deny = g, braces, "", "disabledTools" })
}

func antigravityForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.gate, f.deny, f.urls = g, "disabledTools", []urlMember{{"serverUrl", HTTP}, {"url", HTTP}}
	})
}

func ampForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.keys, f.foreign, f.gate, f.dialect = []string{"amp.mcpServers"}, "mcpServers", g, braces
		f.allow, f.globs = "includeTools", true
		f.rules = func(s *scan, server string) []RuleList { return s.amp.of(server) }
	})
}

func crushForm(g gate) form {
	return plainForm().with(func(f *form) {
		f.keys, f.foreign, f.gate, f.dialect, f.enabled = []string{"mcp"}, "mcpServers", g, shellWords, ""
		f.allow, f.deny, f.noneAll = "enabled_tools", "disabled_tools", true
	})
}

var warpForm = plainForm().with(func(f *form) { f.cwd = "working_directory" })

// gated is a plain form of a project's file.
func gated(g gate) form { return plainForm().with(func(f *form) { f.gate = g }) }
