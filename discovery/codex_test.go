package discovery

import "testing"

// TestCodexRequirements: an administrator's list holds for all of Codex's servers, by name and by
// what they are, and for no other host's.
func TestCodexRequirements(t *testing.T) {
	const (
		config = "[mcp_servers.s]\ncommand = \"x\"\nargs = [\"1\"]\n[mcp_servers.h]\nurl = " +
			"\"https://h/mcp\"\n"
		denied = ": Codex's administrator doesn't allow it: mcp_servers of /etc/codex/requirements.toml " +
			"(Codex, requirements) has none of this name that is the same"
		blind = ": it can't be told whether Codex's administrator allows it: /etc/codex/requirements.toml " +
			"(Codex, requirements) can't be used"
	)
	for _, tt := range []struct{ name, requirements, s, h string }{
		{"none", "", "", ""},
		{"not of servers", "allowed_sandbox_modes = ['read-only']", "", ""},
		{"both", "[mcp_servers.s.identity]\ncommand='x'\n[mcp_servers.h.identity]\nurl='https://h/mcp'", "",
			""},
		{"one", "[mcp_servers.h.identity]\nurl='https://h/mcp'", denied, ""},
		{"other identities", "[mcp_servers.s.identity]\ncommand='y'\n[mcp_servers.h.identity]\ncommand='x'",
			denied, denied},
		{"an empty list", "[mcp_servers]", denied, denied},
		{"a name alone", "[mcp_servers.s]", denied, denied},
		{"no list", "mcp_servers = true", blind, blind},
		{"not to be read", "[", blind, blind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := tree{"/home/u/.codex/config.toml": config,
				"/home/u/.cursor/mcp.json": `{"mcpServers": {"c": {"command": "x"}}}`}
			if tt.requirements != "" {
				files["/etc/codex/requirements.toml"] = tt.requirements
			}
			c := Scan(files.fs(), linux())
			got := map[string]string{}
			for _, p := range c.Problems {
				if p.State == Denied {
					got[p.Server] = ": " + p.Reason
				}
			}
			used := map[string]bool{}
			for _, s := range c.Servers {
				used[s.Name] = true
			}
			for name, want := range map[string]string{"s": tt.s, "h": tt.h, "c": ""} {
				if got[name] != want || used[name] != (want == "") {
					t.Errorf("%s: %q, want %q; used: %v", name, got[name], want, used[name])
				}
			}
		})
	}
	t.Run("on windows", func(t *testing.T) {
		files := tree{`C:\Users\u\.codex\config.toml`: config,
			`C:\ProgramData\OpenAI\Codex\requirements.toml`: "[mcp_servers.s.identity]\ncommand='x'"}
		check(t, Scan(files.fs(), Env{Home: `C:\Users\u`, GOOS: "windows"}), []string{"s: x 1"},
			[]string{`h: Codex's administrator doesn't allow it: mcp_servers of ` +
				`C:\ProgramData\OpenAI\Codex\requirements.toml (Codex, requirements) has none of this ` +
				`name that is the same`})
	})
}
