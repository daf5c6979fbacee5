package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// approvalsConfig says where the record of approved servers is, and where bridges find each other.
func approvalsConfig(log *slog.Logger) approvals.Config {
	c := approvals.Config{Log: log}
	if dir := stateDir(); dir != "" {
		c.Record = filepath.Join(dir, "approved.json")
	}
	c.Sockets = runtimeParents()
	return c
}

// admit has the approvals decide about the servers that were found. A command that ends by itself
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
	if what == serving && len(p.heldNames()) > 0 {
		p.approvals.Reach()
	}
	if what != serving {
		p.catalog = withoutHeld(p.catalog, p.approvals)
	}
}

// refuse is upstream.Config.Refuse.
func (p *parts) refuse(s discovery.Server) error {
	if p.approvals == nil || !p.approvals.Held(s) {
		return nil
	}
	return errors.New(heldReason + "; the user has to approve it at a terminal (mcp-bridge servers approve)") // a model reads it
}

const heldReason = "it is new since the bridge started, or has changed, where code could have written it, " +
	"and you have not said yes to it"

// withoutHeld makes problems of the servers that are held.
func withoutHeld(c discovery.Catalog, a *approvals.Approvals) discovery.Catalog {
	var used []discovery.Server
	problems := slices.Clone(c.Problems)
	for _, s := range c.Servers {
		if !a.Held(s) {
			used = append(used, s)
			continue
		}
		problems = append(problems, discovery.Problem{Source: s.Source, Server: s.Name,
			State: discovery.New, Reason: heldReason, Next: elicit.HowToApprove(s, "this directory")})
	}
	c.Servers, c.Problems = used, problems
	return c
}

// heldNames are the names of the servers that are held.
func (p *parts) heldNames() (names []string) {
	for _, s := range p.catalog.Servers {
		if p.approvals.Held(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

func (a *app) approveCmd() *cobra.Command {
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
	alias := aliases(c)
	i := slices.IndexFunc(c.Servers, func(s discovery.Server) bool { return isCalled(name, s, alias) })
	if i < 0 {
		return usageError{fmt.Errorf("there is no server %q here; mcp-bridge servers lists them. "+
			"One of a project is approved in its directory", name)}
	}
	s := c.Servers[i]
	shown := fmt.Sprintf("Server %q\n%s\n", s.Name, elicit.Definition(s))
	if yes {
		fmt.Fprint(a.stderr, shown)
	} else if err := a.confirm(shown + "It is started as you, outside the sandbox. Start it, now and later? [y/N] "); err != nil {
		return err
	}
	all := approvals.New(approvalsConfig(slog.New(slog.NewTextHandler(a.stderr, nil))))
	told, err := all.Approve(s)
	if err != nil {
		return fmt.Errorf("keeping the approval: %w", err)
	}
	fmt.Fprintf(a.stdout, "approved %s; bridges that run and know it now: %d\n",
		text.Escape(strconv.Quote(s.Name)), told)
	return nil
}

// confirm returns nil if the user says yes at the terminal that the process belongs to. What stands
// in for it in a pipe is nobody's word.
func (a *app) confirm(question string) error {
	t, err := a.terminal()
	if err != nil {
		return usageError{fmt.Errorf("there is no terminal to ask at (%w); at one, type the command again, or type --yes", err)}
	}
	defer t.Close()
	fmt.Fprint(visible{w: t}, question)
	if !isYes(readAnswer(t)) {
		return exitError{exitFailure}
	}
	return nil
}
