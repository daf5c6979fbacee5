package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// approvalsConfig returns where the record of approved servers is, and where bridges find each
// other.
func approvalsConfig(log *slog.Logger) approvals.Config {
	c := approvals.Config{Log: log, Sockets: runtimeParents()}
	if dir := stateDir(); dir != "" {
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
		p.broken = &approvals.UntrustedError{Path: p.policy.Path()}
	}
}

// refuse implements upstream.Config.Refuse.
func (p *parts) refuse(s discovery.Server) error {
	if p.approvals == nil {
		return nil
	}
	return p.approvals.Refuse(s)
}

// withoutHeld makes problems of the servers that are held.
func withoutHeld(c discovery.Catalog, a *approvals.Approvals) discovery.Catalog {
	return a.WithoutHeld(c, func(s discovery.Server) string { return elicit.HowToApprove(s, "this directory") })
}

func approveCmd(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve SERVER",
		Short: "Say yes to a server that is new, or has changed, where code could have written it",
		Long: "Say yes to a server that is new, or has changed, where code could have written it.\n" +
			"It shows the file and what would be started, and asks at the terminal. Bridges that run start the\n" +
			"server from then on, and those that are started later too, until its definition changes.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeServers,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := readConfig()
			if err != nil {
				return err
			}
			return a.approve(findServers(cfg), args[0], yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

func (a *app) approve(c discovery.Catalog, name string, yes bool) error {
	found, err := only(c, []string{name})
	if err != nil || len(found.Servers) == 0 {
		return usageError{fmt.Errorf("there is no server %q here; mcp-bridge servers lists them. "+
			"One of a project is approved in its directory", name)}
	}
	s := found.Servers[0]
	shown := fmt.Sprintf("Server %q\n%s\n", s.Name, elicit.Definition(s))
	question := "It is started as you, outside the sandbox. Start it, now and later? [y/N] "
	if err := a.confirm(shown, question, yes); err != nil {
		return err
	}
	told, err := approvals.New(approvalsConfig(slog.New(slog.NewTextHandler(a.stderr, nil)))).Approve(s)
	if err != nil {
		return fmt.Errorf("keeping the approval: %w", err)
	}
	fmt.Fprintf(a.stdout, "approved %s; bridges that run and know it now: %d\n",
		text.Escape(strconv.Quote(s.Name)), told)
	return nil
}

// confirm shows what the user is to say yes to, and returns nil if the user does, at the terminal
// that the process belongs to. A pipe in the place of standard input doesn't count. With yes it
// doesn't ask.
func (a *app) confirm(shown, question string, yes bool) error {
	if yes {
		fmt.Fprint(a.stderr, shown)
		return nil
	}
	t, err := a.openTerminal()
	if err != nil {
		return usageError{fmt.Errorf("there is no terminal to ask at (%w); at one, type the command again, or "+
			"type --yes", err)}
	}
	defer t.Close()
	fmt.Fprint(t, shown+question)
	if yes, _ := terminal.ReadAnswer(t); !yes {
		return exitError{exitFailure}
	}
	return nil
}
