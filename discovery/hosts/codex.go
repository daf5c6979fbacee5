package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var codex = &config.Host{
	Name: "Codex", Format: codexFormat,
	Dirs: []config.Dir{{Name: "codex", Var: "CODEX_HOME", Else: config.Everywhere("{home}/.codex")}},
	Files: []config.File{
		{Scope: "project", Paths: config.Everywhere("{workspace}/.codex/config.toml"),
			Approval: config.ByRules},
		{Scope: "user", Paths: codexUser},
	},
	Install: &config.Install{
		ID: "codex", Program: "codex", User: []string{"user"}, Project: "project",
		Entry:   config.Object{{Name: "tool_timeout_sec", Value: config.Of(toolSeconds)}},
		Unasked: config.Object{{Name: "default_tools_approval_mode", Value: config.Of("approve")}},
		Command: []string{"codex", "mcp", "add", config.Own, "--env", "{env}", "--", "{command}"},
		Next:    "start a new session; codex mcp list shows the bridge",
		Off:     off("enabled", false),
		Sent:    config.Sent{Without: "$schema"},
	},
	Rules: func(r *config.Reader) config.Rules {
		return config.Rules{
			Denied:   func(e *config.Entry) config.Refusal { return codexDenied(r, e) },
			Approved: r.TrustedOnly("Codex", "codex", func(dir string) bool { return codexTrusts(r, dir) }),
		}
	},
}

var codexUser = config.Everywhere("{codex}/config.toml")

var codexFormat = &config.Format{
	Key: "mcp_servers", Foreign: "mcpServers", Enabled: "enabled",
	Program: config.Program{Command: "command", Env: "env", Dir: "cwd"},
	Remote: config.Remote{URLs: []config.URLKey{{Key: "url", Transport: config.HTTP}},
		Headers: "http_headers"},
	Tools: config.ToolLists{Allow: "enabled_tools", Deny: "disabled_tools"},
	Finish: func(e *config.Entry, m *config.Members) {
		if e.Transport == config.Stdio {
			e.Forward = m.Names("env_vars")
			return
		}
		e.HeaderEnv = m.Variables("env_http_headers", false)
		e.HeadersHelper, e.BearerTokenEnv = m.Text("http_headers_helper"), m.Text("bearer_token_env_var")
		e.OAuth.Scopes, e.OAuth.Resource = m.List("scopes"), m.Text("oauth_resource")
	},
}

// codexTrusts reports whether Codex's own file trusts a directory, by its path or that of its
// repository. Trust in the working directory is not trust in the repository around it.
func codexTrusts(r *config.Reader, project string) bool {
	for _, p := range r.Expand(codexUser) {
		src := config.Source{Host: "Codex", Scope: "user", Path: p}
		projects := r.Rule(src, false).Root.Object("projects")
		for _, dir := range r.Workspace() {
			o, ok := r.Under(projects, dir)
			trusted := o.Text("trust_level") == "trusted"
			if trusted && r.Holds(dir, project) {
				return true
			} else if ok && !trusted {
				break
			}
		}
	}
	return false
}

// codexRequirements is what an administrator demands of Codex on a machine. What reaches it over
// the network or from a system's management of devices can't be read from outside.
var codexRequirements = config.OnWindows("/etc/codex/requirements.toml",
	"C:/ProgramData/OpenAI/Codex/requirements.toml")

// codexDenied refuses what the administrator keeps back. Where the requirements list servers, Codex
// uses those alone, by their names and by what they are: the command without its arguments, or the
// URL.
func codexDenied(r *config.Reader, e *config.Entry) config.Refusal {
	src := config.Source{Host: "Codex", Scope: "requirements", Path: r.Expand(codexRequirements)[0]}
	f := r.Rule(src, false)
	v := f.Root.Get("mcp_servers")
	list, ok := v.Object()
	switch {
	case f.Broken, !ok && !v.Is("nothing"):
		return config.Unclear("Codex", src)
	case v.Is("nothing"):
		return config.Refusal{}
	}
	identity := list.Object(e.Name).Object("identity")
	command, url := identity.Text("command"), identity.Text("url")
	if e.Transport == config.Stdio && command != "" && command == e.Command ||
		e.Transport != config.Stdio && url != "" && url == e.URL {
		return config.Refusal{}
	}
	return config.Refuse("Codex's administrator doesn't allow it: mcp_servers of "+src.String()+
		" has none of this name that is the same", "ask the administrator")
}
