package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// grants returns where the user's grants are kept. Without such a place, the user is asked again in
// each run.
func (p *parts) grants() elicit.Grants {
	if p.approvals == nil || settings.StateDir() == "" {
		return nil
	}
	return p.approvals
}

// lasting returns the approvals, for a command about what is kept.
func lasting(stderr *terminal.Output) (*approvals.Approvals, error) {
	if settings.StateDir() == "" {
		return nil, settings.ErrNoPlace
	}
	return approvals.New(approvalsConfig(slog.New(slog.NewTextHandler(stderr, nil)))), nil
}

// warnOfPolicy logs what a person should know of the policy before it is needed.
func (p *parts) warnOfPolicy() {
	if p.broken != nil {
		p.log.Error("no code will be run", text.Next(p.broken)...)
		return
	}
	for _, line := range p.policy.Unused(serverNames(p.catalog)) {
		p.log.Warn("a part of the policy is without effect", "why", line)
	}
}

func serverNames(c discovery.Catalog) []string {
	names := make([]string, 0, len(c.Servers))
	for _, s := range c.Servers {
		names = append(names, s.Names()...)
	}
	return names
}

func policyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check and explain which tools code may call, and which you always allow",
		Long: "Check and explain the policy that MCP_BRIDGE_POLICY names, and which tools you always allow.\n" +
			"Servers and tools go by their real names here, as in the policy: not by those that they have in code.",
	}
	check := &cobra.Command{
		Use: "check", Short: "Read the policy, and say what is wrong with it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withParts(cmd.Context(), a.io.Err, once, func(_ context.Context, p *parts) error {
				return policyCommands{parts: p, io: a.io}.check()
			})
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "Show the tools that you always allow", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return policyList(a.io) },
	}
	var who string
	grant := &cobra.Command{
		Use: "grant SERVER.TOOL", Short: "Always allow a tool that the policy would ask you about",
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withParts(cmd.Context(), a.io.Err, once, func(ctx context.Context, p *parts) error {
				return commandsFor(who, p, a.io).allow(ctx, args[0])
			})
		},
	}
	grant.Flags().StringVar(&who, "who", bridge.Local, whoUsage)
	var whose string
	forget := &cobra.Command{
		Use:   "forget SERVER.TOOL…",
		Short: "Ask again about tools that you always allow; * stands for any characters, ? for one",
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return policyForget(a.io, args, whose) },
	}
	forget.Flags().StringVar(&whose, "who", "", "the `principal` whose code is asked about again; default: all")
	cmd.AddCommand(check, policyTestCmd(a), policyApproveCmd(a), list, grant, forget)
	return cmd
}

const whoUsage = "the `principal` whose code calls it, over HTTP"

// policyCommands are what the user asks about the policy.
type policyCommands struct {
	*parts
	io        *terminal.Streams
	principal string // whose code calls
}

// commandsFor has the bridge follow what the policy says of a principal's code.
func commandsFor(who string, p *parts, io *terminal.Streams) policyCommands {
	if p.broken == nil {
		p.policy, _ = p.policy.For(who)
		p.bridge.UpdatePolicy(p.policy)
	}
	return policyCommands{p, io, who}
}

func policyApproveCmd(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve",
		Short: "Say yes to a policy that was changed while code was run",
		Long: "Say yes to a policy that was changed while code was run, and that code may have written.\n" +
			"It shows the file that MCP_BRIDGE_POLICY names, and asks. Bridges follow it from then on.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return policyApprove(cmd.Context(), a.io, yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

func (c policyCommands) check() error {
	var bad *policy.FileError
	switch {
	case errors.As(c.broken, &bad) && len(bad.More) > 0:
		for _, e := range slices.Concat([]*policy.FileError{bad}, bad.More) {
			fmt.Fprintln(c.io.Err, "mcp-bridge: "+e.Mistake())
		}
		fmt.Fprintf(c.io.Err, "the policy can't be used: it has %d mistakes, and no code will be run\n",
			len(bad.More)+1)
		return exit.With(exit.Unavailable)
	case c.policy == nil:
		return c.broken
	case c.policy.Path() == "":
		fmt.Fprintln(c.io.Out, "MCP_BRIDGE_POLICY is not set: code may call every tool that its server's host "+
			"shows"+hostsPolicy("policy check"))
		return nil
	}
	rules, limits := c.policy.Size()
	fmt.Fprintf(c.io.Out, "%s: in order; rules: %d, limits: %d\n", c.policy.Path(), rules, limits)
	known := serverNames(c.catalog)
	missing := func(names []string, tool string) string {
		why, sure := c.bridge.Catalog().Unreachable(tool, firstNames(c.catalog, names)...)
		return map[bool]string{true: why}[sure]
	}
	for _, line := range slices.Concat(c.policy.Unused(known), c.policy.Missing(known, missing)) {
		fmt.Fprintln(c.io.Out, "warning: "+line)
	}
	return c.broken
}

// hostsPolicy tells of the policy that install has hosts follow, which no command does by itself,
// and how one does; it tells nothing where there is no such file.
func hostsPolicy(command string) string {
	path := settings.FirstPolicy()
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return fmt.Sprintf(".\nHosts that mcp-bridge install has written to follow another; type: "+
		"MCP_BRIDGE_POLICY=%s mcp-bridge %s", text.ShellWord(path), command)
}

// policyApprove takes the user's yes to the policy as it is shown.
func policyApprove(ctx context.Context, io *terminal.Streams, yes bool) error {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	file, err := cfg.ReadPolicy()
	if err != nil {
		return err
	}
	if file.Path() == "" {
		return exit.Usage(errors.New("MCP_BRIDGE_POLICY is not set: set it to the file, as your host does" +
			hostsPolicy("policy approve")))
	}
	kept, err := lasting(io.Err)
	if err != nil {
		return err
	}
	shown := text.Escape(fmt.Sprintf("Policy %s\n%s\n", file.Path(), file.Text()))
	if err := io.Confirm(ctx, shown, "Follow it from now on? [y/N] ", yes); err != nil {
		return err
	}
	if err := kept.Trust(file.Path(), file.Text()); err != nil {
		return fmt.Errorf("keeping the approval: %w", err)
	}
	fmt.Fprintf(io.Out, "approved %s; bridges follow it from now on\n", text.Escape(file.Path()))
	return nil
}

// firstNames returns the servers of these names, each once, by the name that it is used under.
func firstNames(c discovery.Catalog, names []string) []string {
	var out []string
	for _, s := range c.Servers {
		if slices.ContainsFunc(s.Names(), func(name string) bool { return slices.Contains(names, name) }) {
			out = append(out, s.Name)
		}
	}
	return out
}

func (c policyCommands) allow(ctx context.Context, name string) error {
	s, tool, err := approvals.Grantee(c.catalog, name)
	if err != nil {
		return exit.Usage(err)
	}
	if c.grants() == nil {
		return settings.ErrNoPlace
	}
	granted := c.grant(s, tool)
	if err := c.approvals.Grant(granted); err != nil {
		return fmt.Errorf("keeping that it is allowed: %w", err)
	}
	where := ""
	if s.StartedHere() {
		where = " and started in this directory"
	}
	who := ""
	if granted.Principal != "" {
		who = fmt.Sprintf(" by code of %q", granted.Principal)
	}
	fmt.Fprintf(c.io.Out, "tool %q of server %q, as it is configured now%s, may be called%s without asking; "+
		"a policy that denies it still does\n", tool, s.Name, where, who)
	if why, _ := c.bridge.Catalog().Unreachable(tool, s.Name); why != "" {
		fmt.Fprintf(c.io.Out, "  but %s\n", why)
	}
	switch d, _ := c.judge(ctx, s, tool, false); {
	case c.broken != nil:
		fmt.Fprintf(c.io.Out, "  but no code will be run: %v\n", c.broken)
	case d.Verdict == policy.Deny:
		fmt.Fprintf(c.io.Out, "  but now every call of it is denied, by %s\n", d.Why())
	}
	return nil
}

// judge returns the verdict on a tool. With start it starts the server if what that says of its
// tool counts.
func (c policyCommands) judge(ctx context.Context, s discovery.Server, tool string,
	start bool) (policy.Decision, error) {
	known := c.bridge.Catalog()
	if d, ok := known.JudgeMethod(s.Name, tool); ok {
		return d, nil
	}
	t, _ := known.LastListed(s.Name, tool)
	if _, hidden := s.HiddenBy(tool); start && !hidden && c.policy.Hinted(known.Judged(s.Name, tool, nil)) {
		all, err := c.pool.Tools(ctx, s.Name)
		if err != nil {
			return policy.Decision{}, err
		}
		if i := slices.IndexFunc(all, func(t upstream.Tool) bool { return t.Name == tool }); i >= 0 {
			t = all[i]
		}
	}
	return known.Judge(s.Name, t), nil
}

// grant returns a grant for what the server said of the tool last. If nothing is known of it, the
// grant is for what the server says when the tool is called.
func (c policyCommands) grant(s discovery.Server, tool string) policy.Grant {
	t, known := c.bridge.Catalog().LastListed(s.Name, tool)
	g := bridge.GrantOf(s, t)
	if !known {
		g.Seen = policy.Seen{}
	}
	if c.principal != bridge.Local {
		g.Principal = c.principal
	}
	return g
}

func policyList(io *terminal.Streams) error {
	kept, err := lasting(io.Err)
	if err != nil {
		return err
	}
	all := kept.Grants()
	if len(all) == 0 {
		fmt.Fprintln(io.Out, "there is no tool that you always allow")
		return nil
	}
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	shared := cfg.NamesClients() ||
		slices.ContainsFunc(all, func(g policy.Grant) bool { return g.Principal != "" })
	row := func(who string, cells ...string) []string {
		if shared {
			cells = slices.Insert(cells, 1, who)
		}
		return cells
	}
	t := terminal.Table{Rows: [][]string{row("WHO", "SERVER.TOOL", "SINCE", "DEFINITION OF THE SERVER")}}
	for _, g := range all {
		t.Rows = append(t.Rows, row(cmp.Or(g.Principal, bridge.Local), g.Server+"."+g.Tool,
			g.Since.Local().Format(time.DateTime), fmt.Sprintf("%.12s", g.Definition)))
	}
	io.Out.Screen().Table(t)
	return nil
}

// policyForget removes the grants that patterns fit, of one principal or, for none, of all.
func policyForget(io *terminal.Streams, patterns []string, whose string) error {
	kept, err := lasting(io.Err)
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		fits, err := policy.Matcher(pattern)
		if err != nil {
			return exit.Usage(err)
		}
		n, err := kept.Forget(func(g policy.Grant) bool {
			if whose != "" && whose != cmp.Or(g.Principal, bridge.Local) {
				return false
			}
			return fits(policy.Tool{Server: g.Server, Name: g.Tool}) || g.Server+"."+g.Tool == pattern
		})
		if err != nil {
			return fmt.Errorf("forgetting %s: %w", pattern, err)
		}
		fmt.Fprintf(io.Out, "%s: forgot %d\n", pattern, n)
	}
	return nil
}

func policyTestCmd(a *app) *cobra.Command {
	var args, who string
	cmd := &cobra.Command{
		Use:   "test SERVER.TOOL",
		Short: "Explain what would become of a call: which file, which line, which rule",
		Long: "Explain what would become of a call: which file, which line, which rule.\n" +
			"The server is started only where the verdict depends on what it says of its tool.\n\n" +
			"Exit codes: 0 the call would be made, 3 you would be asked first, 4 it would be refused; 1 failure,\n" +
			"2 wrong usage, or no such server or tool.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTools,
		RunE: func(cmd *cobra.Command, names []string) error {
			var object map[string]any
			if err := json.Unmarshal([]byte(cmp.Or(args, "{}")), &object); err != nil || object == nil {
				return exit.Usage(errors.New(`--args must be a JSON object such as {"path": "/tmp"}`))
			}
			return withParts(cmd.Context(), a.io.Err, once, func(ctx context.Context, p *parts) error {
				return commandsFor(who, p, a.io).test(ctx, names[0], cmp.Or(args, "{}"))
			})
		},
	}
	cmd.Flags().StringVar(&who, "who", bridge.Local, whoUsage)
	cmd.Flags().StringVar(&args, "args", "", "the arguments as `JSON`, for the limits of their size")
	return cmd
}

func (c policyCommands) test(ctx context.Context, name, args string) error {
	if c.broken != nil {
		return c.broken
	}
	s, tool, configured := approvals.ToolOf(c.catalog, name)
	if one, err := policy.Exact(name); !configured && err == nil {
		s.Name, tool = one.Server, one.Name
	} else if !configured {
		s.Name, tool, _ = strings.Cut(name, ".") // a name with * or ? in it
	}
	if s.Name == "" || tool == "" {
		return exit.Usage(fmt.Errorf("%q is no tool: say SERVER.TOOL; mcp-bridge servers lists the servers", name))
	}
	d, err := c.judge(ctx, s, tool, configured)
	if err != nil {
		return err
	}
	why, sure := c.bridge.Catalog().Unreachable(tool, s.Name)
	verdict := "tool %q of server %q: %s\n  why: %s\n"
	if why != "" && sure {
		verdict = "there is no tool %q of server %q; the verdict on one would be %s\n  why: %s\n"
	}
	fmt.Fprintf(c.io.Out, verdict, tool, s.Name, d.Verdict, d.Why())
	granted := false
	if d.Verdict == policy.Ask && configured {
		granted = sayGranted(c.io.Out, c.grants(), c.grant(s, tool))
	}
	beyond := c.policy.Run().Count(c.bridge.Catalog().Judged(s.Name, tool, nil), len(args))
	if beyond != nil && d.Verdict != policy.Deny {
		fmt.Fprintf(c.io.Out, "  but beyond a limit, already as the first call of a run: %v\n", beyond)
	}
	switch {
	case why != "" && sure:
		return exit.Usage(errors.New(why))
	case why != "":
		fmt.Fprintf(c.io.Out, "  but %s\n", why)
	}
	switch {
	case d.Verdict == policy.Deny, beyond != nil:
		return exit.With(exit.Denied)
	case d.Verdict == policy.Ask && !granted:
		return exit.With(exit.Asked)
	}
	return nil
}

// sayGranted prints and reports whether the user always allows a tool.
func sayGranted(out *terminal.Output, all elicit.Grants, g policy.Grant) bool {
	if all == nil {
		return false
	}
	kept, has := all.Granted(g)
	if !has {
		return false
	}
	if changed := kept.Seen.Changed(g.Seen); len(changed) > 0 {
		fmt.Fprintf(out,
			"  which you always allow, but its server has changed its %s since: you are asked again\n",
			strings.Join(changed, " and "))
		return false
	}
	fmt.Fprintln(out, "  which you always allow: mcp-bridge policy list")
	return true
}
