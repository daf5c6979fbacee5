package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// orphanJSON is a container of a dead bridge, for programs.
type orphanJSON struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created,omitzero"` // by the engine's clock; zero for one that the engine has forgotten
	OwnerPID int       `json:"ownerPid"`
	Running  bool      `json:"running"`
}

// reap shows what dead bridges have left, and removes it: their containers, and where their watchdog was killed too, the
// directories of their API services and what still runs for those.
func (a *app) reap(ctx context.Context, p *parts, asJSON bool) error {
	self := runtime.Self()
	dirs, err := reapDirs(runtimeParents(), self)
	var orphans []runtime.Orphan
	_, ferr := p.driver.Facts(ctx) // it chooses the engine
	if ferr == nil {
		if orphans, ferr = runtime.Reap(ctx, p.driver, self); ferr != nil {
			ferr = fmt.Errorf("not all containers of dead bridges could be removed: %w", ferr)
		}
	}
	err = errors.Join(err, ferr)
	if asJSON {
		return errors.Join(printReaped(a.stdout, orphans, dirs), err)
	}
	a.sayReaped(orphans, dirs, err == nil)
	return err
}

func printReaped(w io.Writer, orphans []runtime.Orphan, dirs []leftDir) error {
	all := []orphanJSON{}
	for _, o := range orphans {
		all = append(all, orphanJSON{o.ID, o.Name, o.Created, o.Owner.PID, o.Running})
	}
	return printJSON(w, map[string]any{"removed": all, "directories": dirs})
}

// sayReaped is for people; clean says that nothing of it is left.
func (a *app) sayReaped(orphans []runtime.Orphan, dirs []leftDir, clean bool) {
	now := time.Now()
	for _, o := range orphans {
		fmt.Fprintln(a.stdout, orphanLine(o, now))
	}
	for _, d := range dirs {
		fmt.Fprintf(a.stdout, "directory %s, owner pid %d\n", d.Path, d.OwnerPID)
	}
	switch n := len(orphans) + len(dirs); {
	case !clean: // the error says it
	case n > 0:
		fmt.Fprintf(a.stdout, "removed: %d\n", n)
	default:
		fmt.Fprintln(a.stdout, "no container of a dead bridge is left")
	}
}

// orphanLine names a container, its age and its owner.
func orphanLine(o runtime.Orphan, now time.Time) string {
	state := "not running"
	if o.Running {
		state = "running"
	}
	id := o.ID
	if len(id) > 12 {
		id = id[:12]
	}
	return fmt.Sprintf("%s (%s), %s, %s, owner pid %d", id, o.Name, age(o.Created, now), state, o.Owner.PID)
}

// age is for people: two clocks, or one that was set, may disagree by any amount.
func age(created, now time.Time) string {
	d := now.Sub(created)
	switch {
	case created.IsZero() || d < 0:
		return "of unknown age"
	case d < time.Minute:
		return fmt.Sprintf("%d s old", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min old", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h old", int(d.Hours()))
	}
	return fmt.Sprintf("%d days old", int(d.Hours())/24)
}
