package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// orphanJSON is a container of a dead bridge, for programs.
type orphanJSON struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created"` // by the engine's clock
	OwnerPID int       `json:"ownerPid"`
	Running  bool      `json:"running"`
}

// reap shows the containers of dead bridges and removes them.
func (a *app) reap(ctx context.Context, p *parts, asJSON bool) error {
	if _, err := p.driver.Facts(ctx); err != nil { // it chooses the engine
		return err
	}
	found, err := p.driver.Orphans(ctx, runtime.Self())
	if err != nil {
		return err
	}
	all, now := []orphanJSON{}, time.Now()
	var ids []string
	for _, o := range found {
		ids = append(ids, o.ID)
		all = append(all, orphanJSON{o.ID, o.Name, o.Created, o.Owner.PID, o.Running})
		if !asJSON {
			fmt.Fprintln(a.stdout, orphanLine(o, now))
		}
	}
	if len(ids) > 0 {
		if err := p.driver.Remove(ctx, ids...); err != nil {
			return fmt.Errorf("not all of them could be removed: %w", err)
		}
	}
	if asJSON {
		return printJSON(a.stdout, map[string]any{"removed": all})
	}
	if len(ids) == 0 {
		fmt.Fprintln(a.stdout, "no container of a dead bridge is left")
	} else {
		fmt.Fprintf(a.stdout, "removed: %d\n", len(ids))
	}
	return nil
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
