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

// reaped is what dead bridges had left.
type reaped struct {
	containers  []runtime.Orphan
	directories []leftDir
}

// reap shows what dead bridges have left, and removes it: their containers, and where
// their watchdog was killed too, the directories of their API services.
func (a *app) reap(ctx context.Context, p *parts, asJSON bool) error {
	self := runtime.Self()
	var r reaped
	var errs [2]error
	r.directories, errs[0] = reapDirs(runtimeParents(), self)
	if _, errs[1] = p.driver.Facts(ctx); errs[1] == nil { // it chooses the engine
		if r.containers, errs[1] = runtime.Reap(ctx, p.driver, self); errs[1] != nil {
			errs[1] = fmt.Errorf("not all containers of dead bridges could be removed: %w", errs[1])
		}
	}
	err := errors.Join(errs[:]...)
	if asJSON {
		return errors.Join(r.print(a.stdout), err)
	}
	r.say(a.stdout, err == nil)
	return err
}

// print is for programs.
func (r reaped) print(w io.Writer) error {
	all := []orphanJSON{}
	for _, o := range r.containers {
		all = append(all, orphanJSON{o.ID, o.Name, o.Created, o.Owner.PID, o.Running})
	}
	return printJSON(w, map[string]any{"removed": all, "directories": r.directories})
}

// say is for people; clean says that nothing of it is left.
func (r reaped) say(w io.Writer, clean bool) {
	now := time.Now()
	for _, o := range r.containers {
		fmt.Fprintln(w, orphanLine(o, now))
	}
	for _, d := range r.directories {
		fmt.Fprintf(w, "directory %s, owner pid %d\n", d.Path, d.OwnerPID)
	}
	switch n := len(r.containers) + len(r.directories); {
	case !clean: // the error says it
	case n > 0:
		fmt.Fprintf(w, "removed: %d\n", n)
	default:
		fmt.Fprintln(w, "nothing of a dead bridge is left")
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
