package approvals

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// launderings are what code may do while a bridge runs it, so that a definition of its own, s, is
// started by the next one.
var launderings = []struct {
	name   string
	before func(w *world) // by the user, before
	code   func(w *world)
}{
	{"a file of the bridge's own", nil, func(w *world) {
		w.write("~/.config/mcp/servers/x.json",
			one("s", "evil"))
	}},
	{"a file of a host", nil, func(w *world) { w.write("~/.cursor/mcp.json", one("s", "evil")) }},
	{"another command", func(w *world) { w.write("~/.cursor/mcp.json", one("s", "good")) },
		func(w *world) { w.write("~/.cursor/mcp.json", one("s", "evil")) }},
	{"the same program under another name", func(w *world) {
		w.write("~/.cursor/mcp.json",
			one("other", "good"))
	},
		func(w *world) { w.write("~/.cursor/mcp.json", one("s", "good")) }},
	{"its time set back", nil, func(w *world) {
		w.write("~/.cursor/mcp.json", one("s", "evil"))
		long := time.Now().Add(-1000 * time.Hour)
		for _, p := range []string{"~/.cursor/mcp.json", "~/.cursor", "~/proj"} {
			w.must(os.Chtimes(w.path(p), long, long))
		}
	}},
	{"a file of the user's, moved", func(w *world) {
		w.write("~/.cursor/x", "")
		w.write("p/examples/mcp.json",
			one("s", "evil"))
	},
		func(w *world) { w.must(os.Rename(w.path("p/examples/mcp.json"), w.path("~/.cursor/mcp.json"))) }},
	{"a directory of the user's, moved", func(w *world) {
		w.write("p/examples/cursor/mcp.json",
			one("s", "evil"))
	},
		func(w *world) { w.must(os.Rename(w.path("p/examples/cursor"), w.path("~/.cursor"))) }},
	{"a directory far above, moved", func(w *world) {
		w.write("p/examples/config/mcp/servers/s.json",
			one("s", "evil"))
	},
		func(w *world) { w.must(os.Rename(w.path("p/examples/config"), w.path("~/.config"))) }},
	{"a hard link", func(w *world) {
		w.write("~/.cursor/x", "")
		w.write("p/examples/mcp.json",
			one("s", "evil"))
	},
		func(w *world) { w.must(os.Link(w.path("p/examples/mcp.json"), w.path("~/.cursor/mcp.json"))) }},
	{"a symbolic link", func(w *world) {
		w.write("~/.cursor/x", "")
		w.write("p/examples/mcp.json",
			one("s", "evil"))
	},
		func(w *world) { w.must(os.Symlink(w.path("p/examples/mcp.json"), w.path("~/.cursor/mcp.json"))) }},
	{"a symbolic link to a directory, turned", func(w *world) {
		w.write("p/a/mcp.json", `{"mcpServers": {}}`)
		w.write("p/b/mcp.json", one("s", "evil"))
		w.must(os.Symlink("proj/a", w.path("~/.cursor")))
	}, func(w *world) {
		w.must(os.Remove(w.path("~/.cursor")))
		w.must(os.Symlink("proj/b", w.path("~/.cursor")))
	}},
	{"behind a symbolic link", func(w *world) {
		w.write("dots/mcp.json", `{"mcpServers": {}}`)
		w.must(os.Symlink("../dots", w.path("~/.cursor")))
	}, func(w *world) { w.write("dots/mcp.json", one("s", "evil")) }},
	{"the envFile", func(w *world) {
		w.write("~/.config/mcp/servers/x.json",
			`{"mcpServers": {"s": {"command": "good", "envFile": "HOME/x.env"}}}`)
		w.write("~/x.env", "A=b\n")
	}, func(w *world) { w.write("~/x.env", "NODE_OPTIONS=--require=/tmp/evil.js\n") }},
	{"MCP_BRIDGE_CONFIG's file", func(w *world) {
		w.write("~/mine.json", `{"mcpServers": {}}`)
		w.listed = []string{w.path("~/mine.json")}
	},
		func(w *world) { w.write("~/mine.json", one("s", "evil")) }},
	{"trust in Codex", func(w *world) {
		w.write("p/.codex/config.toml", "[mcp_servers.s]\ncommand = 'evil'\n")
		w.write("~/.codex/config.toml", "")
	},
		func(w *world) { w.write("~/.codex/config.toml", "[projects.\"PROJ\"]\ntrust_level = \"trusted\"\n") }},
	{"Codex's file, trusted", func(w *world) {
		w.write("~/.codex/config.toml",
			"[projects.\"PROJ\"]\ntrust_level = \"trusted\"\n")
	},
		func(w *world) { w.write("p/.codex/config.toml", "[mcp_servers.s]\ncommand = 'evil'\n") }},
	{"trust in Gemini CLI", func(w *world) {
		w.write("p/.gemini/settings.json",
			one("s", "evil"))
		w.write("~/.gemini/x", "")
	},
		func(w *world) { w.write("~/.gemini/trustedFolders.json", `{"PROJ": "TRUST_FOLDER"}`) }},
	{"Gemini CLI's file, trusted", func(w *world) {
		w.write("~/.gemini/trustedFolders.json",
			`{"PROJ": "TRUST_FOLDER"}`)
	},
		func(w *world) { w.write("p/.gemini/settings.json", one("s", "evil")) }},
	{"what Gemini CLI had switched off", func(w *world) {
		w.write("~/.gemini/settings.json",
			`{"security": {"folderTrust": {"enabled": false}}, "mcpServers": {"s": {"command": "evil"}}}`)
		w.write("~/.gemini/mcp-server-enablement.json", `{"s": {"enabled": false}}`)
	}, func(w *world) { w.must(os.Remove(w.path("~/.gemini/mcp-server-enablement.json"))) }},
	{"an approval in ~/.claude.json", func(w *world) {
		w.write("p/.mcp.json",
			one("s", "evil"))
		w.write("~/.claude.json", `{}`)
	},
		func(w *world) { w.write("~/.claude.json", `{"projects": {"PROJ": {"enabledMcpjsonServers": ["s"]}}}`) }},
	{"an approval in settings.local.json", func(w *world) {
		w.write("p/.mcp.json", one("s", "evil"))
		w.write("~/.claude.json", `{"projects": {"PROJ": {"hasTrustDialogAccepted": true}}}`)
	}, func(w *world) { w.write("p/.claude/settings.local.json", `{"enableAllProjectMcpServers": true}`) }},
	{"a server that Claude Code has approved by name", func(w *world) {
		w.write("~/.claude.json",
			`{"projects": {"PROJ": {"enabledMcpjsonServers": ["s"]}}}`)
	},
		func(w *world) { w.write("p/.mcp.json", one("s", "evil")) }},
	{"Claude Code's local scope", func(w *world) { w.write("~/.claude.json", `{}`) },
		func(w *world) { w.write("~/.claude.json", `{"projects": {"PROJ": `+one("s", "evil")+`}}`) }},
	{"the file that had denied it", func(w *world) {
		w.claudeCode = true
		w.write("~/.cursor/mcp.json", one("s", "evil"))
		w.write("~/.claude/settings.json", `{"deniedMcpServers": [{"serverName": "s"}]}`)
	}, func(w *world) { w.write("~/.claude/settings.json", `{}`) }},
	{"an allow list that had left it out", func(w *world) {
		w.claudeCode = true
		w.write("~/.cursor/mcp.json", one("s", "evil"))
		w.write("~/.claude/settings.json", `{"allowedMcpServers": [{"serverName": "other"}]}`)
		w.write("~/.claude.json", `{"projects": {"PROJ": {"hasTrustDialogAccepted": true}}}`)
	}, func(w *world) {
		w.write("p/.claude/settings.local.json", `{"allowedMcpServers": [{"serverName": "s"}]}`)
	}},
	{"the file that had another of the name", func(w *world) {
		w.write("~/.cursor/mcp.json", one("s", "good"))
		w.write("~/.lmstudio/mcp.json", one("s", "evil"))
	}, func(w *world) { w.write("~/.cursor/mcp.json", `{}`) }},
	{"the file that had another of the name, removed from its directory", func(w *world) {
		w.write("~/.continue/mcpServers/x.yaml", "name: x\nmcpServers: [{name: s, command: good}]\n")
		w.write("~/.lmstudio/mcp.json", one("s", "evil"))
	}, func(w *world) { w.must(os.Remove(w.path("~/.continue/mcpServers/x.yaml"))) }},
	{"~/.claude.json, which had another of the name", func(w *world) {
		w.write("~/.claude.json", one("s", "good"))
		w.write("~/.cursor/mcp.json", one("s", "evil"))
	}, func(w *world) { w.write("~/.claude.json", `{}`) }},
	{"where a plugin lies", func(w *world) {
		w.write("p/good/.mcp.json", `{"x": {"command": "good"}}`)
		w.write("~/.claude/settings.json", `{"enabledPlugins": {"p@m": true}}`)
		w.write("~/.claude/plugins/known_marketplaces.json",
			`{"m": {"source": {"source": "github", "repo": "o/m"}, "installLocation": `+
				`"HOME/.claude/plugins/marketplaces/m"}}`)
		w.write("~/.claude/plugins/marketplaces/m/.claude-plugin/marketplace.json",
			`{"name": "m", "owner": {"name": "o"}, "plugins": [{"name": "p", "source": "./plugins/p"}]}`)
		w.write("~/.claude/plugins/installed_plugins.json",
			`{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "PROJ/good"}]}}`)
	}, func(w *world) {
		w.write("p/evil/.mcp.json", `{"x": {"command": "good", "args": ["${CLAUDE_PLUGIN_ROOT}/evil.js"]}}`)
		w.write("~/.claude/plugins/installed_plugins.json",
			`{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "PROJ/evil"}]}}`)
	}},
}

// unseen is that the bridge ends before it looks at the files again.
const unseen = "the bridge doesn't look again"

// TestLaundering: what code wrote while it ran is held by the bridge that ran it and by the next
// one, whatever code does to the record of what is known; what the user writes while no code is run
// is not.
func TestLaundering(t *testing.T) {
	for i, tt := range launderings {
		t.Run(tt.name, func(t *testing.T) {
			for what, tamper := range map[string]func(*world){
				"the record is left alone": func(*world) {},
				unseen:                     func(*world) {},
				"the record is removed":    func(w *world) { _ = os.Remove(w.cfg.Record) },
				"the record is junk":       func(w *world) { w.must(os.WriteFile(w.cfg.Record, []byte("{"), 0o600)) },
				"the record is forged":     (*world).forge,
			} {
				if i > 2 && what != "the record is left alone" && what != unseen {
					continue
				}
				w := newWorld(t)
				if tt.before != nil {
					tt.before(w)
				}
				a, held, _ := w.start()
				if held != "" {
					t.Fatalf("at the first start %s is held", held)
				}
				w.end(a)
				a = w.serve()
				tt.code(w)
				tamper(w)
				isHeld := func(where string, a *Approvals, c discovery.Catalog) {
					held, free := sorted(a, c)
					if !strings.Contains(held, "s") && !strings.Contains(held, "plugin:p:x") {
						t.Errorf("%s: %s %q is held, %q not", what, where, held, free)
					}
				}
				if what != unseen {
					isHeld("in the same session", a, a.Update(w.scan()))
					b := New(w.cfg)
					isHeld("by a bridge beside it", b, b.Update(w.scan()))
					w.end(b)
				}
				w.end(a)
				w.life()
				a = New(w.cfg)
				isHeld("at the next start", a, a.Update(w.scan()))
				w.end(a)
			}
		})
		t.Run(tt.name+", by the user", func(t *testing.T) {
			w := newWorld(t)
			if tt.before != nil {
				tt.before(w)
			}
			w.later()
			a := w.serve()
			w.end(a)
			tt.code(w)
			// so that all on the way has changed since, as when the user works there
			w.must(os.Rename(w.home, w.home+"2"))
			w.must(os.Rename(w.home+"2", w.home))
			for _, dir := range []string{"~/proj", "~/.codex", "~/.gemini", "~/.claude", "~/.cursor", "p/examples"} {
				_ = os.Chmod(w.path(dir), 0o700)
			}
			if a, held, free := w.start(); held != "" {
				t.Errorf("%q is held, %q not", held, free)
			} else {
				w.end(a)
			}
		})
	}
}

// forge has the record know all that is configured, allow a tool and trust a policy.
func (w *world) forge() {
	w.t.Helper()
	known := map[string]string{}
	for _, s := range w.scan().Servers {
		known[s.ID()] = "2099-01-01"
	}
	text, err := json.Marshal(
		record{state: state{Known: known, Grants: []policy.Grant{{Server: "evil", Tool: "x"}},
			Policies: map[string]string{"policy.toml": sumOf(nil)}}})
	w.must(err)
	w.must(os.WriteFile(w.cfg.Record, text, 0o600))
}

// TestOtherFilesAreNotAskedAbout: what a host writes into its files while code is run raises no
// question about a server that the user adds to another one later.
func TestOtherFilesAreNotAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.claudeCode = true
	w.write("~/.claude.json", one("known", "good"))
	w.write("~/.cursor/mcp.json", `{}`)
	w.later()
	a := w.serve()
	w.write("~/.claude.json", strings.TrimSuffix(one("known", "good"), "}")+`, "numStartups": 2}`)
	for _, p := range []string{"~/.claude/settings.json", "p/.claude/settings.local.json"} {
		w.write(p, `{"permissions": {"allow": ["Bash(ls)"]}}`)
	}
	w.end(a)
	w.life()
	w.write("~/.cursor/mcp.json", one("mine", "mine"))
	w.must(w.finds("", "known mine").Close())
}

// TestHeldUntilApproved: a definition that was held stays so over restarts, though its host writes
// the file again while no code is run.
func TestHeldUntilApproved(t *testing.T) {
	w := newWorld(t)
	w.write("~/.claude.json", `{}`)
	a := w.serve()
	w.write("~/.claude.json", one("s", "evil"))
	a.Update(w.scan())
	w.end(a)
	for range 2 {
		w.life()
		w.write("~/.claude.json", one("s", "evil"))
		a = w.finds("s", "")
		a.Begin()
		w.end(a)
	}
	if _, err := New(w.cfg).Approve(w.scan().Servers[0]); err != nil {
		t.Error(err)
	}
	w.must(w.finds("", "s").Close())
}
