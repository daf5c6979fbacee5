package install

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	claude  = ".claude.json"
	cursor  = ".cursor/mcp.json"
	vsCode  = ".config/Code/User/mcp.json"
	ownFile = ".config/mcp/servers/my.json"
	adopted = ".config/mcp/servers/adopted.json"
	us      = `"us": {"command": "mcp-bridge", "type": "stdio"}`
)

// servers is a file of servers and of the bridge.
func servers(entries ...string) string {
	return `{"mcpServers": {` + strings.Join(append(entries, us), ", ") + "}}"
}

// wish is for all that can move.
func wish() Wish {
	return Wish{Held: func(discovery.Server) bool { return false },
		Tokens: func(discovery.Server, Sent) (int, bool) { return 1, true },
		Own:    func(Sent) int { return 1 }}
}

// brief renders a plan.
func brief(p Moves) (all []string) {
	for _, m := range p.All {
		var from []string
		for _, c := range m.From {
			from = append(from, c.Written.Source.Host+"/"+c.Written.Name)
		}
		line := fmt.Sprintf("%s from %s: %s", m.Name, strings.Join(from, " and "), m.Entry.JSON())
		if m.There {
			line += " there"
		}
		all = append(all, line)
	}
	for _, s := range p.Stays {
		all = append(all, fmt.Sprintf("%s stays in %s: %s", s.Name, s.Source.Host, s.Reason))
	}
	return all
}

func TestPlanMoves(t *testing.T) {
	const fs, fsOwn = `"fs": {"command": "npx", "args": ["fs"]}`, `{"command":"npx","args":["fs"]`
	const codexUs = "[mcp_servers.us]\ncommand = \"mcp-bridge\"\n"
	const contested = "fs stays in Claude Code: ~/.cursor/mcp.json (Cursor, user) has a server of this name, " +
		"or the same one, which stays there, and would be used in its place"
	for _, tt := range []struct {
		name           string
		files          map[string]string
		hosts, servers []string
		want           []string
	}{
		{"one", map[string]string{claude: servers(fs)}, nil, nil,
			[]string{"fs from Claude Code/fs: " + fsOwn + "}"}},
		{"the same in two hosts", map[string]string{claude: servers(fs), cursor: servers(fs)}, nil, nil,
			[]string{"fs from Claude Code/fs and Cursor/fs: " + fsOwn + "}"}},
		{"the same under another name", map[string]string{claude: servers(fs),
			cursor: servers(`"files": {"command": "npx", "args": ["fs"]}`)}, nil, nil,
			[]string{"fs from Claude Code/fs and Cursor/files: " + fsOwn + "}"}},
		{"two names in one host", map[string]string{
			claude: servers(fs, `"f2": {"command": "npx", "args": ["fs"]}`)}, nil, nil,
			[]string{"fs from Claude Code/fs: " + fsOwn + "}", "f2 from Claude Code/f2: " + fsOwn + "}"}},
		{"another one of the same name", map[string]string{claude: servers(fs),
			cursor: servers(`"fs": {"command": "y"}`)}, nil, nil,
			[]string{contested, "fs stays in Cursor: shadowed by the server of the same name in ~/.claude.json " +
				"(Claude Code, user)"}},
		{"the same in a host without the bridge", map[string]string{claude: servers(fs),
			cursor: `{"mcpServers": {` + fs + `}}`}, nil, nil,
			[]string{"fs from Claude Code/fs: " + fsOwn + "}",
				"fs stays in Cursor: Cursor doesn't have the bridge in its file, and would lose it"}},
		{"with a secret and a filter, too", map[string]string{
			".codex/config.toml": codexUs + "[mcp_servers.fs]\ncommand = \"x\"\nenv = { KEY = \"hunter2-2\" }\n" +
				"disabled_tools = [\"a\"]\n",
			cursor: `{"mcpServers": {"fs": {"command": "x", "env": {"KEY": "hunter2-2"}}}}`}, nil, nil,
			[]string{"fs stays in Cursor: Cursor doesn't have the bridge in its file, and would lose it",
				strings.Replace(contested, "in Claude Code", "in Codex", 1)}},
		{"the bridge is switched off", map[string]string{".kiro/settings/mcp.json": `{"mcpServers": {` + fs +
			`, "us": {"command": "mcp-bridge", "disabled": true}}}`}, nil, nil,
			[]string{"fs stays in Kiro: Kiro doesn't have the bridge in its file, and would lose it"}},
		{"some of them", map[string]string{claude: servers(fs, `"a": {"command": "a"}`),
			cursor: servers(`"b": {"command": "b"}`)},
			[]string{"claude code"}, []string{"a", "b"}, []string{`a from Claude Code/a: {"command":"a"}`}},
		{"denials of the host's and its filter", map[string]string{claude: servers(fs),
			".claude/settings.json": `{"permissions": {"deny": ["mcp__fs__write_file", "mcp__other__x"]}}`,
			".codex/config.toml": codexUs + "[mcp_servers.fs]\ncommand = \"npx\"\nargs = [\"fs\"]\nenabled_tools = " +
				"[\"a*\"]\ndisabled_tools = [\"ab\"]\n"}, nil, nil,
			[]string{"fs from Claude Code/fs and Codex/fs: " + fsOwn + `,"allowedTools":["a\\*"],` +
				`"disabledTools":["write[^0-9A-Za-z\\-]file",` +
				`"write[^0-9A-Za-z\\-]file[^0-9A-Za-z\\-][^0-9A-Za-z\\-]*","ab"]}`}},
		{"it is in the bridge's own file", map[string]string{claude: servers(fs), ownFile: servers(fs)}, nil, nil,
			[]string{"fs from Claude Code/fs: " + fsOwn + "} there"}},
		{"with its secret elsewhere", map[string]string{
			claude:  servers(`"a": {"command": "a", "env": {"TOKEN": "hunter2-2"}}`),
			ownFile: servers(`"a": {"command": "a", "env": {"TOKEN": "${secret:a.TOKEN}"}}`)}, nil, nil,
			[]string{`a from Claude Code/a: {"command":"a","env":{"TOKEN":"${secret:a.TOKEN}"}} there`}},
		{"another one is there", map[string]string{claude: servers(fs),
			ownFile: servers(`"fs": {"command": "z"}`)}, nil, nil,
			[]string{"fs stays in Claude Code: the bridge's own file ~/.config/mcp/servers/my.json has " +
				"another server of this name, or shows other tools of it"}},
		{"of a project", map[string]string{"w/.cursor/mcp.json": servers(`"p": {"command": "p"}`)}, nil, nil,
			[]string{"p stays in Cursor: it is of a project's file, which others use too"}},
		{"of one project", map[string]string{claude: `{"projects": {"HOME/w": ` + servers(fs) + `}}`}, nil, nil,
			[]string{"fs stays in Claude Code: it is of one project only, and the bridge's own file is for all"}},
		{"switched off", map[string]string{cursor: servers(`"a": {"command": "a", "disabled": true}`)}, nil, nil,
			[]string{"a stays in Cursor: it is disabled there"}},
		{"moved before", map[string]string{cursor: servers(`"a": {"command": "a", "disabled": true}`),
			ownFile: servers(`"a": {"command": "a"}`)}, nil, nil, nil},
		{"a variable that isn't set", map[string]string{cursor: servers(`"a": {"command": "a", "args": ` +
			`["${env:NO}"]}`)}, nil, nil,
			[]string{"a stays in Cursor: its args[0] needs the variable NO, which is not set here"}},
		{"an input", map[string]string{vsCode: `{"servers": {"a": {"command": "a", "env": {"K": ` +
			`"${input:k}"}}, ` + us + `}}`}, nil, nil,
			[]string{`a from VS Code/a: {"command":"a","env":{"K":"${secret:VS-Code.k}"}}`}},
		{"a host that is only read", map[string]string{".aws/amazonq/mcp.json": servers(fs)}, nil, nil,
			[]string{"fs stays in Amazon Q: the bridge can't be put into that file"}},
		{"a plugin's", map[string]string{claude: servers(fs),
			".claude/settings.json": `{"enabledPlugins": {"p@m": true}}`,
			".claude/plugins/installed_plugins.json": `{"version": 2, "plugins": {"p@m": [{"scope": "user", ` +
				`"installPath": "HOME/.claude/plugins/cache/m/p/1", "version": "1"}]}}`,
			".claude/plugins/known_marketplaces.json": `{"m": {"source": {"source": "github", "repo": "o/m"}, ` +
				`"installLocation": "HOME/.claude/plugins/marketplaces/m"}}`,
			".claude/plugins/marketplaces/m/.claude-plugin/marketplace.json": `{"name": "m", "owner": {"name": ` +
				`"o"}, "plugins": [{"name": "p", "source": "./p"}]}`,
			".claude/plugins/cache/m/p/1/.mcp.json": `{"mcpServers": {"s": {"command": "s"}}}`}, nil, nil,
			[]string{"fs from Claude Code/fs: " + fsOwn + "}",
				"plugin:p:s stays in Claude Code: a plugin of Claude Code brings it along"}},
		{"an administrator's", map[string]string{"admin/settings.json": servers(fs)}, nil, nil,
			[]string{"fs stays in Gemini CLI: an administrator has set it up"}},
		{"an administrator's, that a user could override", map[string]string{
			"admin/system-defaults.json": servers(fs)}, nil, nil,
			[]string{"fs stays in Gemini CLI: an administrator has set it up"}},
		{"the bridge itself", map[string]string{claude: servers()}, nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, nil)
			h.cfg.Env.SecretFile = func(string) string { return h.cfg.Command[0] }
			h.cfg.Env.Getenv = func(name string) string {
				return map[string]string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH": h.path("admin/settings.json")}[name]
			}
			h.write(".gemini/trustedFolders.json", `{"`+h.cfg.Env.Dir+`": "TRUST_FOLDER"}`)
			for path, text := range tt.files {
				h.write(path, strings.ReplaceAll(text, "HOME", h.dir))
			}
			w := wish()
			w.Hosts, w.Servers = tt.hosts, tt.servers
			var got []string
			for _, line := range brief(New(h.cfg).PlanMoves(w)) {
				got = append(got, strings.ReplaceAll(line, h.dir, "~"))
			}
			if d := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNoMove: what isn't approved stays, as does what would be written to a file that can't be.
func TestNoMove(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		do         func(*home, *Wish)
	}{
		{"held", "it is new, or has changed, where code could have written it", func(_ *home, w *Wish) {
			w.Held = func(s discovery.Server) bool { return s.Name == "fs" }
		}},
		{"a link", "is a link, and links are not followed", func(h *home, _ *Wish) {
			h.write("elsewhere", h.read(cursor))
			h.remove(cursor)
			h.link("elsewhere", cursor)
		}},
		{"read-only", "is read-only", func(h *home, _ *Wish) {
			if err := os.Chmod(h.path(cursor), 0o400); err != nil {
				h.t.Fatal(err)
			}
		}},
		{"twice", `it has "mcpServers" more than once`, func(h *home, _ *Wish) {
			h.write(cursor, `{"mcpServers": {}, `+h.read(cursor)[1:])
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, w := newHome(t, map[string]string{cursor: servers(`"fs": {"command": "x"}`)}), wish()
			tt.do(h, &w)
			p := New(h.cfg).PlanMoves(w)
			if len(p.All) > 0 || len(p.Stays) != 1 || !strings.Contains(p.Stays[0].Reason, tt.want) {
				t.Errorf("got %q", brief(p))
			}
			if tt.name == "held" && !strings.Contains(p.Stays[0].Next, "mcp-bridge servers approve fs, or --all,") {
				t.Errorf("next: %s", p.Stays[0].Next)
			}
		})
	}
}

// TestLoads counts what each host loads before and after: what moves, what stays, the bridge's own,
// and nothing of what the host doesn't use.
func TestLoads(t *testing.T) {
	h := newHome(t, map[string]string{
		claude: servers(`"a": {"command": "a"}`, `"b": {"command": "b"}`, `"c": {"command": "c"}`),
		cursor: servers(`"a": {"command": "a"}`, `"b": {"command": "d"}`, `"new": {"command": "new"}`,
			`"off": {"command": "d", "disabled": true}`),
		".kiro/settings/mcp.json": servers(`"z": {"command": "a"}`),
	})
	h.write(".gemini/settings.json", servers(`"a": {"command": "a"}`))
	h.write(".gemini/trustedFolders.json", `{"`+h.cfg.Env.Dir+`": "TRUST_FOLDER"}`)
	more := hostNamed("Gemini CLI").Install.Sent.PerTool // in each definition
	w := wish()
	w.Tokens = func(s discovery.Server, sent Sent) (int, bool) {
		n, ok := map[string]int{"a": 100, "b": 20, "c": 1000, "d": 3}[s.Command]
		if sent.Search != "" {
			n /= 10
		}
		return n + sent.PerTool, ok
	}
	w.Own = func(sent Sent) int { return 7 + 3*sent.PerTool + len(sent.Search) }
	w.Servers = []string{"a"}
	p := New(h.cfg).PlanMoves(w)
	searched := 7 + len(SentBy("Claude Code").Search)
	want := []Load{{Host: "Claude Code", Tokens: Tokens{searched + 112, searched + 102},
		SearchOff: "ENABLE_TOOL_SEARCH=false", Whole: Tokens{1127, 1027}},
		{Host: "Cursor", Tokens: Tokens{110, 10}, Whole: Tokens{110, 10},
			Unknown: []string{"new"}},
		{Host: "Gemini CLI", Tokens: Tokens{107 + 4*more, 7 + 3*more},
			Whole: Tokens{107 + 4*more, 7 + 3*more}}}
	if d := cmp.Diff(want, p.Loads); d != "" {
		t.Error(d)
	}
}
