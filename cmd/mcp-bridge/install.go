package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

// installOptions are the flags of install and adopt.
type installOptions struct {
	all, show, undo, yes, ask, hosts bool
	scope                            string
	servers                          []string
}

func installCmd(a *app) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install [HOST]...",
		Short: "Put the bridge into the hosts on this machine",
		Long: "Put the bridge into the hosts on this machine, or into those that are named. It shows how their\n" +
			"files change, asks, and writes them with a backup beside each. Their comments and order stay. Without\n" +
			"a HOST and without --all it asks host by host. It also writes a first policy, unless there is one:\n" +
			"what is marked read-only is allowed, all else is asked about. Hosts that can are told to call the\n" +
			"bridge's tools without asking, since the policy asks; --ask leaves that out. Calls are recorded in a\n" +
			"file of this machine, without what they are about, for mcp-bridge stats.\n\n" +
			"HOST is " + strings.Join(hostIDs(), ", ") + ".",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return hostIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.scope != "user" && o.scope != "project" {
				return exit.Usage(fmt.Errorf("--scope=%q: it is user or project", o.scope))
			}
			if o.undo {
				chosen, err := choose(install.Known(), args)
				if err != nil && len(args) > 0 {
					return err
				}
				return undo(cmd.Context(), a.io, "install", chosen, nil, o)
			}
			return installBridge(cmd.Context(), a.io, args, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "all hosts that are found, in one question")
	f.StringVar(&o.scope, "scope", "user", "user: your own files; project: those of the working directory")
	f.BoolVar(&o.show, "print", false, "only show what would be written, and the host's own command for it")
	f.BoolVar(&o.undo, "undo", false, "take back what install has written")
	f.BoolVar(&o.yes, "yes", false, "don't ask")
	f.BoolVar(&o.hosts, "host-command", false, "have the host's own command write the entry, where it has one")
	f.BoolVar(&o.ask, "ask", false, "leave it to the host to ask before each call")
	return cmd
}

func hostIDs() (ids []string) {
	for _, h := range install.Known() {
		ids = append(ids, h.ID)
	}
	return ids
}

// mover changes hosts' files, and what the bridge keeps for servers that move.
type mover struct {
	io      *terminal.Streams
	journal *install.Journal
	secrets secretCommands
}

func newMover(io *terminal.Streams, verb string) (mover, error) {
	j, err := journal(verb)
	return mover{io, j, secretCommands{io, secretStore()}}, err
}

// journal returns what remembers the files that a command has written.
func journal(verb string) (*install.Journal, error) {
	if settings.StateDir() == "" {
		return nil, settings.ErrNoPlace
	}
	return &install.Journal{Dir: settings.StateDir(), Verb: verb}, nil
}

// warnRoot says what becomes of a bridge that root's hosts start.
func warnRoot(io *terminal.Streams, cfg settings.Settings) {
	if asRoot(cfg) {
		io.Say("warning: this is root, and as root the bridge runs no code: in root's hosts every call would be " +
			"refused.\nnext: run the command as the user whose hosts are meant; docs/install.md, As root, says what " +
			"a host of root's is to start")
	}
}

func installBridge(ctx context.Context, io *terminal.Streams, names []string, o installOptions) error {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	warnRoot(io, cfg)
	m, err := newMover(io, "install")
	if err != nil {
		return err
	}
	c := install.Config{FS: discovery.Root(), Env: discovery.Current(cfg.Config), Ask: o.ask,
		Project: o.scope == "project", Show: o.show, LookPath: onPath}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	var vars []string
	if c.Command, vars, err = install.StartedWith(exe, version(), c.Project); err != nil {
		return exit.Usage(err)
	}
	var policy *install.File
	if !c.Project { // a project's file is for others too
		first := settings.FirstPolicy()
		if first == "" {
			return settings.ErrNoPlace
		}
		path, err := filepath.Abs(cmp.Or(cfg.Policy, first))
		if err != nil {
			return err
		}
		log, _ := auditFile(cfg, "")
		if log, err = filepath.Abs(log); err != nil {
			return err
		}
		c.Vars = append(vars, "MCP_BRIDGE_POLICY="+path, "MCP_BRIDGE_AUDIT="+log)
		if policy, err = install.PlanPolicy(path); err != nil {
			return err
		}
	}
	installer := install.New(c)
	chosen, err := choose(installer.Hosts(), names)
	if err != nil {
		return err
	}
	plans, failed := m.plan(installer, chosen)
	if o.show {
		printPlans(io.Out, policy, plans)
		return exit.If(failed)
	}
	for i := range plans {
		if cmd := plans[i].Command; !o.hosts || cmd == nil || !onPath(cmd[0]) {
			plans[i].Command = nil
		}
	}
	each := len(names) == 0 && !o.all && !o.yes
	if err := m.writePlans(ctx, policy, plans, each, o.yes); err != nil {
		return err
	}
	printStatsLine(ctx, io.Out, cfg)
	return exit.If(failed)
}

// printStatsLine ends what changes hosts with what that is for.
func printStatsLine(ctx context.Context, out *terminal.Output, cfg settings.Settings) {
	found := scan(cfg, slog.New(slog.DiscardHandler))
	fmt.Fprintln(out, "mcp-bridge stats: "+statsLine(ctx, cfg, found))
}

func onPath(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// choose returns the hosts of some names, or else those that are found.
func choose(all []install.Host, names []string) (chosen []install.Host, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(h install.Host) bool {
			return strings.EqualFold(h.ID, name) || strings.EqualFold(h.Name, name)
		})
		if i < 0 {
			ids := hostIDs()
			near := cmp.Or(text.DidYouMean(name, ids), "; they are "+strings.Join(ids, ", "))
			return nil, exit.Usage(fmt.Errorf("there is no host %q%s", name, near))
		}
		chosen = append(chosen, all[i])
	}
	for _, h := range all {
		if h.Found && len(names) == 0 {
			chosen = append(chosen, h)
		}
	}
	if chosen == nil {
		return nil, exit.Usage(errors.New("no host was found here; name one, such as claude-code " +
			"(mcp-bridge install --help lists them)"))
	}
	return chosen, nil
}

// plan plans for each host, and says which ones have nothing to do or can't be changed.
func (m mover) plan(installer *install.Installer, chosen []install.Host) (plans []install.Plan, failed bool) {
	for _, h := range chosen {
		p, err := installer.Plan(h)
		switch {
		case err != nil:
			failed = true
			m.io.Complain(err)
		case len(p.Files) == 0:
			fmt.Fprintf(m.io.Out, "%s: has the bridge already, as %s\n", p.Host, p.Already)
			if p.Lacks != nil {
				fmt.Fprintf(
					m.io.Out,
					"%s: its entry sets no %s; to have a policy and a record of calls there, add to its "+
						"variables: %s\n",
					p.Host,
					strings.Join(namesOfVars(p.Lacks), " and no "),
					text.Escape(strings.Join(p.Lacks, " ")),
				)
			}
		default:
			plans = append(plans, p)
		}
	}
	return plans, failed
}

func namesOfVars(vars []string) (names []string) {
	for _, v := range vars {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}

func printPlans(out *terminal.Output, policy *install.File, plans []install.Plan) {
	if policy != nil && len(plans) > 0 {
		fmt.Fprintln(out, "# "+policyTitle+"\n"+policy.Diff())
	}
	for _, p := range plans {
		fmt.Fprint(out, shownPlan(p))
		if p.Command != nil {
			fmt.Fprintln(out, "its own command for the entry alone:\n    "+shellLine(p.Command))
		}
		fmt.Fprintln(out, "then: "+p.Next+"\n")
	}
}

func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = text.ShellWord(w)
	}
	return strings.Join(quoted, " ")
}

const policyTitle = "The first policy: which tools code may call"

// shownPlan returns a plan's title and the changes of its files.
func shownPlan(p install.Plan) string {
	s := "# " + p.Host + "\n"
	for _, f := range p.Files {
		if f.Changed() {
			s += f.Diff()
		}
	}
	return s
}

// writePlans asks and writes, host by host or all at once.
func (m mover) writePlans(ctx context.Context, policy *install.File, plans []install.Plan,
	each, yes bool) error {
	groups := [][]install.Plan{plans}
	if each {
		groups = nil
		for _, p := range plans {
			groups = append(groups, []install.Plan{p})
		}
	}
	failed, written := false, false
	for _, group := range groups {
		if len(group) == 0 {
			continue
		}
		shown := ""
		if policy != nil {
			shown = "# " + policyTitle + "\n" + policy.Diff() + "\n"
		}
		for i, p := range group {
			if i > 0 {
				shown += "\n"
			}
			shown += shownPlan(p)
			if p.Command != nil {
				shown += "The entry is written by: " + shellLine(p.Command) + "\n"
			}
		}
		err := m.io.Confirm(ctx, shown+"\n", "Write this? [y/N] ", yes)
		if no := (exit.Error{}); errors.As(err, &no) && each {
			continue
		} else if err != nil {
			return err
		}
		if policy != nil {
			if err := m.writePolicy(ctx, policy); err != nil {
				return err
			}
			policy = nil
		}
		for _, p := range group {
			if err := m.writePlan(ctx, p); err != nil {
				failed = true
				m.io.Complain(fmt.Errorf("%s: %w", p.Host, err))
				continue
			}
			written = true
		}
	}
	if written {
		fmt.Fprintln(m.io.Out, "To take it back, type: mcp-bridge install --undo")
	}
	return exit.If(failed)
}

// writePolicy writes the first policy, to which the user has said yes.
func (m mover) writePolicy(ctx context.Context, policy *install.File) error {
	kept, err := lasting(m.io.Err)
	if err != nil {
		return err
	}
	if err := m.journal.Write(ctx, policy); err != nil {
		return err
	}
	if err := kept.Trust(policy.Path, policy.New); err != nil {
		return fmt.Errorf("keeping the approval of the policy: %w", err)
	}
	fmt.Fprintf(m.io.Out, "policy: written to %s\n", text.Escape(policy.Path))
	return nil
}

func (m mover) writePlan(ctx context.Context, p install.Plan) error {
	for i, f := range p.Files {
		if !f.Changed() {
			continue
		}
		err := error(nil)
		if p.Command != nil && i == 0 {
			err = m.journal.WriteBy(ctx, f, func() error { return runCommand(ctx, p.Command) })
		} else {
			err = m.journal.Write(ctx, f)
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(m.io.Out, "%s: installed in %s; %s\n", p.Host, text.Escape(p.Files[0].Path), p.Next)
	return nil
}

// runCommand runs a host's own command, which has a minute.
func runCommand(ctx context.Context, words []string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", shellLine(words), err, text.Line(string(out)))
	}
	return nil
}
