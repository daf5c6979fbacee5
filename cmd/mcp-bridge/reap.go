package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
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
	return terminal.JSON(w, map[string]any{"removed": all, "directories": r.directories})
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

// watchdogName is the command that the bridge starts itself as: see package guard.
const watchdogName = "watchdog"

func watchdogCmd() *cobra.Command {
	return &cobra.Command{
		Use:    watchdogName,
		Short:  "End what a killed bridge left behind; the bridge starts this itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			killed, err := guard.Watch(os.Stdin, slog.New(slog.NewTextHandler(watchdogLog(), nil)))
			if !killed {
				return err
			}
			return errors.Join(err, reapOrphans())
		},
	}
}

// appended is a file to which each write is appended. It is opened for each, made when there is
// something to keep, and begun again when it is too big.
type appended struct{ path string }

const maxAppended = 1 << 20 // bytes

// watchdogLog returns where the watchdog says what it has ended: its bridge, and with it standard
// error, is gone by then.
func watchdogLog() io.Writer {
	dir := settings.StateDir()
	if dir == "" {
		return io.Discard
	}
	return appended{filepath.Join(dir, "watchdog.log")}
}

func (a appended) Write(p []byte) (int, error) {
	if err := os.MkdirAll(filepath.Dir(a.path), 0o700); err != nil {
		return 0, err
	}
	flags := os.O_APPEND | os.O_CREATE | os.O_WRONLY
	if i, err := os.Stat(a.path); err == nil && i.Size() > maxAppended {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(a.path, flags, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, errors.Join(err, f.Close())
}

const (
	reapTimeout = 30 * time.Second // bounds the watchdog's search for containers of a killed bridge
	reapAgain   = 500 * time.Millisecond
)

// reapOrphans removes the containers of bridges that are dead. One that ran has ended by itself,
// with its standard input; one that was created and not yet started would stay for ever.
func reapOrphans() (err error) {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	d, err := newDriver(cfg, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), reapTimeout)
	defer cancel()
	// it chooses the engine, as the bridge has; one at rest has no containers
	if _, err := d.Facts(ctx); err != nil {
		return err
	}
	_, err = runtime.Reap(ctx, d, runtime.Self())
	select { // what a service had begun when it was killed may come up a little after it
	case <-time.After(reapAgain):
	case <-ctx.Done():
	}
	_, again := runtime.Reap(ctx, d, runtime.Self())
	return errors.Join(err, again)
}

// reapVariables are what the watchdog needs of the environment to find the engine again: never a
// server's secret.
var reapVariables = []string{
	"PATH", "HOME", "USER", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"CONTAINER_HOST", "CONTAINER_SSHKEY", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
	"DOCKER_API_VERSION",
	settings.Prefix + "_RUNTIME", settings.Prefix + "_ALLOW_ROOTFUL",
}

func reapEnviron() []string {
	var env []string
	for _, name := range reapVariables {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
