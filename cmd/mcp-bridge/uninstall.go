package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

// undo takes back what install or adopt has written: of all hosts or of some, and of all servers
// that moved or of some.
func undo(ctx context.Context, io *terminal.Streams, verb string, chosen []install.Host, servers []string,
	o installOptions) error {
	m, err := newMover(io, verb)
	if err != nil {
		return err
	}
	var ids []string
	for _, h := range chosen {
		ids = append(ids, h.ID)
	}
	back, err := m.journal.PlanUndo(ids, servers)
	if err != nil {
		return err
	}
	switch {
	case len(back) > 0:
	case len(servers) > 0:
		return exit.Usage(fmt.Errorf("%s has moved no server %s; without a name it takes back all that it moved",
			verb, text.Escape(strings.Join(servers, ", "))))

	default:
		fmt.Fprintln(io.Out, "there is nothing to take back")
		return nil
	}
	shown := ""
	if verb == "install" {
		shown, err = orphans(back)
		if err != nil {
			return err
		}
	}
	failed := false
	for _, r := range back {
		if r.File != nil {
			shown += r.File.Diff() + "\n"
		}
		if o.show && r.Conflict != nil {
			failed = failed || r.Host != bridge.Name // what was changed in our own files is the user's
			io.Complain(r.Conflict)
		}
	}
	if o.show {
		fmt.Fprint(io.Out, shown)
		return exit.If(failed)
	}
	if shown != "" {
		if err := io.Confirm(ctx, shown, "Write this? [y/N] ", o.yes); err != nil {
			return err
		}
	}
	return m.takeBack(ctx, back)
}

// orphans warns of servers that a host would lose with the bridge, since they have moved behind it.
func orphans(back []install.Return) (warning string, err error) {
	j, err := journal("adopt")
	if err != nil {
		return "", err
	}
	warned := map[string]bool{} // a host may have several files
	for _, r := range back {
		if warned[r.Host] {
			continue
		}
		warned[r.Host] = true
		names, err := j.Moved(r.Host)
		if err != nil {
			return "", err
		}
		if len(names) > 0 {
			warning += fmt.Sprintf("%s would lose servers that have moved behind the bridge: %s. To give them back "+
				"first, type: mcp-bridge adopt --undo %s\n", r.Host, text.Escape(strings.Join(names, ", ")), r.Host)
		}
	}
	return warning, nil
}

// dropSecret removes a secret if it is there, and says why if it can't.
func (m mover) dropSecret(ctx context.Context, name string) bool {
	err := m.secrets.remove(ctx, name)
	if err == nil || errors.As(err, new(exit.UsageError)) { // there is none
		return true
	}
	m.io.Complain(err)
	return false
}

func (m mover) takeBack(ctx context.Context, back []install.Return) error {
	failed := false
	for _, r := range back {
		err := m.journal.Undo(ctx, r)
		switch {
		case err != nil:
			failed = true
			m.io.Complain(err)
		case r.Conflict != nil:
			fmt.Fprintln(m.io.Out, text.Escape(r.Conflict.Error()))
		case r.File == nil:
			fmt.Fprintf(m.io.Out, "%s: nothing of %s is left in it\n", text.Escape(r.Path), m.journal.Verb)
		case r.File.Remove:
			fmt.Fprintf(m.io.Out, "%s: removed\n", text.Escape(r.Path))
		default:
			fmt.Fprintf(m.io.Out, "%s: taken back\n", text.Escape(r.Path))
		}
		if err != nil {
			continue
		}
		for _, name := range r.Secrets {
			failed = !m.dropSecret(ctx, name) || failed
		}
	}
	return exit.If(failed)
}
