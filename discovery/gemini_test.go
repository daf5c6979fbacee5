package discovery

import "testing"

// TestGeminiSwitches: what Gemini CLI's own commands and lists keep back, in any case of letters.
func TestGeminiSwitches(t *testing.T) {
	const (
		trust    = "/home/u/.gemini/trustedFolders.json"
		settings = "/home/u/.gemini/settings.json"
		switches = "/home/u/.gemini/mcp-server-enablement.json"
		disabled = "it is disabled in " + switches + " (Gemini CLI, enablement)"
	)
	servers := `"mcpServers": {"Git Hub": {"command": "gh"}, "other": {"command": "o"}}`
	for _, tt := range []scanCase{
		{"disabled by its command", tree{settings: `{` + servers + `}`,
			switches: `{"git hub": {"enabled": false}}`}, []string{"other: o"}, []string{"Git Hub: " +
			disabled}},
		{"disabled by name as somebody wrote it", tree{settings: `{` + servers + `}`,
			switches: `{" GIT Hub": {"enabled": false}}`}, []string{"other: o"}, []string{"Git Hub: " +
			disabled}},
		{"enabled again", tree{settings: `{` + servers + `}`,
			switches: `{"git hub": {"enabled": true}, "other": {}, "gone": {"enabled": false}}`},
			[]string{"Git Hub: gh", "other: o"}, nil},
		{"the last word counts", tree{settings: `{` + servers + `}`,
			switches: `{"other": {"enabled": false}, "other": {"enabled": true}}`},
			[]string{"Git Hub: gh", "other: o"}, nil},
		{"a comment, which Gemini CLI doesn't take there", tree{settings: `{` + servers + `}`,
			switches: "{\n// mine\n\"other\": {\"enabled\": false}}"}, []string{"Git Hub: gh", "other: o"},
			[]string{switches + ": it has a comment or a trailing comma at line 2, column 1, so Gemini CLI " +
				"rejects the whole file"}},
		{"excluded in other letters", tree{settings: `{"mcp": {"excluded": ["git HUB "]}, ` + servers + `}`},
			[]string{"other: o"},
			[]string{"Git Hub: Gemini CLI excludes it, in " + settings + " (Gemini CLI, user)"}},
		{"allowed in other letters", tree{settings: `{"mcp": {"allowed": ["git HUB "]}, ` + servers + `}`},
			[]string{"Git Hub: gh"},
			[]string{"other: Gemini CLI doesn't allow it: it is not in mcp.allowed of " + settings +
				" (Gemini CLI, user)"}},
		{"of another host it says nothing", tree{"/home/u/.cursor/mcp.json": `{` + servers + `}`,
			switches: `{"other": {"enabled": false}}`}, []string{"Git Hub: gh", "other: o"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Scan(tt.files.with(trust, `{"/w": "TRUST_FOLDER"}`).fs(), linux()), tt.servers,
				tt.problems)
		})
	}
}

// TestGeminiTrust: the longest rule about a folder counts; one that isn't trusted has no servers at
// all, and trust that is switched off is no word of the user's about a project.
func TestGeminiTrust(t *testing.T) {
	const (
		rules    = "/home/u/.gemini/trustedFolders.json"
		distrust = "Gemini CLI doesn't trust this folder, in " + rules +
			" (Gemini CLI, trusted folders), and uses no servers in it"
		unasked = "p: the bridge doesn't start what a project brings along unless its user has said so, " +
			"and Gemini CLI doesn't ask where folderTrust is switched off"
		until  = "Gemini CLI uses no servers in this folder until it is trusted"
		system = "/etc/gemini-cli/settings.json"
	)
	both := []string{"p: p", "u: u"}
	none := []string{"p: " + distrust, "u: " + distrust}
	unsaid := []string{"p: " + until, "u: " + until}
	off := `{"security": {"folderTrust": {"enabled": false}}}`
	for _, tt := range []scanCase{
		{"nothing said", tree{}, nil, unsaid},
		{"trusted", tree{rules: `{"/w/p": "TRUST_FOLDER"}`}, both, nil},
		{"trusted, with what is in it", tree{rules: `{"/w": "TRUST_FOLDER"}`}, both, nil},
		{"with its parent", tree{rules: `{"/w/other": "TRUST_PARENT"}`}, both, nil},
		{"not trusted", tree{rules: `{"/w/p": "DO_NOT_TRUST"}`}, nil, none},
		{"the longest counts", tree{rules: `{"/w/p": "DO_NOT_TRUST", "/w": "TRUST_FOLDER"}`}, nil, none},
		{"of two with one name the last counts",
			tree{rules: `{"/w/p": "TRUST_FOLDER", "/w/p": "DO_NOT_TRUST"}`}, nil, none},
		{"also where it trusts", tree{rules: `{"/w/p": "DO_NOT_TRUST", "/w/p": "TRUST_FOLDER"}`}, both, nil},
		{"also where it says nothing", tree{rules: `{"/w/p": "TRUST_FOLDER", "/w/p": "YES"}`}, nil, unsaid},
		{"of two about one folder distrust counts",
			tree{rules: `{"/w/p/": "TRUST_FOLDER", "/w/p": "DO_NOT_TRUST"}`}, nil, none},
		{"in either order", tree{rules: `{"/w/p": "DO_NOT_TRUST", "/w/x": "TRUST_PARENT"}`}, nil, none},
		{"by what is written", tree{rules: `{"/w/p": "DO_NOT_TRUST", "/w/p/deep": "TRUST_PARENT"}`}, both,
			nil},
		{"another folder", tree{rules: `{"/w/pq": "TRUST_FOLDER", "/x": "DO_NOT_TRUST"}`}, nil, unsaid},
		{"the root", tree{rules: `{"/": "TRUST_FOLDER"}`}, both, nil},
		{"words that there aren't", tree{rules: `{"/w/p": "YES", "/w": 1, "w/p": "TRUST_FOLDER"}`}, nil,
			unsaid},
		{"switched off", tree{"/etc/gemini-cli/system-defaults.json": off, rules: `{"/w/p": "DO_NOT_TRUST"}`},
			[]string{"u: u"}, []string{unasked}},
		{"switched off, and on again by the administrator", tree{"/etc/gemini-cli/system-defaults.json": off,
			system: `{"security": {"folderTrust": {"enabled": true}}}`,
			rules:  `{"/w/p": "DO_NOT_TRUST"}`}, nil, none},
		{"a project doesn't switch it off", tree{"/w/p/.gemini/settings.json": `{"security": ` +
			`{"folderTrust": {"enabled": false}}, "mcpServers": {"p": {"command": "p"}}}`},
			nil, unsaid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := tt.files.with("/home/u/.gemini/settings.json", `{"mcpServers": {"u": {"command": "u"}}}`)
			if files["/w/p/.gemini/settings.json"] == "" {
				files = files.with("/w/p/.gemini/settings.json", `{"mcpServers": {"p": {"command": "p"}}}`)
			}
			check(t, Scan(files.fs(), linux()), tt.servers, tt.problems)
		})
	}
	t.Run("each in its state, and where no directory is known", func(t *testing.T) {
		files := tree{"/home/u/.gemini/settings.json": `{"mcpServers": {"u": {"command": "u"}}}`}
		if c := Scan(files.fs(), linux()); len(c.Problems) != 1 || c.Problems[0].State != Unapproved {
			t.Errorf("nothing said: %v", c.Problems)
		}
		if c := Scan(files.with(rules, `{"/w/p": "DO_NOT_TRUST"}`).fs(), linux()); len(c.Problems) != 1 ||
			c.Problems[0].State != Unapproved {
			t.Errorf("not trusted: %v", c.Problems)
		}
		env := linux()
		env.Dir = ""
		check(t, Scan(files.fs(), env), []string{"u: u"}, nil)
	})
	t.Run("on a Mac, distrust in any case, and trust as it is written", func(t *testing.T) {
		env := Env{Home: "/Users/u", Dir: "/w/p", GOOS: "darwin"}
		files := tree{"/w/p/.gemini/settings.json": `{"mcpServers": {"p": {"command": "p"}}}`}
		const rules = "/Users/u/.gemini/trustedFolders.json"
		check(t, Scan(files.with(rules, `{"/W/P": "DO_NOT_TRUST", "/w": "TRUST_FOLDER"}`).fs(), env), nil,
			[]string{"p: Gemini CLI doesn't trust this folder, in " + rules + " (Gemini CLI, trusted folders), and " +
				"uses no servers in it"})
		check(t, Scan(files.with(rules, `{"/W/P": "TRUST_FOLDER"}`).fs(), env), nil, []string{"p: " + until})
	})
	t.Run("on windows, in any case", func(t *testing.T) {
		env := Env{Home: `C:\Users\u`, Dir: `C:\w\p`, GOOS: "windows"}
		files := tree{`C:\w\p\.gemini\settings.json`: `{"mcpServers": {"p": {"command": "p"}}}`,
			`C:\Users\u\.gemini\trustedFolders.json`: `{"c:\\W\\P": "TRUST_FOLDER"}`}
		check(t, Scan(files.fs(), env), []string{"p: p"}, nil)
	})
}

// TestGeminiAdministrator: what can't be read of an administrator's rules allows nothing; of a
// user's own, it is told and nothing else.
func TestGeminiAdministrator(t *testing.T) {
	const (
		trust    = "/home/u/.gemini/trustedFolders.json"
		user     = "/home/u/.gemini/settings.json"
		system   = "/etc/gemini-cli/settings.json"
		defaults = "/etc/gemini-cli/system-defaults.json"
	)
	blind := func(of string) string {
		return "s: it can't be told whether Gemini CLI's administrator allows it: " + of + " can't be used"
	}
	of := map[string]string{system: system + " (Gemini CLI, system)", defaults: defaults +
		" (Gemini CLI, system defaults)"}
	for _, tt := range []struct {
		name, rules, problem string
		blind                bool
	}{
		{"allowed", `{"mcp": {"allowed": ["s"]}}`, "", false},
		{"nothing said", `{"mcp": {"allowed": null, "excluded": null}, "security": {"folderTrust": ` +
			`{"enabled": null}}}`, "", false},
		{"not to be read", `{"mcp": {"allowed": ["good"]}`,
			"it is not valid JSON: it ends too early at line 1, column 30", true},
		{"excluded is no list", `{"mcp": {"excluded": "s"}}`, `its "excluded" is not an array of strings`,
			true},
		{"allowed is no list", `{"mcp": {"allowed": "s"}}`, `its "allowed" is not an array of strings`, true},
		{"not a list of names alone", `{"mcp": {"allowed": ["s", 7]}}`,
			`its "allowed" is not an array of strings`, true},
		{"rules that are no object", `{"mcp": ["s"]}`, "", true},
		{"a word about trust", `{"security": {"folderTrust": {"enabled": "true"}}}`, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for file := range of {
				files := tree{trust: `{"/w": "TRUST_FOLDER"}`,
					user: `{"mcpServers": {"s": {"command": "x"}}}`, file: tt.rules}
				var servers, problems []string
				if tt.problem != "" {
					problems = append(problems, file+": "+tt.problem)
				}
				if tt.blind {
					problems = append(problems, blind(of[file]))
				} else {
					servers = []string{"s: x"}
				}
				check(t, Scan(files.fs(), linux()), servers, problems)
			}
		})
	}
	t.Run("of the user's own", func(t *testing.T) {
		files := tree{trust: `{"/w": "TRUST_FOLDER"}`,
			user: `{"mcp": {"excluded": "s"}, "mcpServers": {"s": {"command": "x"}}}`}
		check(t, Scan(files.fs(), linux()), []string{"s: x"}, []string{user +
			`: its "excluded" is not an array of strings`})
	})
}

// TestGeminiElsewhere: variables say where its files are, each of them.
func TestGeminiElsewhere(t *testing.T) {
	entry := func(name string) string {
		return `{"mcpServers": {"` + name + `": {"command": "x` + name +
			`"}}}`
	}
	files := tree{
		"/g/.gemini/settings.json": entry("user"), "/g/.gemini/mcp-server-enablement.json": `{"off": ` +
			`{"enabled": false}}`,
		"/sys.json": entry("off"), "/def.json": entry("defaults"),
		"/trust.json": `{"/w/p": "TRUST_FOLDER"}`, "/w/p/.gemini/settings.json": entry("project"),
		"/home/u/.gemini/settings.json":        entry("unread"),
		"/etc/gemini-cli/settings.json":        entry("unread"),
		"/etc/gemini-cli/system-defaults.json": entry("unread"),
	}
	env := linux("GEMINI_CLI_HOME=/g", "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/sys.json",
		"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/def.json", "GEMINI_CLI_TRUSTED_FOLDERS_PATH=/trust.json")
	check(t, Scan(files.fs(), env), []string{"defaults: xdefaults", "project: xproject", "user: xuser"},
		[]string{"off: it is disabled in /g/.gemini/mcp-server-enablement.json (Gemini CLI, enablement)"})
}
