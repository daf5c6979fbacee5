package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
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

// grants are kept where programs keep what lasts and isn't configuration (XDG Base Directory, and the systems' own places).
// Where the system has no such place, the user is asked again in each run.
func grants() bridge.Grants {
	if g := grantsFile(); g != nil {
		return g
	}
	return nil
}

func grantsFile() *policy.Grants {
	if dir := stateDir(); dir != "" {
		return policy.NewGrants(filepath.Join(dir, "grants.json"))
	}
	return nil
}

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
		Short: "Check and explain which tools code may call, and what you have allowed for good",
		Long: "Check and explain the policy that MCP_BRIDGE_POLICY names, and what you have allowed for good when you were asked.\n" +
			"Servers and tools go by their real names here, as in the policy: not by those that they have in code.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	forget := &cobra.Command{
		Use: "forget SERVER.TOOL…", Short: "Have you asked again about tools that you have allowed for good; * and ? stand for any characters, for one",
		Args: cobra.MinimumNArgs(1), RunE: func(_ *cobra.Command, args []string) error { return a.policyForget(args) },
	}
	cmd.AddCommand(
		&cobra.Command{Use: "check", Short: "Read the policy, and say what is wrong with it", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.policyCheck() }},
		a.policyTestCmd(),
		&cobra.Command{Use: "list", Short: "Show what you have allowed for good", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.policyList() }},
		&cobra.Command{Use: "grant SERVER.TOOL", Short: "Allow for good a tool that the policy would have you asked about", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return a.policyGrant(args[0]) }},
		forget)
	return cmd
}

func (a *app) policyCheck() error {
	cfg, err := readConfig()
	if err != nil {
		return err
	}
	if cfg.Policy == "" {
		fmt.Fprintln(a.stdout, "MCP_BRIDGE_POLICY is not set: code may call every tool that its server's host shows")
		return nil
	}
	p, err := cfg.policy()
	if err != nil {
		return err
	}
	rules, limits := p.Size()
	fmt.Fprintf(a.stdout, "%s: in order; rules: %d, limits: %d\n", p.Path(), rules, limits)
	for _, line := range p.Unused(serverNames(scan(cfg))) {
		fmt.Fprintln(a.stdout, "warning: "+line)
	}
	return nil
}

func (a *app) policyTestCmd() *cobra.Command {
	var args string
	cmd := &cobra.Command{
		Use:   "test SERVER.TOOL",
		Short: "Explain what would become of a call: which file, which line, which rule",
		Long:  "Explain what would become of a call: which file, which line, which rule.\nThe server is started where it depends on what it says of its tool.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if args != "" {
				var object map[string]json.RawMessage
				if err := json.Unmarshal([]byte(args), &object); err != nil {
					return usageError{fmt.Errorf("--args is a JSON object: %w", err)}
				}
			}
			return a.withParts(cmd.Context(), once, func(ctx context.Context, p *parts) error {
				return a.policyTest(ctx, p, names[0], cmp.Or(args, "{}"))
			})
		},
	}
	cmd.Flags().StringVar(&args, "args", "", "the arguments as `JSON`, for the limits of their size")
	return cmd
}

func (a *app) policyTest(ctx context.Context, p *parts, name, args string) error {
	if p.broken != nil {
		return p.broken
	}
	s, tool, err := splitTool(p.catalog, name)
	if err != nil {
		return err
	}
	t := upstream.Tool{Name: tool}
	if _, hidden := s.HiddenBy(tool); !hidden && p.policy.Hinted(policy.Tool{Server: s.Name, Name: tool, Also: s.Names()[1:]}) {
		all, err := p.pool.Tools(ctx, s.Name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(t upstream.Tool) bool { return t.Name == tool })
		if i < 0 {
			return fmt.Errorf("server %q has no tool %q, and it depends on what it says of it; mcp-bridge tools %q lists what it has", s.Name, tool, s.Name)
		}
		t = all[i]
	}
	d := p.bridge.Judge(s.Name, t)
	fmt.Fprintf(a.stdout, "tool %q of server %q: %s\n  by %s\n", tool, s.Name, d.Verdict, d.Why())
	if d.Verdict == policy.Ask {
		if err := a.sayGranted(bridge.GrantOf(s, tool)); err != nil {
			return err
		}
	}
	if err := p.policy.Run().Count(policy.Tool{Server: s.Name, Name: tool, Also: s.Names()[1:]}, len(args)); err != nil && d.Verdict != policy.Deny {
		fmt.Fprintf(a.stdout, "  but beyond a limit, already as the first call of a run: %v\n", err)
	}
	return nil
}

// sayGranted says whether the user has allowed a tool for good.
func (a *app) sayGranted(g policy.Grant) error {
	file := grantsFile()
	if file == nil {
		return nil
	}
	has, err := file.Has(g)
	if err == nil && has {
		fmt.Fprintln(a.stdout, "  which you have allowed for good: mcp-bridge policy list")
	}
	return err
}

// splitTool finds the server that SERVER.TOOL begins with: of several, the one with the longest name.
func splitTool(c discovery.Catalog, name string) (discovery.Server, string, error) {
	var found discovery.Server
	var tool string
	for _, s := range c.Servers {
		if rest, ok := strings.CutPrefix(name, s.Name+"."); ok && rest != "" && len(s.Name) >= len(found.Name) {
			found, tool = s, rest
		}
	}
	if tool == "" {
		return found, "", usageError{fmt.Errorf("%q is no tool of a configured server: say SERVER.TOOL; mcp-bridge servers lists the servers", name)}
	}
	return found, tool, nil
}

func (a *app) policyGrant(name string) error {
	cfg, err := readConfig()
	if err != nil {
		return err
	}
	s, tool, err := splitTool(scan(cfg), name)
	if err != nil {
		return err
	}
	file := grantsFile()
	if file == nil {
		return errors.New("there is no place to keep it: set HOME")
	}
	if err := file.Add(bridge.GrantOf(s, tool)); err != nil {
		return err
	}
	where := ""
	if s.StartedHere() {
		where = " and started in this directory"
	}
	fmt.Fprintf(a.stdout, "tool %q of server %q, as it is configured now%s, may be called without asking; a policy that denies it still does\n", tool, s.Name, where)
	return nil
}

func (a *app) policyList() error {
	file := grantsFile()
	if file == nil {
		return nil
	}
	all, err := file.List()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(a.stdout, "you have allowed nothing for good")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER.TOOL\tSINCE\tDEFINITION OF THE SERVER")
	for _, g := range all {
		fmt.Fprintf(w, "%s.%s\t%s\t%.12s\n", g.Server, g.Tool, g.Since.Local().Format(time.DateTime), g.Definition)
	}
	return w.Flush()
}

func (a *app) policyForget(patterns []string) error {
	file := grantsFile()
	if file == nil {
		return nil
	}
	for _, text := range patterns {
		fits, err := policy.Matcher(text)
		if err != nil {
			return usageError{err}
		}
		n, err := file.Remove(func(g policy.Grant) bool {
			return fits(policy.Tool{Server: g.Server, Name: g.Tool}) || g.Server+"."+g.Tool == text
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s: forgot %d\n", text, n)
	}
	return nil
}
