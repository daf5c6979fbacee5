package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// unread are files and directories that may hold servers and that no host of All reads: those of
// hosts whose ways aren't known well enough, and those that only the Python program of this name
// read.
var unread = []struct {
	host  string
	paths config.Paths
}{
	{"mcphub.nvim", config.Everywhere("{config}/mcphub/servers.json")},
	{"Rovo Dev", config.Everywhere("{home}/.rovodev/mcp.json")},
	{"Copilot in JetBrains", config.Everywhere("{config}/github-copilot/intellij/mcp.json")},
	{"Copilot in Xcode", config.Everywhere("{config}/github-copilot/xcode/mcp.json")},
	{earlier, config.Everywhere("{home}/MCPs", "{home}/.opencode.json", "{workspace}/mcp-servers")},
	{earlier, config.Everywhere("{workspace}/claude_code_config.json",
		"{workspace}/claude_desktop_config.json")},
	{earlier, config.Settings("Claude Code/claude_code_config.json")},
	{earlier, config.Settings("Claude Code/mcp/servers")},
	{earlier, config.Settings("Claude/claude_code_config.json")},
	{earlier, config.Settings("Claude/mcp/servers")},
}

// earlier is what messages call the Python program.
const earlier = "the earlier mcp-bridge"

// LookForUnread reports what is there of unread, unless the user lists it.
func LookForUnread(r *config.Reader) {
	for _, u := range unread {
		for _, p := range r.Expand(u.paths) {
			info, err := r.Stat(p)
			if err != nil || r.Listed(p) || info.IsDir() && !holdsUnlisted(r, p) {
				continue
			}
			why := config.Refuse("it is not read: what "+u.host+" makes of its servers isn't known well "+
				"enough",
				"list it in MCP_BRIDGE_CONFIG if they are to be used")
			if u.host == earlier {
				why = config.Refuse("it is not read: "+u.host+" did, and no host does",
					"move it to "+r.Native("~/.config/mcp/servers/")+", or list it in MCP_BRIDGE_CONFIG")
			}
			r.Refuse(config.Source{Host: u.host, Scope: "user", Path: p}, "", config.Unusable, why)
		}
	}
}

// holdsUnlisted reports whether a directory has *.json files that aren't listed.
func holdsUnlisted(r *config.Reader, dir string) bool {
	names, err := r.Names(dir)
	for _, name := range names {
		p := r.Join(dir, name)
		if err == nil && config.IsJSON(name) && !r.Listed(p) {
			return true
		}
	}
	return false
}
