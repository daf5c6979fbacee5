package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// orphanJSON is a container of a dead bridge, for programs.
type orphanJSON struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created,omitzero"` // by the engine's clock; zero if the engine has forgotten it
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
func reap(ctx context.Context, out *terminal.Output, p *parts, asJSON bool) error {
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
		return errors.Join(r.print(out), err)
	}
	r.say(out, err == nil)
	return err
}

// print writes it for programs.
func (r reaped) print(w io.Writer) error {
	all := []orphanJSON{}
	for _, o := range r.containers {
		all = append(all, orphanJSON{o.ID, o.Name, o.Created, o.Owner.PID, o.Running})
	}
	return printJSON(w, map[string]any{"removed": all, "directories": r.directories})
}

// say writes it for people; clean says that nothing of it is left.
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
	return fmt.Sprintf("%.12s (%s), %s, %s, owner pid %d", o.ID, o.Name, age(o.Created, now), state, o.Owner.PID)
}

// age returns the age for people: two clocks, or one that was set, may disagree by any amount.
func age(created, now time.Time) string {
	if created.IsZero() || now.Before(created) {
		return "of unknown age"
	}
	return strings.ToLower(units.HumanDuration(now.Sub(created))) + " old"
}

// leftDir is a directory of a dead bridge.
type leftDir struct {
	Path     string `json:"path"`
	OwnerPID int    `json:"ownerPid"`
}

// runtimeParents returns the directories in which bridges make theirs. Those that don't depend on
// the environment are first, since hosts give their bridges different ones.
func runtimeParents() (parents []string) {
	add := func(dir string) {
		if dir != "" && !slices.Contains(parents, dir) {
			parents = append(parents, dir)
		}
	}
	own := fmt.Sprintf("/run/user/%d", os.Geteuid())
	if goruntime.GOOS == "linux" && trust.System().OwnDirectory(own) == nil {
		add(own)
	}
	if goruntime.GOOS != "windows" {
		add("/tmp")
	}
	add(os.Getenv("XDG_RUNTIME_DIR"))
	add(os.TempDir())
	return parents
}

// reapDirs removes the directories of dead bridges of this user. What listened there was sent
// SIGTERM by the kernel when its bridge died.
func reapDirs(parents []string, by runtime.Owner) ([]leftDir, error) {
	found := []leftDir{}
	var errs []error
	for _, parent := range parents {
		for _, dir := range deadDirs(parent, by) {
			if err := os.RemoveAll(dir.Path); err != nil {
				errs = append(errs, fmt.Errorf("directory %s of a dead bridge: %w", dir.Path, err))
				continue
			}
			found = append(found, dir)
		}
	}
	return found, errors.Join(errs...)
}

// deadDirs returns those in parent, without one that another user could have written to, and
// without those that tell the next bridge that the record of approvals is old.
func deadDirs(parent string, by runtime.Owner) (found []leftDir) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		o, ok := runtime.OwnerNamed(e.Name(), by)
		own := ok && e.IsDir() && trust.System().OwnDirectory(path) == nil
		if own && o.Orphaned(by) && !approvals.IsDoor(path) {
			found = append(found, leftDir{path, o.PID})
		}
	}
	return found
}
