package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// startJSON is what would be run or connected to, without secrets.
type startJSON struct {
	Command string     `json:"command,omitempty"`
	Args    []string   `json:"args,omitempty"`
	Env     []string   `json:"env,omitempty"` // names only
	Dir     string     `json:"dir,omitempty"`
	URL     string     `json:"url,omitempty"`
	Socket  string     `json:"socket,omitempty"`
	Headers []string   `json:"headers,omitempty"` // names only
	Secrets []string   `json:"secrets,omitempty"` // names only
	Hides   []hideJSON `json:"hides,omitempty"`
	Isolate bool       `json:"isolate,omitempty"`
}

// hideJSON is what one file says of the server's tools.
type hideJSON struct {
	By   string   `json:"by"`
	Only []string `json:"only,omitempty"`
	None bool     `json:"none,omitempty"` // no tool at all
	Not  []string `json:"not,omitempty"`
}

// startOf returns what would be run or connected to.
func startOf(s discovery.Server) startJSON {
	shown := upstream.Shown(s)
	out := startJSON{Command: shown(s.Command), Dir: s.Dir, URL: shown(s.URL), Socket: s.Socket,
		Secrets: s.Given(), Isolate: s.Isolate}
	out.Env, out.Headers = slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(s.Headers))
	for _, a := range s.Args {
		out.Args = append(out.Args, shown(a))
	}
	if s.BearerTokenEnv != "" {
		out.Headers = append(out.Headers, "Authorization: the variable "+s.BearerTokenEnv)
	}
	if s.HeadersHelper != "" {
		out.Headers = append(out.Headers, "printed by "+shown(s.HeadersHelper))
	}
	out.Hides = append(out.Hides, hides(s.Source, s.Tools)...)
	for _, t := range s.Twins {
		out.Hides = append(out.Hides, hides(t.Source, t.Tools)...)
	}
	return out
}

// hides returns what a filter hides, or nothing.
func hides(from discovery.Source, f discovery.Filter) (out []hideJSON) {
	if f.Allow != nil || f.Deny != nil {
		none := f.Allow != nil && len(f.Allow) == 0
		out = append(out, hideJSON{By: from.String(), Only: f.Allow, None: none, Not: f.Deny})
	}
	var files []discovery.Source // whose rules hide some, in their order
	hidden := map[discovery.Source][]string{}
	for _, l := range f.Rules {
		for _, r := range l.Rules {
			tool, own := strings.CutPrefix(r.Pattern, l.Prefix)
			head, _, any := strings.Cut(r.Pattern, "*")
			if r.Deny && (own || any && strings.HasPrefix(l.Prefix, head)) { // others are of other servers
				if hidden[r.From] == nil {
					files = append(files, r.From)
				}
				hidden[r.From] = append(hidden[r.From], tool)
			}
		}
	}
	for _, file := range files {
		out = append(out, hideJSON{By: file.String(), Not: hidden[file]})
	}
	return out
}

// printServer shows all that is known of one server without starting it.
func printServer(out *terminal.Output, c discovery.Catalog) {
	s := out.Screen()
	for _, srv := range c.Servers {
		fmt.Fprintf(out, "%s: used, as mcp_%s in code, by %s\n", srv.Name, aliases(c)[srv.Name], srv.Transport)
		for _, line := range details(srv) {
			s.Lines(2, 4, line)
		}
	}
	showProblems(s, c.Problems)
}

// details returns what would be run or connected to, from which file, and what is hidden, a line
// each.
func details(srv discovery.Server) []string {
	start := startOf(srv)
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+": "+strings.ReplaceAll(value, "\n", `\n`)) // what is foreign adds no line
		}
	}
	add("description", srv.Description)
	if start.Command != "" {
		add("runs", shellLine(append([]string{start.Command}, start.Args...)))
	}
	add("connects to", start.URL)
	add("over the socket", start.Socket)
	add("ignored", srv.Ignored)
	add("variables", strings.Join(start.Env, ", "))
	add("headers", strings.Join(start.Headers, ", "))
	add("secrets", strings.Join(start.Secrets, ", "))
	switch {
	case start.Dir != "":
		add("in", start.Dir)
	case start.Command != "":
		add("in", "the directory that mcp-bridge is started in")
	}
	if start.Isolate {
		add("isolate", "over HTTP, each principal has a process of its own")
	}
	add("from", srv.Source.String())
	for _, also := range srv.Also {
		add("also in", also.String())
	}
	for _, h := range start.Hides {
		if h.None {
			add("all tools hidden by", h.By)
		}
		if len(h.Only) > 0 {
			add("tools", "only "+strings.Join(h.Only, ", ")+", by "+h.By)
		}
		if len(h.Not) > 0 {
			add("tools", "not "+strings.Join(h.Not, ", ")+", by "+h.By)
		}
	}
	return out
}

// approvalsConfig returns where the record of approved servers is, and where bridges find each
// other.
func approvalsConfig(log *slog.Logger) approvals.Config {
	c := approvals.Config{Log: log, Sockets: runtimeParents()}
	if dir := settings.StateDir(); dir != "" {
		c.Record = filepath.Join(dir, "approved.json")
	}
	return c
}

// admit lets the approvals decide about the servers that were found. A command that ends by itself
// can't ask the user, so it doesn't use what is held.
func (p *parts) admit(what purpose) {
	cfg := approvalsConfig(p.log)
	if p.guard != nil {
		cfg.Guard = p.guard
	}
	cfg.Changed = p.approved
	p.configured = p.catalog
	p.approvals = approvals.New(cfg)
	p.trustPolicy(p.approvals)
	p.catalog = p.approvals.Update(p.catalog)
	switch {
	case !what.serves():
		p.catalog = withoutHeld(p.catalog, p.approvals)
	case len(p.approvals.HeldNames(p.catalog.Servers)) > 0:
		p.approvals.Reach()
	}
}

// trustPolicy refuses the policy if code may have written it.
func (p *parts) trustPolicy(a *approvals.Approvals) {
	if p.broken == nil && p.policy.Path() != "" && !a.Trusts(p.policy.Path(), p.policy.Text()) {
		p.broken = approvals.Untrusted(p.policy.Path())
	}
}

// refuse implements upstream.Config.Refuse.
func (p *parts) refuse(s discovery.Server) error {
	if p.approvals == nil {
		return nil
	}
	return p.approvals.Refuse(s)
}

// approveAll is what a user types to approve all servers that are held. It asks about each.
const approveAll = "mcp-bridge servers approve --all"

// withoutHeld makes problems of the servers that are held.
func withoutHeld(c discovery.Catalog, a *approvals.Approvals) discovery.Catalog {
	several := len(a.HeldNames(c.Servers)) > 1
	return a.WithoutHeld(c, func(s discovery.Server) string {
		how := elicit.HowToApprove(s, "this directory")
		if several {
			how += "; for all that are held: " + approveAll
		}
		return how
	})
}

func approveCmd(a *app) *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "approve SERVER...",
		Short: "Say yes to servers that are new, or have changed, where code could have written them",
		Long: "Say yes to servers that are new, or have changed, where code could have written them.\n" +
			"It shows each one's file and what would be started, and asks at the terminal. Bridges that run start\n" +
			"the server from then on, and those that are started later too, until its definition changes.",
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		ValidArgsFunction: completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return exit.Usage(errors.New("--all goes without names of servers"))
			}
			cfg, err := settings.Read()
			if err != nil {
				return err
			}
			kept := approvals.New(approvalsConfig(slog.New(slog.NewTextHandler(a.io.Err, nil))))
			found := kept.Update(findServers(cfg))
			if all {
				if args = kept.HeldNames(found.Servers); len(args) == 0 {
					a.io.Say("no server has to be approved")
				}
			}
			return a.approve(cmd.Context(), kept, found, args, yes)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all servers that have to be approved")
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

// approve asks about each of the servers. A no to one doesn't keep it from asking about the next.
func (a *app) approve(ctx context.Context, kept *approvals.Approvals, c discovery.Catalog, names []string,
	yes bool) error {
	servers := make([]discovery.Server, 0, len(names))
	for _, name := range names {
		found, err := only(c, []string{name})
		if err != nil || len(found.Servers) == 0 {
			return exit.Usage(fmt.Errorf("there is no server %q here; mcp-bridge servers lists them. One of a "+
				"project is approved in its directory, and one from MCP_BRIDGE_CONFIG with that variable set", name))
		}
		servers = append(servers, found.Servers[0])
	}
	refused := false
	for _, s := range servers {
		shown := fmt.Sprintf("Server %q\n%s\n", s.Name, elicit.Definition(s))
		question := "It is started as you, outside the sandbox. Start it, now and later? [y/N] "
		if err := a.io.Confirm(ctx, shown, question, yes); errors.As(err, new(exit.Error)) {
			refused = true
			continue
		} else if err != nil {
			return err
		}
		told, err := kept.Approve(s)
		if err != nil {
			return fmt.Errorf("keeping the approval: %w", err)
		}
		fmt.Fprintf(a.io.Out, "approved %s; bridges that run and know it now: %d\n",
			text.Escape(strconv.Quote(s.Name)), told)
	}
	return exit.If(refused)
}
