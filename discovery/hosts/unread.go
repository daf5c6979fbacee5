package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// unread are files and directories that may hold servers and that no host of All reads: those of
// hosts whose ways aren't known well enough, those from where a host has moved its servers, and
// those that only the Python program of this name read.
var unread = []struct {
	host, scope string
	paths       config.Paths
	keys        []string // the file counts where it has one of them; none: where it is there
	why         config.Refusal
}{
	{"mcphub.nvim", "user", config.Everywhere("{config}/mcphub/servers.json"), nil, unknown("mcphub.nvim")},
	{"Rovo Dev", "user", config.Everywhere("{home}/.rovodev/mcp.json"), nil, unknown("Rovo Dev")},
	{"Copilot in JetBrains", "user", config.Everywhere("{config}/github-copilot/intellij/mcp.json"), nil,
		unknown("Copilot in JetBrains")},
	{"Copilot in Xcode", "user", config.Everywhere("{config}/github-copilot/xcode/mcp.json"), nil,
		unknown("Copilot in Xcode")},
	{"Crush", "user", config.Everywhere("{config}/crush/crushrc"), nil, config.Refuse("it is a script, and "+
		"which servers it would add can't be known without running it",
		"list those in a file of MCP_BRIDGE_CONFIG too")},
	{"VS Code", "settings", config.Settings("Code/User/settings.json"), oldKeys, moved},
	{"VS Code Insiders", "settings", config.Settings("Code - Insiders/User/settings.json"), oldKeys, moved},
	{"VSCodium", "settings", config.Settings("VSCodium/User/settings.json"), oldKeys, moved},
	{earlier, "user", config.Everywhere("{home}/MCPs", "{home}/.opencode.json", "{workspace}/mcp-servers",
		"{workspace}/claude_code_config.json", "{workspace}/claude_desktop_config.json"), nil, notOurs},
	{earlier, "user", config.Settings("Claude Code/claude_code_config.json"), nil, notOurs},
	{earlier, "user", config.Settings("Claude Code/mcp/servers"), nil, notOurs},
	{earlier, "user", config.Settings("Claude/claude_code_config.json"), nil, notOurs},
	{earlier, "user", config.Settings("Claude/mcp/servers"), nil, notOurs},
}

// earlier is what messages call the Python program.
const earlier = "the earlier mcp-bridge"

var (
	notOurs = config.Refuse("it is not read: "+earlier+" did, and no host does",
		"move it to the directory mcp/servers below ~/.config, or list it in MCP_BRIDGE_CONFIG")
	moved = config.Refuse("its mcp.servers are not read: they are kept in mcp.json now",
		"move them there, as the program itself does when it is started")
	oldKeys = []string{"mcp/servers", "mcp.servers"}
)

func unknown(host string) config.Refusal {
	return config.Refuse("it is not read: what "+host+" makes of its servers isn't known well enough",
		"list it in MCP_BRIDGE_CONFIG if they are to be used")
}

// LookForUnread reports what is there of unread, unless the user lists it.
func LookForUnread(r *config.Reader) {
	for _, u := range unread {
		for _, p := range r.Expand(u.paths) {
			src := config.Source{Host: u.host, Scope: u.scope, Path: p}
			info, err := r.Stat(p)
			if err != nil || r.Listed[p] || info.IsDir() && !holdsUnlisted(r, p) {
				continue
			}
			found := u.keys == nil
			for _, key := range u.keys {
				found = found || !r.Rule(src, false).Rules.At(key).Is("nothing")
			}
			if found {
				r.Refuse(src, "", config.Unusable, u.why)
			}
		}
	}
}

// holdsUnlisted reports whether a directory has *.json files that aren't listed.
func holdsUnlisted(r *config.Reader, dir string) bool {
	names, err := r.Names(dir)
	for _, name := range names {
		p := r.Join(dir, name)
		if err == nil && config.IsJSON(name) && !r.Listed[p] {
			return true
		}
	}
	return false
}
