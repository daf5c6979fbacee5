package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

func adoptCmd(a *app) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "adopt [HOST]... [SERVER]...",
		Short: "Move servers from hosts' files behind the bridge, so that hosts no longer load their definitions",
		Long: "Move servers from the files of hosts that have the bridge to the bridge's own file: all of them,\n" +
			"or those of the hosts and of the names that are given. It shows how the files change and what\n" +
			"definitions take of each host's context before and after, asks, and writes. The host's own switch\n" +
			"disables a server there; without such a switch its entry goes. Secrets in plain text go to the\n" +
			"keyring, and stay in the copies beside the files. What can't be moved is named with the reason.\n\n" +
			"HOST is " + strings.Join(hostIDs(), ", ") + ".",
		RunE: func(cmd *cobra.Command, args []string) error {
			hosts, servers := split(args)
			servers = append(servers, o.servers...)
			if o.undo {
				return undo(cmd.Context(), a.io, "adopt", hosts, servers, o)
			}
			return adopt(cmd.Context(), a.io, hosts, servers, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.show, "print", false, "only show what would be written")
	f.BoolVar(&o.undo, "undo", false, "give the servers back to their hosts")
	f.BoolVar(&o.yes, "yes", false, "don't ask")
	f.StringArrayVar(&o.servers, "server", nil, "a `server`, also one that has a host's name; may be repeated")
	return cmd
}

// split tells hosts from servers among some names. Without any, hosts or servers is nil.
func split(names []string) (hosts []install.Host, servers []string) {
	for _, name := range names {
		if h, err := choose(install.Known(), []string{name}); err == nil {
			hosts = append(hosts, h...)
		} else {
			servers = append(servers, name)
		}
	}
	return hosts, servers
}

// adopter moves servers behind the bridge.
type adopter struct {
	mover
	cfg  settings.Settings
	in   *install.Installer
	kept *approvals.Approvals
}

func adopt(ctx context.Context, io *terminal.Streams, chosen []install.Host, servers []string,
	o installOptions) error {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	warnRoot(io, cfg)
	m, err := newMover(io, "adopt")
	if err != nil {
		return err
	}
	kept := approvals.New(approvalsConfig(slog.New(slog.NewTextHandler(io.Err, nil))))
	found := kept.Update(findServers(cfg))
	wish := wishOf(kept, found)
	wish.Servers = servers
	for _, h := range chosen {
		wish.Hosts = append(wish.Hosts, h.Name)
	}
	in := install.New(install.Config{FS: discovery.Root(), Env: environment(cfg), Show: o.show})
	plan := in.PlanMoves(wish)
	if err := checkNames(io, servers, plan, found); err != nil {
		return err
	}
	shown, err := shownMoves(in, plan)
	if err != nil {
		return err
	}
	unread := slices.ContainsFunc(plan.Stays, func(s install.Stay) bool { return s.Name == "" })
	if o.show || len(plan.All) == 0 {
		fmt.Fprint(io.Out, shown)
		return exit.If(unread || len(plan.All) == 0 && len(plan.Stays) > 0 && len(servers) > 0)
	}
	if err := io.Confirm(ctx, shown+"\n", "Write this? [y/N] ", o.yes); err != nil {
		return err
	}
	failed, err := (&adopter{m, cfg, in, kept}).moveAll(ctx, plan.All)
	if err != nil {
		return err
	}
	printStatsLine(ctx, io.Out, cfg)
	return exit.If(failed || unread)
}

// checkNames returns an error about a name that is no server's, and says which servers no host has.
func checkNames(io *terminal.Streams, servers []string, plan install.Moves, found discovery.Catalog) error {
	var names []string
	for _, m := range plan.All {
		for _, c := range m.From {
			names = append(names, c.Written.Name)
		}
	}
	for _, s := range plan.Stays {
		names = append(names, s.Name)
	}
	for _, name := range servers {
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			continue
		}
		at := slices.IndexFunc(found.Servers, func(s discovery.Server) bool {
			return strings.EqualFold(s.Name, name)
		})
		if at < 0 {
			return exit.Usage(fmt.Errorf("there is no host and no server %s%s", text.Quoted(name),
				text.DidYouMean(name, slices.Concat(hostIDs(), names, serverNames(found)))))
		}
		io.Say(text.Escape(name) + ": no host has it enabled; it is in " + found.Servers[at].Source.String())
	}
	return nil
}

// wishOf returns what is known of the servers.
func wishOf(kept *approvals.Approvals, found discovery.Catalog) install.Wish {
	free := func(s discovery.Server) bool { return !kept.Held(s) }
	held := slices.DeleteFunc(slices.Clone(found.Servers), free)
	c := catalog.New(catalog.Config{Store: openTools(), Log: slog.New(slog.DiscardHandler)}, found.Servers, nil)
	return install.Wish{
		Held: func(s discovery.Server) bool {
			return slices.ContainsFunc(held, func(h discovery.Server) bool { return h.Name == s.Name || h.Same(s) })
		},
		Tokens: func(s discovery.Server, sent install.Sent) (int, bool) {
			return definitionTokens(openTools(), s, sent)
		},
		Own: func(sent install.Sent) int { return ownTokens(c, sent) },
	}
}

// shownMoves returns what would be written, what would change by it, and what stays and why.
func shownMoves(in *install.Installer, plan install.Moves) (string, error) {
	var b strings.Builder
	own, others, err := in.MoveFiles(plan.All)
	if err != nil {
		return "", err
	}
	for _, f := range append([]*install.File{own}, others...) {
		if len(plan.All) > 0 && f.Changed() {
			b.WriteString(f.Diff() + "\n")
		}
	}
	for _, m := range plan.All {
		for _, s := range m.Secrets {
			how := "is taken from the host's file, and kept as you keep secrets"
			if s.Value() == "" {
				how = "is asked for"
			}
			fmt.Fprintf(&b, "%s: the secret %s %s\n", text.Escape(m.Name), s.Name, how)
		}
	}
	var stays []string
	for _, s := range plan.Stays { // by reason
		s.Name = cmp.Or(s.Name, "all")
		why := fmt.Sprintf(" in %s: %s", s.Source, s.Reason)
		if s.Next != "" {
			why += "; " + s.Next
		}
		i := slices.IndexFunc(stays, func(line string) bool { return strings.HasSuffix(line, why) })
		if i < 0 {
			stays = append(stays, "stays: "+text.Escape(s.Name)+why)
		} else {
			stays[i] = strings.TrimSuffix(stays[i], why) + ", " + text.Escape(s.Name) + why
		}
	}
	for _, line := range stays {
		b.WriteString(text.Escape(line) + "\n")
	}
	var unseen []string
	for _, l := range plan.Loads {
		fmt.Fprintf(&b, "%s loads definitions of about %s tokens before, %s after", l.Host,
			text.Count(int64(l.Before)), text.Count(int64(l.After)))
		if l.Unknown != nil {
			fmt.Fprintf(&b, ", without those of %s", text.Escape(strings.Join(l.Unknown, ", ")))
		}
		unseen = append(unseen, l.Unknown...)
		if l.SearchOff != "" {
			fmt.Fprintf(&b, "; its tool search is on by default, and with %s it is about %s before, %s after",
				l.SearchOff, text.Count(int64(l.Whole.Before)), text.Count(int64(l.Whole.After)))
		}
		b.WriteString("\n")
	}
	b.WriteString(neverSeen(unseen))
	if len(plan.All) == 0 {
		b.WriteString("there is nothing to move\n")
	}
	return b.String(), nil
}

// neverSeen says what isn't known of servers that were never asked for their tools.
func neverSeen(names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("not yet seen to start: %s; so the tokens of their tools aren't known either. To start "+
		"them and count, type: mcp-bridge tools\n",
		text.Escape(strings.Join(slices.Compact(names), ", ")))
}

// moveAll keeps the secrets, writes the bridge's own file and, once the servers are found there,
// those of the hosts. A server that fails stays where it is, and leaves nothing behind.
func (a *adopter) moveAll(ctx context.Context, all []*install.Move) (failed bool, err error) {
	moves := a.fit(all, func(m *install.Move) error { return a.keepSecrets(ctx, m) })
	if err := context.Cause(ctx); err != nil { // interrupted at a question
		a.forget(ctx, all, nil)
		return true, err
	}
	a.forget(ctx, without(all, moves), moves)
	if len(moves) == 0 {
		return true, nil
	}
	own, _, err := a.in.MoveFiles(moves)
	if err == nil && own.Changed() {
		err = a.journal.Write(ctx, own)
	}
	if err != nil {
		a.withdraw(ctx, moves, nil)
		return true, err
	}
	arrived := a.fit(moves, a.in.Arrived)
	_, others, err := a.in.MoveFiles(arrived)
	if err != nil {
		a.withdraw(ctx, moves, nil)
		return true, err
	}
	moved, failed := a.writeHosts(ctx, others)
	a.withdraw(ctx, without(moves, moved), moved)
	if len(moved) > 0 {
		fmt.Fprintf(a.io.Out, "moved to %s: %s\n", text.Escape(own.Path), namesOf(moved))
		var unseen []string
		for _, m := range moved {
			if _, known := openTools().Load(m.From[0].Server.Identity()); !known {
				unseen = append(unseen, m.Name)
			}
		}
		fmt.Fprint(a.io.Out, neverSeen(unseen))
		fmt.Fprintln(a.io.Out, "To take it back, type: mcp-bridge adopt --undo")
	}
	return failed || len(moved) < len(all), a.approveMoved(moved)
}

// fit returns the servers for which do succeeds, and says why each other one stays.
func (a *adopter) fit(moves []*install.Move, do func(*install.Move) error) (left []*install.Move) {
	for _, m := range moves {
		if err := do(m); err != nil {
			a.io.Complain(fmt.Errorf("%s stays where it is: %w", text.Escape(m.Name), err))
		} else {
			left = append(left, m)
		}
	}
	return left
}

// writeHosts writes the hosts' files, and returns the servers that at least one is without now.
func (a *adopter) writeHosts(ctx context.Context,
	files []*install.File) (moved []*install.Move, failed bool) {
	for _, f := range files {
		if err := a.journal.Write(ctx, f); err != nil {
			failed = true
			a.io.Complain(fmt.Errorf("not moved from %s: %s: %w", text.Escape(f.Path), namesOf(f.Moves()), err))
			continue
		}
		fmt.Fprintf(a.io.Out, "%s: written\n", text.Escape(f.Path))
		for _, m := range f.Moves() {
			if !slices.Contains(moved, m) {
				moved = append(moved, m)
			}
		}
	}
	return moved, failed
}

func namesOf(moves []*install.Move) string {
	var names []string
	for _, m := range moves {
		names = append(names, text.Escape(m.Name))
	}
	return strings.Join(names, ", ")
}

// without returns the moves of all that some doesn't have.
func without(all, some []*install.Move) []*install.Move {
	return slices.DeleteFunc(slices.Clone(all), func(m *install.Move) bool { return slices.Contains(some, m) })
}

// withdraw takes servers that stay where they are out of the bridge's own file, with their secrets.
// What a host counts on, or another server asks for, is left there.
func (a *adopter) withdraw(ctx context.Context, dropped, moved []*install.Move) {
	if len(dropped) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var names []string
	for _, m := range dropped {
		names = append(names, m.Name)
	}
	back, err := a.journal.PlanUndo([]string{}, names)
	if err != nil {
		a.io.Complain(err)
	} else {
		_ = a.takeBack(ctx, back) // it says what fails
	}
	a.forget(ctx, dropped, moved)
}

// forget removes the secrets that were set for servers that stay where they are. One that a server
// asks for that moves is that one's from then on.
func (a *adopter) forget(ctx context.Context, dropped, moves []*install.Move) {
	for _, m := range dropped {
		for _, name := range m.Set {
			other := slices.IndexFunc(moves, func(m *install.Move) bool {
				return slices.ContainsFunc(m.Secrets, func(s discovery.Asked) bool { return s.Name == name })
			})
			if other >= 0 {
				moves[other].Set = append(moves[other].Set, name)
				continue
			}
			if len(asking(findServers(a.cfg), name)) == 0 {
				a.dropSecret(context.WithoutCancel(ctx), name)
			}
		}
	}
}

// keepSecrets sets what a moved server asks for.
func (a *adopter) keepSecrets(ctx context.Context, m *install.Move) error {
	for _, s := range m.Secrets {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		set, err := a.secrets.keepAsked(ctx, s)
		if err != nil {
			return err
		}
		if set {
			m.Set = append(m.Set, s.Name)
		}
	}
	return nil
}

// approveMoved has bridges that run use the moved servers, whose definitions they have used before
// in other words, and keeps what is known of their tools. One that was not used before, since an
// input was missing, is asked about as any new one.
func (a *adopter) approveMoved(moves []*install.Move) error {
	found, store := findServers(a.cfg), openTools()
	for _, m := range moves {
		was := m.From[0]
		at := slices.IndexFunc(found.Servers, func(s discovery.Server) bool { return s.Name == m.Name })
		if at < 0 || was.Problem != nil && was.Problem.State == discovery.Unusable {
			continue
		}
		is := found.Servers[at]
		if _, err := a.kept.Approve(is); err != nil {
			return fmt.Errorf("keeping the approval of %s: %w", text.Escape(m.Name), err)
		}
		if list, known := store.Load(was.Server.Identity()); known && !is.Same(was.Server) {
			if err := store.Save(is.Identity(), list); err != nil {
				return fmt.Errorf("keeping what is known of %s: %w", text.Escape(m.Name), err)
			}
		}
	}
	return nil
}
