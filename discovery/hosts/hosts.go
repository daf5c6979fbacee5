// Package hosts describes the programs whose files configure MCP servers, a file each. What the
// descriptions say was seen in the programs themselves (Claude Code, Codex, Gemini CLI, OpenCode,
// Copilot CLI) or taken from their documentation.
//
// To add a host, describe it in a file, add it to All, and try it in discovery/testdata/hosts.
package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// All is every host. The first to define a server's name wins; within a host it is the file that is
// nearer to the project, as in the host itself.
var All = []*config.Host{
	claudeCode, claudeDesktop, cursor,
	vsCode, vsCodeInsiders, vsCodium, vsCodeServer,
	codex, gemini, openCode, kiloCode, qwenCode, factoryDroid, copilot,
	devinDesktop, windsurf, cline, rooCode, zed, goose, continueDev, junie, kiro, amazonQ,
	antigravity, lmStudio, warp, amp, crush, visualStudio,
	own,
}

// Dirs returns the directories that the hosts' patterns name.
func Dirs() (dirs []config.Dir) {
	for _, h := range All {
		dirs = append(dirs, h.Dirs...)
	}
	return dirs
}
