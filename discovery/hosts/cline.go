package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var cline = &config.Host{
	Name: "Cline", Format: clineFormat,
	Dirs: []config.Dir{
		{Name: "cline", Var: "CLINE_DIR", Else: config.Everywhere("{home}/.cline")},
		{Name: "cline.json", Var: "CLINE_MCP_SETTINGS_PATH"},
	},
	Files: []config.File{
		{Scope: "CLINE_MCP_SETTINGS_PATH", Paths: config.Everywhere("{cline.json}")},
		{Scope: "shared", Paths: config.Everywhere("{cline}/data/settings/cline_mcp_settings.json")},
		{Scope: "VS Code", Paths: extension("saoudrizwan.claude-dev/settings/cline_mcp_settings.json")},
	},
	Install: &config.Install{
		ID: "cline", Program: "cline", User: []string{"CLINE_MCP_SETTINGS_PATH", "VS Code", "shared"},
		Marks:   clineMarks(),
		New:     config.Everywhere("{cline}/data/settings/cline_mcp_settings.json"),
		Entry:   config.Object{{Name: "timeout", Value: config.Of(toolSeconds)}},
		Unasked: config.Object{{Name: "autoApprove", Value: config.Of(ownTools)}},
		Next:    "Cline's MCP Servers, Configure shows the bridge",
		Off:     off("disabled", true),
	},
}

// clineMarks are the directories of Cline and of its extensions.
func clineMarks() config.Paths {
	marks := extension("saoudrizwan.claude-dev")
	for _, of := range []*[]string{&marks.Linux, &marks.Darwin, &marks.Windows} {
		*of = append(*of, "{cline}")
	}
	return marks
}

// alwaysAllow and autoApprove are about asking, and filter nothing.
var clineFormat = config.Plain(func(f *config.Format) {
	f.References, f.Enabled = config.Prefixed, ""
	f.Remote.URLs = []config.URLKey{{Key: "url", Transport: config.SSE}}
})

// rooCode was made from Cline.
var rooCode = &config.Host{Name: "Roo Code", Format: rooFormat("Roo Code"), Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.roo/mcp.json"),
		Approval: config.NobodyAsks},
	{Scope: "VS Code", Paths: extension("rooveterinaryinc.roo-cline/settings/mcp_settings.json")},
}}

func rooFormat(host string) *config.Format {
	return config.Plain(func(f *config.Format) {
		f.References, f.Enabled, f.Program.Dir, f.Tools.Deny = config.Prefixed, "", "cwd", "disabledTools"
		f.Prepare = config.NeedsType(host)
	})
}
