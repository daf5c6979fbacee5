package discovery

import "github.com/tailscale/hujson"

// A row is one source: where its files are and how its host reads them. Where is by GOOS, with linux for all that aren't
// named; an empty one means that there is none. It holds patterns, for places.expand; a pattern that ends in /*.json or /*.yaml is a
// directory, of which the one has *.json files and the other *.yaml and *.yml too.
type row struct {
	host, scope string
	where       map[string][]string
	pick        func(*scan, Source, *hujson.Object) []servers // nil means the objects under form.keys
	form        form
}

// readers are the sources whose files other files name.
var readers = map[[2]string]func(*scan, row){{claudeCode, pluginScope}: readPlugins, {copilot, "repository"}: readCopilot}

// servers is an object of entries and what its file says about all of them.
type servers struct {
	entries     *hujson.Object
	description string
}

// localScope is of servers that stand in another file than the project's, under its path.
const localScope = "local"

// sources is every source, the first to define a name wins. Within a host the order is the host's own: what is nearer to the
// project first.
var sources = []row{
	{claudeCode, "managed", managed("managed-mcp.json"), nil, claudeForm},
	{claudeCode, localScope, all("{claude.json}"), pickLocal, claudeForm},
	{claudeCode, "project", all("{up}/.mcp.json"), nil, claudeProjectForm},
	{claudeCode, "user", all("{claude.json}"), nil, claudeForm},
	{claudeCode, pluginScope, nil, nil, claudePluginForm},
	{"Claude Desktop", "user", perOS("Claude/claude_desktop_config.json"), nil, desktopForm},
	{"Cursor", "project", all("{workspace}/.cursor/mcp.json"), nil, cursorForm(unknown)},
	{"Cursor", "user", all("{home}/.cursor/mcp.json"), nil, cursorForm(open)},
	{"VS Code", "workspace", all("{workspace}/.vscode/mcp.json"), nil, codeForm(unknown)},
	{"VS Code", "user", perOS("Code/User/mcp.json"), nil, codeForm(open)},
	{"VS Code", "profile", all("{VS Code profiles}/mcp.json"), nil, codeForm(open)},
	{"VS Code Insiders", "user", perOS("Code - Insiders/User/mcp.json"), nil, codeForm(open)},
	{"VS Code Insiders", "profile", all("{VS Code Insiders profiles}/mcp.json"), nil, codeForm(open)},
	{"VSCodium", "user", perOS("VSCodium/User/mcp.json"), nil, codeForm(open)},
	{"VSCodium", "profile", all("{VSCodium profiles}/mcp.json"), nil, codeForm(open)},
	{"VS Code Server", "user", all("{home}/.vscode-server/data/User/mcp.json", "{home}/.vscode-server-insiders/data/User/mcp.json", "{home}/.vscodium-server/data/User/mcp.json"), nil, codeForm(open)},
	{codex, "project", all("{workspace}/.codex/config.toml"), nil, codexForm(codexTrust)},
	{codex, "user", all("{codex}/config.toml"), nil, codexForm(open)},
	{gemini, "system", all("{gemini system}"), nil, geminiForm(open)},
	{gemini, "project", all("{workspace}/.gemini/settings.json"), nil, geminiForm(geminiTrust)},
	{gemini, "user", all("{gemini}/settings.json"), nil, geminiForm(open)},
	{gemini, "system defaults", all("{gemini defaults}"), nil, geminiForm(open)},
	{openCode, "managed", openCodeManaged, pickOpenCode, openCodeForm(openCode, open)},
	{openCode, "OPENCODE_CONFIG", all("{opencode.json}", "{opencode dir}/opencode.json", "{opencode dir}/opencode.jsonc"), pickOpenCode, openCodeForm(openCode, open)},
	{openCode, "project", all("{workspace}/.opencode/opencode.json", "{workspace}/.opencode/opencode.jsonc", "{workspace}/opencode.json", "{workspace}/opencode.jsonc"), pickOpenCode, openCodeForm(openCode, unasked)},
	{openCode, "user", all("{home}/.opencode/opencode.json", "{home}/.opencode/opencode.jsonc", "{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"), pickOpenCode, openCodeForm(openCode, open)},
	{kilo, "project", all("{workspace}/.kilo/kilo.json", "{workspace}/.kilo/kilo.jsonc", "{workspace}/kilo.json", "{workspace}/kilo.jsonc"), pickOpenCode, openCodeForm(kilo, unasked)},
	{kilo, "user", all("{config}/kilo/kilo.json", "{config}/kilo/kilo.jsonc", "{config}/kilo/config.json"), pickOpenCode, openCodeForm(kilo, open)},
	{kilo, "older project", all("{workspace}/.kilocode/mcp.json"), nil, rooForm(unasked)},
	{kilo, "VS Code", extension("kilocode.kilo-code/settings/mcp_settings.json"), nil, rooForm(open)},
	{kilo, "older CLI", all("{home}/.kilocode/cli/global/settings/mcp_settings.json"), nil, rooForm(open)},
	{qwen, "system", all("{qwen system}"), nil, geminiForm(open)},
	{qwen, "project", all("{workspace}/.qwen/settings.local.json", "{workspace}/.qwen/settings.json"), nil, geminiForm(unknown)},
	{qwen, "user", all("{home}/.qwen/settings.json"), nil, geminiForm(open)},
	{qwen, "system defaults", all("{qwen defaults}"), nil, geminiForm(open)},
	{"Factory Droid", "project", all("{workspace}/.factory/mcp.json"), nil, droidForm(unasked)},
	{"Factory Droid", "user", all("{home}/.factory/mcp.json"), nil, droidForm(open)},
	{copilot, "workspace", all("{workspace}/.github/mcp.json"), nil, copilotForm(copilotTrust)},
	{copilot, "repository", nil, nil, copilotForm(copilotTrust)},
	{copilot, "user", all("{copilot}/mcp-config.json"), nil, copilotForm(open)},
	{"Devin Desktop", "project", all("{workspace}/.devin/mcp_config.json"), nil, windsurfForm(unknown)},
	{"Devin Desktop", "user", onWindows("{config}/devin/mcp_config.json", "{appdata}/devin/mcp_config.json"), nil, windsurfForm(open)},
	{"Windsurf", "user", all("{home}/.codeium/windsurf/mcp_config.json"), nil, windsurfForm(open)},
	{"Cline", "CLINE_MCP_SETTINGS_PATH", all("{cline.json}"), nil, clineForm},
	{"Cline", "shared", all("{cline}/data/settings/cline_mcp_settings.json"), nil, clineForm},
	{"Cline", "VS Code", extension("saoudrizwan.claude-dev/settings/cline_mcp_settings.json"), nil, clineForm},
	{"Roo Code", "project", all("{workspace}/.roo/mcp.json"), nil, rooForm(unasked)},
	{"Roo Code", "VS Code", extension("rooveterinaryinc.roo-cline/settings/mcp_settings.json"), nil, rooForm(open)},
	{"Zed", "project", all("{workspace}/.zed/settings.json"), nil, zedForm(unknown)},
	{"Zed", "user", onWindows("{config}/zed/settings.json", "{appdata}/Zed/settings.json"), nil, zedForm(open)},
	{"Goose", "user", onWindows("{config}/goose/config.yaml", "{appdata}/Block/goose/config/config.yaml"), nil, gooseForm},
	{"Continue", "project", all("{workspace}/.continue/mcpServers/*.yaml"), nil, continueForm(unasked)},
	{"Continue", "user", all("{home}/.continue/config.yaml", "{home}/.continue/mcpServers/*.yaml"), nil, continueForm(open)},
	{"Junie", "project", all("{workspace}/.junie/mcp/mcp.json"), nil, gated(unasked)},
	{"Junie", "user", all("{home}/.junie/mcp/mcp.json"), nil, plainForm()},
	{"Kiro", "workspace", all("{workspace}/.kiro/settings/mcp.json"), nil, kiroForm(unasked)},
	{"Kiro", "user", all("{home}/.kiro/settings/mcp.json"), nil, kiroForm(open)},
	{"Amazon Q", "user", all("{home}/.aws/amazonq/mcp.json"), nil, kiroForm(open)},
	{"Antigravity", "project", all("{workspace}/.agents/mcp_config.json"), nil, antigravityForm(unasked)},
	{"Antigravity", "user", all("{home}/.gemini/config/mcp_config.json", "{home}/.gemini/antigravity/mcp_config.json"), nil, antigravityForm(open)},
	{"LM Studio", "user", all("{home}/.lmstudio/mcp.json", "{home}/.cache/lm-studio/mcp.json"), nil, plainForm()},
	{"Warp", "user", all("{home}/.warp/.mcp.json"), nil, warpForm},
	{amp, "managed", ampManaged, nil, ampForm(open)},
	{amp, "workspace", all("{workspace}/.amp/settings.json", "{workspace}/.amp/settings.jsonc"), nil, ampForm(unknown)},
	{amp, "user", map[string][]string{"linux": {"{config}/amp/settings.json", "{config}/amp/settings.jsonc"}, "windows": {"{appdata}/amp/settings.json", "{appdata}/amp/settings.jsonc"}}, nil, ampForm(open)},
	{"Crush", "project", all("{workspace}/.crush.json", "{workspace}/crush.json"), nil, crushForm(unasked)},
	{"Crush", "user", onWindows("{config}/crush/crush.json", "{localappdata}/crush/crush.json"), nil, crushForm(open)},
	{"Visual Studio", "user", map[string][]string{"linux": nil, "windows": {"{home}/.mcp.json"}}, nil, visualStudioForm},
	{own, "shared", all("{config}/mcp/mcp.json"), nil, ownForm},
	{own, "user", all("{config}/mcp/servers/*.json"), nil, ownForm},
}

// Files of administrators.
var (
	openCodeManaged = map[string][]string{
		"linux":   {"/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc"},
		"darwin":  {"/Library/Application Support/opencode/opencode.json", "/Library/Application Support/opencode/opencode.jsonc"},
		"windows": {"C:/ProgramData/opencode/opencode.json", "C:/ProgramData/opencode/opencode.jsonc"},
	}
	ampManaged = perSystem("/etc/ampcode/managed-settings.json", "/Library/Application Support/ampcode/managed-settings.json", "C:/ProgramData/ampcode/managed-settings.json")
)

// Hosts is how many programs there are whose files are looked at, the bridge not counted.
func Hosts() int {
	hosts := map[string]bool{}
	for _, r := range sources {
		hosts[r.host] = true
	}
	delete(hosts, own)
	return len(hosts)
}

func all(patterns ...string) map[string][]string { return map[string][]string{"linux": patterns} }

// onWindows is a file that is elsewhere on windows than on all others.
func onWindows(others, windows string) map[string][]string {
	return map[string][]string{"linux": {others}, "windows": {windows}}
}

// perOS is a file below the directory where the system's programs keep their users' settings.
func perOS(file string) map[string][]string {
	return perSystem("{config}/"+file, "{home}/Library/Application Support/"+file, "{appdata}/"+file)
}

// extension is a file that an extension of VS Code keeps, in each edition.
func extension(file string) map[string][]string {
	where := map[string][]string{}
	for _, e := range editions {
		for system, patterns := range perOS(e.dir + "/globalStorage/" + file) {
			where[system] = append(where[system], patterns...)
		}
	}
	return where
}

func perSystem(linux, darwin, windows string) map[string][]string {
	return map[string][]string{"linux": {linux}, "darwin": {darwin}, "windows": {windows}}
}

// managed is a file of Claude Code's administrator.
func managed(file string) map[string][]string {
	return perSystem("/etc/claude-code/"+file, "/Library/Application Support/ClaudeCode/"+file, "C:/Program Files/ClaudeCode/"+file)
}
