// Package hosts describes the programs whose files configure MCP servers, a file each. What the
// descriptions say was seen in the programs themselves (Claude Code, Codex, Gemini CLI, OpenCode,
// Copilot CLI) or taken from their documentation.
//
// To add a host, describe it in a file, add it to All, and try it in discovery/testdata/hosts.
package hosts

import (
	"cmp"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// All is every host. The first to define a server's name wins; within a host it is the file that is
// nearer to the project, as in the host itself.
var All = withFormats(
	claudeCode, claudeDesktop, cursor,
	vsCode, vsCodeInsiders, vsCodium, vsCodeServer,
	codex, gemini, openCode, kiloCode, qwenCode, factoryDroid, copilot,
	devinDesktop, windsurf, cline, rooCode, zed, goose, continueDev, junie, kiro, amazonQ,
	antigravity, lmStudio, warp, amp, crush, visualStudio,
	own,
)

// What several hosts are told of the bridge's entry.
var (
	stdioType = config.Object{{Name: "type", Value: config.Of("stdio")}}
	ownTools  = []string{"run_python", "search_tools", "read_output"}
)

// off is Install.Off of a host with a member of the entry for it.
func off(member string, value bool) func([]string) config.Preference {
	return func(entry []string) config.Preference {
		return config.Preference{Path: append(slices.Clone(entry), member), Value: config.Of(value)}
	}
}

// toolSeconds is more than a run may take by default (MCP_BRIDGE_MAX_TIMEOUT).
const toolSeconds = 150

// Dirs returns the directories that the hosts' patterns name.
func Dirs() (dirs []config.Dir) {
	for _, h := range All {
		dirs = append(dirs, h.Dirs...)
	}
	return dirs
}

// withFormats gives the files that have no format of their own that of their host.
func withFormats(all ...*config.Host) []*config.Host {
	for _, h := range all {
		for i := range h.Files {
			h.Files[i].Format = cmp.Or(h.Files[i].Format, h.Format)
		}
	}
	return all
}
