package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// policy reads the file that the user names. Without one, everything is allowed; one that can't be read is an error.
func (c config) policy() (*policy.Policy, error) {
	if c.Policy == "" {
		return new(policy.Policy), nil
	}
	path, err := filepath.Abs(c.Policy)
	if err != nil {
		return nil, err
	}
	return policy.Read(path)
}

// untrustedPolicy says that code may have written the policy.
type untrustedPolicy struct{ path string }

func (e untrustedPolicy) Error() string {
	return fmt.Sprintf("the policy %s isn't followed: it was changed while code was run, so code may have written it, "+
		"and you have not said yes to it", e.path)
}

// Hint names the next step for a person.
func (e untrustedPolicy) Hint() string {
	return "read the file, and see with mcp-bridge policy check what is in it; to follow it, run with MCP_BRIDGE_POLICY set to it: " +
		"mcp-bridge policy approve; then start the bridge again"
}

// trustPolicy has the policy refused if code may have written it.
func (p *parts) trustPolicy(a *approvals.Approvals) {
	if p.broken == nil && p.policy.Path() != "" && !a.Trusts(p.policy.Path(), p.policy.Text()) {
		p.broken = untrustedPolicy{p.policy.Path()}
	}
}

// grants are kept with what is known of servers. Where there is no place for that, the user is asked
// again in each run.
func (p *parts) grants() elicit.Grants {
	if p.approvals == nil || stateDir() == "" {
		return nil
	}
	return p.approvals
}

var errNoPlace = errors.New("there is no directory to keep it in: set HOME")

// lasting are the approvals, for a command about what is kept.
func (a *app) lasting() (*approvals.Approvals, error) {
	if stateDir() == "" {
		return nil, errNoPlace
	}
	return approvals.New(approvalsConfig(slog.New(slog.NewTextHandler(a.stderr, nil)))), nil
}

// stateDir is where programs keep what lasts and isn't configuration: that of the XDG Base Directory
// Specification, or the system's own.
func stateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcp-bridge")
	}
	if dir := os.Getenv("LOCALAPPDATA"); filepath.Separator == '\\' && dir != "" {
		return filepath.Join(dir, "mcp-bridge")
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "state", "mcp-bridge")
}

// warnOfPolicy logs what a person should know of the policy before it is needed.
func (p *parts) warnOfPolicy() {
	if p.broken != nil {
		p.log.Error("no code will be run", "err", p.broken)
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

func (a *app) policyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check and explain which tools code may call, and which you always allow",
		Long: "Check and explain the policy that MCP_BRIDGE_POLICY names, and which tools you always allow.\n" +
			"Servers and tools go by their real names here, as in the policy: not by those that they have in code.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	forget := &cobra.Command{
		Use: "forget SERVER.TOOL…", Short: "Ask again about tools that you always allow; * stands for any characters, ? for one",
		Args: cobra.MinimumNArgs(1), RunE: func(_ *cobra.Command, args []string) error { return a.policyForget(args) },
	}
	cmd.AddCommand(
		&cobra.Command{Use: "check", Short: "Read the policy, and say what is wrong with it", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return a.withParts(cmd.Context(), once, a.policyCheck) }},
		a.policyTestCmd(), a.policyApproveCmd(),
		&cobra.Command{Use: "list", Short: "Show the tools that you always allow", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.policyList() }},
		&cobra.Command{Use: "grant SERVER.TOOL", Short: "Always allow a tool that the policy would ask you about", Args: cobra.ExactArgs(1), ValidArgsFunction: completeTools,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.withParts(cmd.Context(), once, func(_ context.Context, p *parts) error { return a.policyGrant(p, args[0]) })
			}},
		forget)
	return cmd
}

func (a *app) policyApproveCmd() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve",
		Short: "Say yes to a policy that was changed while code was run",
		Long: "Say yes to a policy that was changed while code was run, and that code may have written.\n" +
			"It shows the file that MCP_BRIDGE_POLICY names, and asks. Bridges that start after that follow it.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.policyApprove(yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

func (a *app) policyCheck(_ context.Context, p *parts) error {
	var bad *policy.FileError
	switch {
	case errors.As(p.broken, &bad) && len(bad.More) > 0:
		for _, e := range slices.Concat([]*policy.FileError{bad}, bad.More) {
			fmt.Fprintln(a.stderr, "mcp-bridge: "+e.Mistake())
		}
		fmt.Fprintf(a.stderr, "the policy can't be used: it has %d mistakes, and no code will be run\n", len(bad.More)+1)
		return exitError{exitUnavailable}
	case p.policy == nil:
		return p.broken
	case p.policy.Path() == "":
		fmt.Fprintln(a.stdout, "MCP_BRIDGE_POLICY is not set: code may call every tool that its server's host shows")
		return nil
	}
	rules, limits := p.policy.Size()
	fmt.Fprintf(a.stdout, "%s: in order; rules: %d, limits: %d\n", p.policy.Path(), rules, limits)
	known := serverNames(p.catalog)
	missing := func(names []string, tool string) string {
		why, sure := p.bridge.Catalog().Unreachable(tool, firstNames(p.catalog, names)...)
		return map[bool]string{true: why}[sure]
	}
	for _, line := range slices.Concat(p.policy.Unused(known), p.policy.Missing(known, missing)) {
		fmt.Fprintln(a.stdout, "warning: "+line)
	}
	return p.broken
}

// policyApprove takes the user's yes to the policy as it is shown.
func (a *app) policyApprove(yes bool) error {
	cfg, err := readConfig()
	if err != nil {
		return err
	}
	file, err := cfg.policy()
	if err != nil {
		return err
	}
	if file.Path() == "" {
		return usageError{errors.New("MCP_BRIDGE_POLICY is not set: set it to the file, as your host does")}
	}
	kept, err := a.lasting()
	if err != nil {
		return err
	}
	shown := text.Escape(fmt.Sprintf("Policy %s\n%s\n", file.Path(), file.Text()))
	if yes {
		fmt.Fprint(a.stderr, shown)
	} else if err := a.confirm(shown + "Follow it from the next start on? [y/N] "); err != nil {
		return err
	}
	if _, err := kept.Trust(file.Path(), file.Text()); err != nil {
		return fmt.Errorf("keeping the approval: %w", err)
	}
	fmt.Fprintf(a.stdout, "approved %s; bridges that start from now on follow it\n", text.Escape(file.Path()))
	return nil
}

// firstNames are the servers of these names, each once, by the name that it is used under.
func firstNames(c discovery.Catalog, names []string) []string {
	var out []string
	for _, s := range c.Servers {
		if slices.ContainsFunc(s.Names(), func(name string) bool { return slices.Contains(names, name) }) {
			out = append(out, s.Name)
		}
	}
	return out
}

// splitTool finds the server and the tool that SERVER.TOOL names. Where several servers' names fit,
// the longest one counts. A name in quotes or with backslashes is read as in a policy.
func splitTool(c discovery.Catalog, name string) (found discovery.Server, tool string, ok bool) {
	one, err := policy.Exact(name)
	quoted := err == nil && strings.ContainsAny(name, `\"`)
	for _, s := range c.Servers {
		if quoted && s.Name == one.Server {
			return s, one.Name, true
		}
		if rest, has := strings.CutPrefix(name, s.Name+"."); has && rest != "" && len(s.Name) >= len(found.Name) {
			found, tool, ok = s, rest, true
		}
	}
	return found, tool, ok
}

// grantee returns the server and the tool that a grant is for.
func grantee(c discovery.Catalog, name string) (discovery.Server, string, error) {
	one, err := policy.Exact(name)
	if errors.Is(err, policy.ErrPattern) {
		return discovery.Server{}, "", usageError{fmt.Errorf(`%q is a pattern, and a grant is for one tool: write a rule with verdict = "allow" into the file that MCP_BRIDGE_POLICY names. `+
			`In the name of one tool, write \* for * and \? for ?`, name)}
	}
	if s, tool, ok := splitTool(c, name); ok {
		return s, tool, nil
	}
	for _, p := range c.Problems {
		if p.Server != "" && (p.Server == one.Server || strings.HasPrefix(name, p.Server+".")) {
			return discovery.Server{}, "", usageError{fmt.Errorf("server %q is configured in %s but can't be used: %s; %s",
				p.Server, p.Source.Path, p.Reason, cmp.Or(p.Next, "mcp-bridge servers lists the servers"))}
		}
	}
	return discovery.Server{}, "", usageError{fmt.Errorf("%q is no tool of a configured server: say SERVER.TOOL; mcp-bridge servers lists the servers", name)}
}

func (a *app) policyGrant(p *parts, name string) error {
	s, tool, err := grantee(p.catalog, name)
	if err != nil {
		return err
	}
	if p.grants() == nil {
		return errNoPlace
	}
	if _, err := p.approvals.Grant(p.grant(s, tool)); err != nil {
		return fmt.Errorf("keeping that it is allowed: %w", err)
	}
	where := ""
	if s.StartedHere() {
		where = " and started in this directory"
	}
	fmt.Fprintf(a.stdout, "tool %q of server %q, as it is configured now%s, may be called without asking; a policy that denies it still does\n", tool, s.Name, where)
	if why, _ := p.bridge.Catalog().Unreachable(tool, s.Name); why != "" {
		fmt.Fprintf(a.stdout, "  but %s\n", why)
	}
	switch d := p.judgeListed(s, tool); {
	case p.broken != nil:
		fmt.Fprintf(a.stdout, "  but no code will be run: %v\n", p.broken)
	case d.Verdict == policy.Deny:
		fmt.Fprintf(a.stdout, "  but now every call of it is denied, by %s\n", d.Why())
	}
	return nil
}

// judgeListed returns the verdict on a tool, as far as it is known without starting the server.
func (p *parts) judgeListed(s discovery.Server, tool string) policy.Decision {
	if d, ok := p.bridge.Catalog().JudgeMethod(s.Name, tool); ok {
		return d
	}
	t, _ := p.bridge.Catalog().LastListed(s.Name, tool)
	return p.bridge.Catalog().Judge(s.Name, t)
}

// grant is for what the server said of the tool last. Where nothing is known of it, it is for what the server says when the tool
// is called.
func (p *parts) grant(s discovery.Server, tool string) policy.Grant {
	t, known := p.bridge.Catalog().LastListed(s.Name, tool)
	g := bridge.GrantOf(s, t)
	if !known {
		g.Seen = policy.Seen{}
	}
	return g
}

func (a *app) policyList() error {
	kept, err := a.lasting()
	if err != nil {
		return err
	}
	all := kept.Grants()
	if len(all) == 0 {
		fmt.Fprintln(a.stdout, "there is no tool that you always allow")
		return nil
	}
	t := grid{rows: [][]string{{"SERVER.TOOL", "SINCE", "DEFINITION OF THE SERVER"}}}
	for _, g := range all {
		t.rows = append(t.rows, []string{g.Server + "." + g.Tool, g.Since.Local().Format(time.DateTime), fmt.Sprintf("%.12s", g.Definition)})
	}
	screenOf(a.stdout).table(t)
	return nil
}

func (a *app) policyForget(patterns []string) error {
	kept, err := a.lasting()
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		fits, err := policy.Matcher(pattern)
		if err != nil {
			return usageError{err}
		}
		n, err := kept.Forget(func(g policy.Grant) bool {
			return fits(policy.Tool{Server: g.Server, Name: g.Tool}) || g.Server+"."+g.Tool == pattern
		})
		if err != nil {
			return fmt.Errorf("forgetting %s: %w", pattern, err)
		}
		fmt.Fprintf(a.stdout, "%s: forgot %d\n", pattern, n)
	}
	return nil
}
