// Package hosts describes the programs whose files configure MCP servers, a file each. What the
// descriptions say was seen in the programs themselves (Claude Code, Codex, Gemini CLI, OpenCode,
// Copilot CLI) or taken from their documentation.
//
// To add a host, describe it in a file, add it to All, and try it in discovery/testdata/hosts.
package hosts

import (
	"cmp"

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
