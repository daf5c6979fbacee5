package podman

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

const (
	serviceStart = 20 * time.Second // until a service that was started must listen
	childStop    = 3 * time.Second  // from TERM to KILL
)

// child is a program that listens for us on a socket only this user can reach: podman's API
// service, or ssh's end of another machine's.
type child struct {
	what    string // for errors
	process *guard.Process
	dir     string
	socket  string
	said    *runtime.Tail
	forget  func() // the guard was told of dir
	once    sync.Once
}

// privateDir makes a directory that only this user can look into, and that the guard removes when
// we can't.
func (d *Driver) privateDir() (dir string, forget func(), err error) {
	parent := d.cfg.RuntimeDir
	if parent == "" {
		parent = os.TempDir()
		if err := trustedTemp(parent); err != nil {
			return "", nil, d.Unavailable("", err, tempHint(err))
		}
	}
	// which tells whose it is, if it is left behind
	dir = filepath.Join(parent, runtime.Self().NewName())
	forget = func() {}
	if d.cfg.Guard != nil { // before it is there, so that a kill at any moment leaves nothing
		forget = d.cfg.Guard.File(dir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		forget()
		return "", nil, fmt.Errorf("making a private directory: %w", err)
	}
	return dir, forget, nil
}

// launch starts a program that is to listen on the socket which command is given.
func (d *Driver) launch(what string, command func(socket string) *exec.Cmd) (*child, error) {
	dir, forget, err := d.privateDir()
	if err != nil {
		return nil, err
	}
	c := &child{what: what, dir: dir, socket: filepath.Join(dir, "podman.sock"), forget: forget}
	c.said = &runtime.Tail{Limit: 2 << 10}
	cmd := command(c.socket)
	cmd.Stderr = c.said
	// conmon leaves a file "oom" where podman was started when a container runs out of memory
	cmd.Dir = filepath.Dir(dir)
	cmd.WaitDelay = time.Second // for podman's own pause process, which lives on and may hold stderr
	var groups guard.Groups
	if d.cfg.Guard != nil {
		groups = d.cfg.Guard
	}
	// In a group of its own, a terminal's interrupt doesn't end it before its containers.
	if c.process, err = guard.Launch(cmd, groups); err != nil {
		err = fmt.Errorf("starting %s: %w", what, errors.Join(err, os.RemoveAll(dir)))
		forget()
		return nil, err
	}
	return c, nil
}

// alive says whether the program still runs.
func (c *child) alive() bool {
	select {
	case <-c.process.Exited():
		return false
	default:
		return true
	}
}

// listens waits until the socket takes connections. Its errors end in what the program said.
func (c *child) listens(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-c.process.Exited():
			return c.quoted(fmt.Errorf("%s ended by itself", c.what))
		case <-ctx.Done():
			return c.quoted(fmt.Errorf("%s does not listen: %w", c.what, context.Cause(ctx)))
		}
	}
}

// quoted adds what the program said to an error.
func (c *child) quoted(err error) error {
	if said := c.said.String(); said != "" {
		return fmt.Errorf("%w; it said: %s", err, runtime.OneLine(said))
	}
	return err
}

// stop ends the program with its whole process group, and removes its socket. It may be called more
// than once.
func (d *Driver) stop(c *child) {
	if c == nil {
		return
	}
	c.once.Do(func() {
		if err := c.process.End(childStop); err != nil {
			d.log.Warn("not ended", "program", c.what, "err", err)
		}
		if err := os.RemoveAll(c.dir); err != nil {
			d.log.Warn("private directory not removed", "path", c.dir, "err", err)
		}
		c.forget()
	})
}

// running returns the endpoint of our own service, if there is one that lives: a slow answer is no
// reason to end it, and with it all runs.
func (d *Driver) running() []endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.service == nil || !d.service.alive() {
		return nil
	}
	return []endpoint{{Endpoint: engine.Endpoint{URL: "unix://" + d.service.socket}, own: true}}
}

// startService starts podman's API service and returns its socket once it listens.
func (d *Driver) startService(ctx context.Context) (socket string, err error) {
	bin, err := exec.LookPath(d.cfg.Binary)
	if err != nil {
		return "", fmt.Errorf("there is no program %q on the PATH: %w", d.cfg.Binary, exec.ErrNotFound)
	}
	if os.Geteuid() == 0 && !d.cfg.AllowRootful {
		return "", d.Unavailable("", errors.New("this process runs as root, and so would podman"),
			"run mcp-bridge as an ordinary user, or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
	}
	if err := d.hasRuntime(ctx); err != nil {
		return "", err
	}
	if err := d.unwritable(); err != nil {
		return "", err
	}
	d.stopService() // one that died
	s, err := d.launch("podman system service", func(socket string) *exec.Cmd {
		args := append(runtimeFlags(d.cfg.Hardening.OCIRuntime), "system", "service", "--time=0", "unix://"+socket)
		cmd := exec.Command(bin, args...)
		// Dpkg is said to have its database where there is none. When podman is asked what it is, it has
		// dpkg look for the packages of its helpers, which takes most of the time of the answer:
		// github.com/containers/podman/issues/22102.
		cmd.Env = append(d.environ(), "DPKG_ADMINDIR="+filepath.Dir(socket)) // the last one counts
		return cmd
	})
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	d.service = s
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, serviceStart)
	defer cancel()
	if err := s.listens(ctx); err != nil {
		d.stopService()
		return "", d.Unavailable("", err, "run: podman info")
	}
	return s.socket, nil
}

// unwritable says of the directories for temporary files, TMPDIR and XDG_RUNTIME_DIR, that podman
// can't use one; nil where it can. Podman 4.3 starts all the same, and then answers with a nil
// pointer, or that a container can't be attached to.
func (d *Driver) unwritable() error {
	if dir := os.Getenv("TMPDIR"); dir != "" {
		if err := trustedTemp(dir); err != nil {
			return d.Unavailable("", err, tempHint(err))
		}
	}
	for _, place := range []struct{ name, dir string }{
		{"TMPDIR", os.Getenv("TMPDIR")}, {"XDG_RUNTIME_DIR", d.cfg.RuntimeDir},
	} {
		if place.dir == "" {
			continue // podman then has one of its own
		}
		f, err := os.CreateTemp(place.dir, "mcp-bridge-*")
		if err == nil {
			_, err = f.Write(make([]byte, 4096)) // a full one can have room for names
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		if err != nil {
			// Not %w: what isn't there is the directory, and not podman.
			why := fmt.Errorf("%s, which podman needs, can't be used: %s", place.name, err.Error())
			next := "make room in %s, set %s to a directory that you can write to and that has room, or unset it"
			return d.Unavailable("", why, fmt.Sprintf(next, place.dir, place.name))
		}
	}
	return nil
}

// trustedTemp returns why dir is no place for temporary files: others could put a directory of
// theirs in the place of one of ours, and with it an engine or a filter of system calls. One that
// isn't there is told by the first use of it.
func trustedTemp(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := trust.System().Path(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory for temporary files, TMPDIR, is not used: %w", err)
	}
	return nil
}

func tempHint(err error) string {
	const set = "set TMPDIR to a directory that you can write to and that has room, or unset it"
	var bad *trust.Error
	if errors.As(err, &bad) {
		return bad.Hint() + "; or " + set
	}
	return set
}

// runtimeFlags returns what podman has to be told at its start, since containers made through its
// API can't choose. gVisor would else refuse the network namespace that it is given, and control
// groups that an ordinary user may not make.
func runtimeFlags(oci string) []string {
	if oci == "" {
		return nil
	}
	flags := []string{"--runtime=" + oci}
	if filepath.Base(oci) == "runsc" {
		flags = append(flags, "--runtime-flag=network=none")
		if os.Geteuid() != 0 {
			flags = append(flags, "--runtime-flag=ignore-cgroups")
		}
	}
	return flags
}

// stopService ends our own service, if there is one.
func (d *Driver) stopService() {
	d.mu.Lock()
	s := d.service
	d.service = nil
	d.mu.Unlock()
	d.stop(s)
}
