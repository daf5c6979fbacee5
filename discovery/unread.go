package discovery

import "strings"

// unread are files and directories that may hold servers and that no row of sources reads: those of
// hosts whose ways aren't known well enough, and those that the Python program of this name read,
// and no host does.
var unread = []struct {
	host  string
	where map[string][]string
}{
	{"mcphub.nvim", all("{config}/mcphub/servers.json")},
	{"Rovo Dev", all("{home}/.rovodev/mcp.json")},
	{"Copilot in JetBrains", all("{config}/github-copilot/intellij/mcp.json")},
	{"Copilot in Xcode", all("{config}/github-copilot/xcode/mcp.json")},
	{earlier, all("{home}/MCPs", "{home}/.opencode.json", "{workspace}/mcp-servers")},
	{earlier, all("{workspace}/claude_code_config.json", "{workspace}/claude_desktop_config.json")},
	{earlier, perOS("Claude Code/claude_code_config.json")},
	{earlier, perOS("Claude Code/mcp/servers")},
	{earlier, perOS("Claude/claude_code_config.json")},
	{earlier, perOS("Claude/mcp/servers")},
}

// earlier is what messages call the Python program.
const earlier = "the earlier mcp-bridge"

// unread reports what is there of it, unless the user lists it, and servers in the settings of VS
// Code, which moved out of there.
func (s *scan) unread() {
	for _, u := range unread {
		for _, p := range s.places.expand(u.where) {
			info, err := s.stat(p)
			if err != nil || s.listing[p] || info.IsDir() && !s.holdsJSON(p) {
				continue
			}
			why := refusal{"it is not read: what " + u.host + " makes of its servers isn't known well enough",
				"list it in MCP_BRIDGE_CONFIG if they are to be used"}
			if u.host == earlier {
				why = refusal{"it is not read: " + u.host + " did, and no host does",
					"move it to " + s.places.native("~/.config/mcp/servers/") + ", or list it in MCP_BRIDGE_CONFIG"}
			}
			s.refuse(Source{u.host, "user", p}, "", Unusable, why)
		}
	}
	for _, e := range editions {
		for _, p := range s.places.expand(perOS(e.dir + "/settings.json")) {
			f := s.load(Source{e.host, "settings", p}, false, false)
			if f.rules != nil && (member(f.rules, "mcp/servers") != nil || get(f.rules, "mcp.servers") != nil) {
				why := refusal{"its mcp.servers are not read: " + e.host + " keeps them in mcp.json now",
					"move them there, as " + e.host + " does when it is started"}
				s.refuse(Source{e.host, "settings", p}, "", Unusable, why)
			}
		}
	}
}

// holdsJSON reports whether a directory has files that would be read if it were listed, and that
// aren't.
func (s *scan) holdsJSON(dir string) bool {
	names, err := s.list(dir, ".json")
	for _, name := range names {
		if !s.listing[strings.TrimRight(dir, `/\`)+s.places.native("/"+name)] {
			return err == nil
		}
	}
	return false
}
