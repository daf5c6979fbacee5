package podman

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// Podman starts a conmon beside each container, which has the OCI runtime make it, and only then
// writes down that there is one. A service that is killed in between leaves a conmon, and the
// container's first process waiting for its start, that no podman knows of any more; they would go
// on until conmon's own clock ends them. So a container counts as gone only when its conmon is too,
// wherever that could be otherwise. It is found by its arguments: podman's name of the container
// tells whose it was.

// monitor is a conmon of a container that has one of our names.
type monitor struct {
	guard.Seen
	args []string
	id   string
	name string
	oci  string // the OCI runtime that it uses
	last string // the program that it starts when the container has ended, podman
}

// monitors yields those of this user on this machine.
func monitors(yield func(monitor) bool) {
	for o := range guard.Processes {
		if m, ok := asMonitor(o); ok && !yield(m) {
			return
		}
	}
}

// asMonitor reads the arguments as podman writes them, with a value that follows its flag.
func asMonitor(o guard.Seen) (m monitor, ok bool) {
	args := o.Args()
	if len(args) == 0 || filepath.Base(args[0]) != "conmon" {
		return monitor{}, false
	}
	m = monitor{Seen: o, args: args}
	for i := 1; i+1 < len(args); i++ {
		switch args[i] {
		case "-c":
			m.id = args[i+1]
		case "-n":
			m.name = args[i+1]
		case "-r":
			m.oci = args[i+1]
		case "--exit-command":
			m.last = args[i+1]
		default:
			continue
		}
		i++
	}
	_, named := runtime.OwnerNamed(m.name, runtime.Owner{})
	return m, named && containerID.MatchString(m.id) && o.Program() == "conmon" && o.Ours()
}

var containerID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// there says whether it still is that conmon. One that has just been forked is about to become
// another program.
func (m monitor) there() bool { return m.Alive() && slices.Equal(m.Args(), m.args) }

// container returns the processes that conmon has started, or has been left with, for the
// container; ending says whether it has come to start podman for the last time, or another program,
// which is left alone. What conmon has forked is conmon itself until it has become that program;
// nothing in a container passes for one. All others of the container are in the hands of its first.
func (m monitor) container() (all []guard.Seen, ending bool) {
	for o := range guard.Processes {
		if o.Parent != m.PID {
			continue
		}
		if args := o.Args(); len(args) > 0 && args[0] == m.last || m.forked(o) {
			ending = true
			continue
		}
		all = append(all, o)
	}
	return all, ending
}

// forked says whether a process is one that conmon has forked and that hasn't become another
// program yet.
func (m monitor) forked(o guard.Seen) bool {
	f, ok := asMonitor(o)
	return ok && slices.Equal(f.args, m.args)
}

const (
	monitorPause = 10 * time.Millisecond
	monitorGrace = time.Second     // for a conmon without a container to end by itself
	monitorLimit = 5 * time.Second // for all of one conmon
)

// end ends the container's processes, whereupon conmon ends by itself, and waits for that.
func (m monitor) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, monitorLimit)
	defer cancel()
	tick := time.NewTicker(monitorPause)
	defer tick.Stop()
	idle := time.Now()
	for {
		container, ending := m.container()
		if !m.there() { // looked at last: its number was its own meanwhile
			return nil
		}
		var errs []error
		for _, o := range container {
			errs = append(errs, o.Signal(syscall.SIGKILL))
		}
		if len(container) > 0 || ending {
			idle = time.Now()
		} else if time.Since(idle) > monitorGrace {
			errs = append(errs, m.Signal(syscall.SIGKILL))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(append(errs, fmt.Errorf("conmon (process %d) of container %s is still there: %w",
				m.PID, m.name, context.Cause(ctx)))...)
		}
	}
}

// discard has the OCI runtime remove what it has written down of a container that is gone: a
// directory, and control groups. The program is this machine's own of that name: the arguments are
// only another process's word.
func (m monitor) discard(ctx context.Context) {
	name := filepath.Base(m.oci)
	if name != "runc" && name != "crun" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, monitorLimit)
	defer cancel()
	if path, err := exec.LookPath(name); err == nil {
		_ = exec.CommandContext(ctx, path, "delete", "--force", m.id).Run() // it may never have heard of it
	}
}

// endMonitors ends what is left of containers, by id or name, after podman has been told to remove
// them.
func (d *Driver) endMonitors(ctx context.Context, ids ...string) error {
	var errs []error
	for m := range monitors {
		if !slices.Contains(ids, m.id) && !slices.Contains(ids, m.name) {
			continue
		}
		err := m.end(ctx)
		if err == nil {
			m.discard(ctx)
			d.log.Debug("a container that podman had lost has been ended", "container", m.name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// forgotten returns the containers of dead owners that podman doesn't list, and that are there all
// the same.
func forgotten(owner runtime.Owner, listed []runtime.Orphan) (found []runtime.Orphan) {
	for m := range monitors {
		o, _ := runtime.OwnerNamed(m.name, owner)
		same := func(f runtime.Orphan) bool { return f.ID == m.id }
		if o.Orphaned(owner) && !slices.ContainsFunc(listed, same) && !slices.ContainsFunc(found, same) {
			found = append(found, runtime.Orphan{ID: m.id, Name: m.name, Owner: o})
		}
	}
	return found
}

// settleTime is how long after its service's death a container may still come up.
const settleTime = 10 * time.Second

// unsettled ends what podman may have lost of a container whose start was not seen to its end: now,
// as often as it may still come up, and when the driver is closed.
func (d *Driver) unsettled(ctx context.Context, c *connection, id string) {
	if c.facts.Remote {
		return
	}
	look := func(ctx context.Context) {
		if err := d.endMonitors(ctx, id); err != nil {
			d.log.Warn("what a dead podman service has left could not be ended", "container", id, "err", err)
		}
	}
	look(ctx)
	d.Go(func() {
		tick := time.NewTicker(d.Times.Retry)
		defer tick.Stop()
		over := time.After(settleTime)
		for {
			select {
			case <-tick.C:
				look(d.Life())
			case <-over:
				return
			case <-d.Life().Done():
				look(ctx)
				return
			}
		}
	})
}

// Orphans implements runtime.Driver. A machine that we have stopped has none and isn't woken for
// this.
func (d *Driver) Orphans(ctx context.Context, owner runtime.Owner) ([]runtime.Orphan, error) {
	if d.machine.asleep() {
		return nil, nil
	}
	found, err := d.Engine.Orphans(ctx, owner)
	if c, ok := d.Current(); ok && err == nil && !c.facts.Remote {
		found = append(found, forgotten(owner, found)...)
	}
	return found, err
}

// Remove implements runtime.Driver.
func (d *Driver) Remove(ctx context.Context, ids ...string) error {
	err := d.Engine.Remove(ctx, ids...)
	if c, ok := d.Current(); ok && !c.facts.Remote {
		err = errors.Join(err, d.endMonitors(ctx, ids...))
	}
	return err
}
