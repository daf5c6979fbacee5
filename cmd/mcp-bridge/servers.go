package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

func (a *app) serversCmd() *cobra.Command {
	var f serversFormat
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Show which servers were found where, which were not used, and why",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.check {
				return a.check(cmd.Context(), f)
			}
			cfg, err := readConfig()
			if err != nil {
				return err
			}
			catalog := scan(cfg)
			if f.json {
				return a.serversJSON(catalog, nil)
			}
			return a.serversText(catalog)
		},
	}
	cmd.AddCommand(a.approveCmd())
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&f.check, "check", false, "start each server, list its tools, and say how long it took or why it fails")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "with --check: show also what servers say that don't fail")
	return cmd
}

// serversFormat is what is shown of the servers, and how.
type serversFormat struct{ json, check, verbose bool }

func aliases(c discovery.Catalog) map[string]string {
	names := make([]string, 0, len(c.Servers))
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	return entrypoint.ServerAliases(names)
}

// serversText shows what is used, a line for each source, and then, file by file, what isn't.
func (a *app) serversText(c discovery.Catalog) error {
	alias := aliases(c)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if len(c.Servers) > 0 {
		fmt.Fprintln(w, "SERVER\tIN CODE\tBY\tHOST\tSCOPE\tFILE")
	}
	for _, s := range c.Servers {
		fmt.Fprintf(w, "%s\tmcp_%s\t%s\t%s\t%s\t%s\n", s.Name, alias[s.Name], s.Transport, s.Source.Host, s.Source.Scope, s.Source.Path)
		for _, also := range s.Also {
			fmt.Fprintf(w, "\t\t\t%s\t%s\t%s\n", also.Host, also.Scope, also.Path)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(c.Servers) == 0 {
		fmt.Fprintf(a.stdout, "no servers that can be used were found in the files of %d hosts (Claude Code, Cursor, VS Code, Codex …: docs/hosts.md lists them).\n"+
			"add some to one of them, or to a file of the bridge's own: %s, or one that MCP_BRIDGE_CONFIG names.\n"+
			`such a file: {"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/path"]}}}`+"\n",
			discovery.Hosts(), "~/.config/mcp/servers/my.json")
	}
	return a.problemsText(c.Problems)
}

func (a *app) problemsText(problems []discovery.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout, "\nnot used:")
	var of discovery.Source
	for _, p := range problems {
		if p.Source != of {
			of = p.Source
			fmt.Fprintln(a.stdout, "  "+of.String())
		}
		what := string(p.State) + ": " + p.Reason
		if p.Server != "" {
			what = p.Server + ", " + what
		}
		fmt.Fprintln(a.stdout, "    "+what)
		if p.Next != "" {
			fmt.Fprintln(a.stdout, "      next: "+p.Next)
		}
	}
	return nil
}

// serverJSON is what a program is told: never a command, an argument or a variable, which may hold secrets.
type serverJSON struct {
	Name        string       `json:"name"`
	Alias       string       `json:"alias"`
	Transport   string       `json:"transport"`
	Description string       `json:"description,omitempty"`
	Source      sourceJSON   `json:"source"`
	Also        []sourceJSON `json:"also,omitempty"`
	Check       *checkJSON   `json:"check,omitempty"`
}

type sourceJSON struct {
	Host  string `json:"host"`
	Scope string `json:"scope"`
	Path  string `json:"path"`
}

type problemJSON struct {
	Source sourceJSON `json:"source"`
	Server string     `json:"server,omitempty"`
	State  string     `json:"state"`
	Reason string     `json:"reason"`
	Next   string     `json:"next,omitempty"`
}

func sourcesJSON(sources []discovery.Source) []sourceJSON {
	out := []sourceJSON{}
	for _, s := range sources {
		out = append(out, sourceJSON(s))
	}
	return out
}

func (a *app) serversJSON(c discovery.Catalog, health map[string]upstream.Health) error {
	alias := aliases(c)
	out := struct {
		Servers  []serverJSON  `json:"servers"`
		Problems []problemJSON `json:"problems"`
		Sources  []sourceJSON  `json:"sources"`
	}{[]serverJSON{}, []problemJSON{}, sourcesJSON(c.Sources)}
	for _, s := range c.Servers {
		e := serverJSON{Name: s.Name, Alias: alias[s.Name], Transport: string(s.Transport), Description: s.Description, Source: sourceJSON(s.Source), Also: sourcesJSON(s.Also)}
		if h, ok := health[s.Name]; ok {
			e.Check = healthJSON(h)
		}
		out.Servers = append(out.Servers, e)
	}
	for _, p := range c.Problems {
		out.Problems = append(out.Problems, problemJSON{sourceJSON(p.Source), p.Server, string(p.State), p.Reason, p.Next})
	}
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
