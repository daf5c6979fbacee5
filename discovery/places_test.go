package discovery

import (
	"cmp"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// TestPlaces: where each file that is a host's for all projects is on each system: every path of
// every row of the table.
func TestPlaces(t *testing.T) {
	const servers = `{"mcpServers": {"s": {"command": "x"}}}`
	linux := linux("OPENCODE_CONFIG=/v/oc.json", "OPENCODE_CONFIG_DIR=/v/oc",
		"CLINE_MCP_SETTINGS_PATH=/v/cline.json")
	linux.Dir = ""
	mac := Env{Home: "/Users/u", GOOS: "darwin", Getenv: linux.Getenv}
	windows := Env{Home: `C:\Users\u`, GOOS: "windows", Getenv: getenv(`OPENCODE_CONFIG=C:\v\oc.json`,
		`OPENCODE_CONFIG_DIR=C:\v\oc`, `CLINE_MCP_SETTINGS_PATH=C:\v\cline.json`)}
	const toml, yaml = "[mcp_servers.s]\ncommand = \"x\"\n", "extensions: {s: {type: stdio, cmd: x}}"
	const code = `{"servers": {"s": {"command": "x"}}}`
	const openCodeServers = `{"mcp": {"s": {"type": "local", "command": ["x"]}}}`
	tried := map[string]bool{} // by system and path
	for _, tt := range []struct {
		host, data           string
		linux, darwin, other string // below the home directory, or absolute
	}{
		{"Claude Code", servers, "/etc/claude-code/managed-mcp.json",
			"/Library/Application Support/ClaudeCode/managed-mcp.json", `C:\Program Files\ClaudeCode\managed-mcp.json`},
		{"Gemini CLI", servers, "/etc/gemini-cli/settings.json",
			"/Library/Application Support/GeminiCli/settings.json", `C:\ProgramData\gemini-cli\settings.json`},
		{"Gemini CLI", servers, "/etc/gemini-cli/system-defaults.json",
			"/Library/Application Support/GeminiCli/system-defaults.json", `C:\ProgramData\gemini-cli\system-defaults.json`},
		{"Qwen Code", servers, "/etc/qwen-code/settings.json",
			"/Library/Application Support/QwenCode/settings.json", `C:\ProgramData\qwen-code\settings.json`},
		{"Qwen Code", servers, "/etc/qwen-code/system-defaults.json",
			"/Library/Application Support/QwenCode/system-defaults.json", `C:\ProgramData\qwen-code\system-defaults.json`},
		{"Qwen Code", servers, ".qwen/settings.json", "", ""},
		{"OpenCode", openCodeServers, "/etc/opencode/opencode.json",
			"/Library/Application Support/opencode/opencode.json", `C:\ProgramData\opencode\opencode.json`},
		{"OpenCode", openCodeServers, "/etc/opencode/opencode.jsonc",
			"/Library/Application Support/opencode/opencode.jsonc", `C:\ProgramData\opencode\opencode.jsonc`},
		{"OpenCode", openCodeServers, "/v/oc.json", "", `C:\v\oc.json`},
		{"OpenCode", openCodeServers, "/v/oc/opencode.json", "", `C:\v\oc\opencode.json`},
		{"OpenCode", openCodeServers, "/v/oc/opencode.jsonc", "", `C:\v\oc\opencode.jsonc`},
		{"OpenCode", openCodeServers, ".opencode/opencode.json", "", ""},
		{"OpenCode", openCodeServers, ".opencode/opencode.jsonc", "", ""},
		{"Kilo Code", openCodeServers, ".config/kilo/kilo.json", "", ""},
		{"Kilo Code", openCodeServers, ".config/kilo/kilo.jsonc", "", ""},
		{"Kilo Code", openCodeServers, ".config/kilo/config.json", "", ""},
		{"Kilo Code", servers, ".kilocode/cli/global/settings/mcp_settings.json", "", ""},
		{"Factory Droid", servers, ".factory/mcp.json", "", ""},
		{"Cline", servers, "/v/cline.json", "", `C:\v\cline.json`},
		{"Amp", `{"amp.mcpServers": {"s": {"command": "x"}}}`, "/etc/ampcode/managed-settings.json",
			"/Library/Application Support/ampcode/managed-settings.json", `C:\ProgramData\ampcode\managed-settings.json`},
		{"Amp", `{"amp.mcpServers": {"s": {"command": "x"}}}`, ".config/amp/settings.jsonc", "",
			`AppData\Roaming\amp\settings.jsonc`},
		{"Cline", servers, ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", `AppData\Roaming\Code\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json`},
		{"Cline", servers, ".config/Code - " +
			"Insiders/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "Library/Application Support/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", `AppData\Roaming\Code - Insiders\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json`},
		{"Cline", servers, ".config/VSCodium/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "Library/Application Support/VSCodium/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", `AppData\Roaming\VSCodium\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json`},
		{"Roo Code", servers, ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", `AppData\Roaming\Code\User\globalStorage\rooveterinaryinc.roo-cline\settings\mcp_settings.json`},
		{"Roo Code", servers, ".config/Code - " +
			"Insiders/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", "Library/Application Support/Code - Insiders/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", `AppData\Roaming\Code - Insiders\User\globalStorage\rooveterinaryinc.roo-cline\settings\mcp_settings.json`},
		{"Roo Code", servers, ".config/VSCodium/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", "Library/Application Support/VSCodium/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", `AppData\Roaming\VSCodium\User\globalStorage\rooveterinaryinc.roo-cline\settings\mcp_settings.json`},
		{"Kilo Code", servers, ".config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", "Library/Application Support/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", `AppData\Roaming\Code\User\globalStorage\kilocode.kilo-code\settings\mcp_settings.json`},
		{"Kilo Code", servers, ".config/Code - " +
			"Insiders/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", "Library/Application Support/Code - Insiders/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", `AppData\Roaming\Code - Insiders\User\globalStorage\kilocode.kilo-code\settings\mcp_settings.json`},
		{"Kilo Code", servers, ".config/VSCodium/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", "Library/Application Support/VSCodium/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json", `AppData\Roaming\VSCodium\User\globalStorage\kilocode.kilo-code\settings\mcp_settings.json`},
		{"VS Code", code, ".config/Code/User/profiles/p/mcp.json",
			"Library/Application Support/Code/User/profiles/p/mcp.json", `AppData\Roaming\Code\User\profiles\p\mcp.json`},
		{"VS Code Insiders", code, ".config/Code - Insiders/User/profiles/p/mcp.json",
			"Library/Application Support/Code - Insiders/User/profiles/p/mcp.json", `AppData\Roaming\Code ` +
				`- Insiders\User\profiles\p\mcp.json`},
		{"VSCodium", code, ".config/VSCodium/User/profiles/p/mcp.json",
			"Library/Application Support/VSCodium/User/profiles/p/mcp.json", `AppData\Roaming\VSCodium\User\profiles\p\mcp.json`},
		{"Codex", toml, ".codex/config.toml", "", ""},
		{"Gemini CLI", servers, ".gemini/settings.json", "", ""},
		{"OpenCode", `{"mcp": {"s": {"type": "local", "command": ["x"]}}}`, ".config/opencode/opencode.json",
			"", ""},
		{"OpenCode", `{"mcp": {"s": {"type": "local", "command": ["x"]}}}`, ".config/opencode/opencode.jsonc",
			"", ""},
		{"Copilot CLI", servers, ".copilot/mcp-config.json", "", ""},
		{"Windsurf", servers, ".codeium/windsurf/mcp_config.json", "", ""},
		{"Devin Desktop", servers, ".config/devin/mcp_config.json", "",
			`AppData\Roaming\devin\mcp_config.json`},
		{"Zed", `{"context_servers": {"s": {"command": "x"}}}`, ".config/zed/settings.json", "",
			`AppData\Roaming\Zed\settings.json`},
		{"Goose", yaml, ".config/goose/config.yaml", "", `AppData\Roaming\Block\goose\config\config.yaml`},
		{"Continue", "mcpServers: [{name: s, command: x}]", ".continue/config.yaml", "", ""},
		{"Junie", servers, ".junie/mcp/mcp.json", "", ""},
		{"Kiro", servers, ".kiro/settings/mcp.json", "", ""},
		{"Amazon Q", servers, ".aws/amazonq/mcp.json", "", ""},
		{"Antigravity", servers, ".gemini/config/mcp_config.json", "", ""},
		{"Antigravity", servers, ".gemini/antigravity/mcp_config.json", "", ""},
		{"LM Studio", servers, ".lmstudio/mcp.json", "", ""},
		{"LM Studio", servers, ".cache/lm-studio/mcp.json", "", ""},
		{"Warp", servers, ".warp/.mcp.json", "", ""},
		{"Amp", `{"amp.mcpServers": {"s": {"command": "x"}}}`, ".config/amp/settings.json", "",
			`AppData\Roaming\amp\settings.json`},
		{"Crush", `{"mcp": {"s": {"type": "stdio", "command": "x"}}}`, ".config/crush/crush.json", "",
			`AppData\Local\crush\crush.json`},
		{"VS Code", `{"servers": {"s": {"command": "x"}}}`, ".config/Code/User/mcp.json",
			"Library/Application Support/Code/User/mcp.json", `AppData\Roaming\Code\User\mcp.json`},
		{"VS Code Insiders", code, ".config/Code - Insiders/User/mcp.json",
			"Library/Application Support/Code - Insiders/User/mcp.json", `AppData\Roaming\Code - ` +
				`Insiders\User\mcp.json`},
		{"VSCodium", code, ".config/VSCodium/User/mcp.json",
			"Library/Application Support/VSCodium/User/mcp.json", `AppData\Roaming\VSCodium\User\mcp.json`},
		{"VS Code Server", code, ".vscode-server/data/User/mcp.json", "", ""},
		{"VS Code Server", code, ".vscode-server-insiders/data/User/mcp.json", "", ""},
		{"VS Code Server", code, ".vscodium-server/data/User/mcp.json", "", ""},
		{"Claude Code", servers, ".claude.json", "", ""},
		{"Claude Desktop", servers, ".config/Claude/claude_desktop_config.json",
			"Library/Application Support/Claude/claude_desktop_config.json", `AppData\Roaming\Claude\claude_desktop_config.json`},
		{"Cursor", servers, ".cursor/mcp.json", "", ""},
		{"Cline", servers, ".cline/data/settings/cline_mcp_settings.json", "", ""},
		{"Continue", servers, ".continue/mcpServers/s.json", "", ""},
		{own, servers, ".config/mcp/mcp.json", "", ""},
		{own, servers, ".config/mcp/servers/s.json", "", ""},
		{"Visual Studio", `{"servers": {"s": {"command": "x"}}}`, "", "", `.mcp.json`},
	} {
		for _, on := range []struct {
			env        Env
			below, sep string
		}{{linux, tt.linux, "/"}, {mac, tt.darwin, "/"}, {windows, tt.other, `\`}} {
			below := cmp.Or(on.below, tt.linux)
			if below == "" {
				continue
			}
			file := below
			if below[0] != '/' && !strings.HasPrefix(below, `C:\`) {
				file = on.env.Home + on.sep + below
			}
			if on.sep == `\` {
				file = strings.ReplaceAll(file, "/", `\`)
			}
			tried[on.env.GOOS+" "+file] = true
			t.Run(tt.host+" on "+on.env.GOOS, func(t *testing.T) {
				c := Scan(profiles(on.env).with(file, tt.data).fs(), on.env)
				if len(c.Servers) != 1 || c.Servers[0].Source.Host != tt.host ||
					c.Servers[0].Command != "x" || c.Servers[0].Source.Path != file {
					t.Errorf("%s: got %v", file, c)
				}
			})
		}
	}
	for _, env := range []Env{linux, mac, windows} {
		_, paths := opened(profiles(env).fs(), env)
		for _, r := range rows() {
			for _, p := range paths(r) {
				p = strings.NewReplacer("*.yaml", "s.json", "*.json", "s.json").Replace(p)
				if !tried[env.GOOS+" "+p] {
					t.Errorf("%s of %s, %s, is not tried on %s", p, r.host, r.Scope, env.GOOS)
				}
			}
		}
	}
}

// profiles is a home in which each edition of VS Code has a profile p.
func profiles(env Env) tree {
	files := tree{}
	for _, e := range []struct{ dir string }{{"Code/User"}, {"Code - Insiders/User"}, {"VSCodium/User"}} {
		dir := map[string]string{"linux": env.Home + "/.config/", "darwin": env.Home +
			"/Library/Application Support/", "windows": env.Home + `\AppData\Roaming\`}[env.GOOS] + e.dir
		files[dir+"/globalStorage/storage.json"] = `{"userDataProfiles": [{"location": "p"}]}`
	}
	return files
}

// TestProjectPlaces: a file of a project's is found in the working directory and in the root of its
// repository, on each system, and nobody's servers are started but those that their user has said
// yes to.
func TestProjectPlaces(t *testing.T) {
	const servers, code = `{"mcpServers": {"s": {"command": "x"}}}`, `{"servers": {"s": {"command": "x"}}}`
	files := map[string]string{
		".cursor/mcp.json": servers, ".vscode/mcp.json": code, ".codex/config.toml": "[mcp_servers.s]\ncommand = \"x\"\n", ".gemini/settings.json": servers,
		"opencode.json": `{"mcp": {"s": {"type": "local", "command": ["x"]}}}`, "opencode.jsonc": `{"mcp": {"s": {"type": "local", "command": ["x"]}}}`,
		".github/mcp.json": servers, ".devin/mcp_config.json": servers, ".roo/mcp.json": servers, ".zed/settings.json": `{"context_servers": {"s": {"command": "x"}}}`,
		".continue/mcpServers/s.yaml": "mcpServers: [{name: s, command: x}]", ".junie/mcp/mcp.json": servers, ".kiro/settings/mcp.json": servers,
		".agents/mcp_config.json": servers, ".amp/settings.json": `{"amp.mcpServers": {"s": {"command": ` +
			`"x"}}}`, ".crush.json": `{"mcp": {"s": {"command": "x"}}}`,
		"crush.json": `{"mcp": {"s": {"command": "x"}}}`, ".mcp.json": servers, ".amp/settings.jsonc": `{"amp.mcpServers": {"s": {"command": "x"}}}`,
		".kilocode/mcp.json": servers, ".qwen/settings.json": servers, ".qwen/settings.local.json": servers, ".factory/mcp.json": servers,
	}
	for _, name := range []string{".opencode/opencode.json", ".opencode/opencode.jsonc", "kilo.json",
		"kilo.jsonc", ".kilo/kilo.json", ".kilo/kilo.jsonc"} {
		files[name] = files["opencode.json"]
	}
	for file, data := range files {
		for _, env := range []Env{linux(), {Home: "/Users/u", Dir: "/w/p", GOOS: "darwin"},
			{Home: `C:\Users\u`, Dir: `C:\w\p`, GOOS: "windows"}} {
			native := func(p string) string {
				if env.GOOS == "windows" {
					return strings.ReplaceAll(p, "/", `\`)
				}
				return p
			}
			found := tree{env.Dir + native("/"+file): data, env.Dir + native("/.git/HEAD"): ""}
			for _, below := range []string{"", "/deep/er"} {
				here := env
				here.Dir += native(below)
				c := Scan(found.fs(), here)
				if len(c.Servers) != 0 || len(c.Problems) != 1 || c.Problems[0].State != Unapproved ||
					c.Problems[0].Server != "s" {
					t.Errorf("%s on %s in %s: %v, %v", file, env.GOOS, here.Dir, c.Servers, c.Problems)
				}
			}
		}
	}
	for _, r := range rows() {
		for _, pattern := range r.Paths.Linux {
			_, below, _ := strings.Cut(pattern, "}/")
			if r.Approval != config.None && files[strings.Replace(below, "*", "s", 1)] == "" {
				t.Errorf("%s of %s is not tried", pattern, r.host)
			}
		}
	}
}
