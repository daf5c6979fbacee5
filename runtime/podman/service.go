package podman

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

const (
	serviceStart = 20 * time.Second // until a service that was started must listen
	childStop    = 3 * time.Second  // from TERM to KILL
)

// child is a program that listens for us on a socket only this user can reach: podman's API
// service, or ssh's end of another machine's.
type child struct {
	*program
	what    string // for errors
	process *guard.Process
	place   string // the directory of its socket
	socket  string
	said    *runtime.Tail
	forget  func() // the guard was told of place
	once    sync.Once
}

// launch starts a program that is to listen on the socket which command is given.
func (p *program) launch(what string, command func(socket string) *exec.Cmd) (*child, error) {
	dir, forget, err := p.privateDir()
	if err != nil {
		return nil, err
	}
	c := &child{program: p, what: what, place: dir, socket: filepath.Join(dir, "podman.sock"), forget: forget}
	c.said = &runtime.Tail{Limit: 2 << 10}
	cmd := command(c.socket)
	cmd.Stderr = c.said
	// conmon leaves a file "oom" where podman was started when a container runs out of memory
	cmd.Dir = filepath.Dir(dir)
	cmd.WaitDelay = time.Second // for podman's own pause process, which lives on and may hold stderr
	var groups guard.Groups
	if p.guard != nil {
		groups = p.guard
	}
	// In a group of its own, a terminal's interrupt doesn't end it before its containers.
	if c.process, err = guard.Launch(cmd, groups); err != nil {
		err = fmt.Errorf("starting %s: %w", what, errors.Join(err, os.RemoveAll(dir)))
		forget()
		return nil, err
	}
	return c, nil
}

// alive reports whether the program still runs.
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
// than once, and on nil.
func (c *child) stop() {
	if c == nil {
		return
	}
	c.once.Do(func() {
		if err := c.process.End(childStop); err != nil {
			c.log.Warn("not ended", "program", c.what, "err", err)
		}
		if err := os.RemoveAll(c.place); err != nil {
			c.log.Warn("private directory not removed", "path", c.place, "err", err)
		}
		c.forget()
	})
}

// endpoint returns where a service listens.
func (c *child) endpoint() endpoint {
	return endpoint{Endpoint: engine.Endpoint{URL: "unix://" + c.socket}}
}

// service is podman's API service as a child of ours, while one runs.
type service struct {
	*program
	oci     string // the OCI runtime that was asked for; empty for podman's own choice
	rootful bool   // one that runs as root is allowed

	mu    sync.Mutex
	child *child
}

// running returns the service's endpoint, if there is one that lives: a slow answer is no reason to
// end it, and with it all runs.
func (s *service) running() []endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil || !s.child.alive() {
		return nil
	}
	return []endpoint{s.child.endpoint()}
}

// start starts the service and returns its endpoint once it listens.
func (s *service) start(ctx context.Context) (endpoint, error) {
	bin, err := exec.LookPath(s.binary)
	if err != nil {
		return endpoint{}, fmt.Errorf("there is no program %q on the PATH: %w", s.binary, exec.ErrNotFound)
	}
	if os.Geteuid() == 0 && !s.rootful {
		return endpoint{}, unavailable(errors.New("this process runs as root, and so would podman"),
			"run mcp-bridge as an ordinary user, or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
	}
	if err := s.unwritable(); err != nil {
		return endpoint{}, err
	}
	s.stop() // one that died
	c, err := s.launch("podman system service", func(socket string) *exec.Cmd {
		args := append(runtimeFlags(s.oci), "system", "service", "--time=0", "unix://"+socket)
		cmd := exec.Command(bin, args...)
		// Dpkg is said to have its database where there isn't one. When podman is asked what it is, it
		// has dpkg look for the packages of its helpers, which takes most of the time of the answer:
		// github.com/containers/podman/issues/22102.
		cmd.Env = append(s.environ(), "DPKG_ADMINDIR="+filepath.Dir(socket)) // the last one counts
		return cmd
	})
	if err != nil {
		return endpoint{}, err
	}
	s.mu.Lock()
	s.child = c
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, serviceStart)
	defer cancel()
	if err := c.listens(ctx); err != nil {
		s.stop()
		next := "run: podman info"
		if s.oci != "" && strings.Contains(err.Error(), "OCI runtime") {
			next = otherRuntime
		}
		return endpoint{}, unavailable(err, next)
	}
	return c.endpoint(), nil
}

// otherRuntime is the next step where podman hasn't got the OCI runtime that was asked for.
const otherRuntime = "install it where podman runs, or choose another: MCP_BRIDGE_OCI_RUNTIME"

// stop ends the service, if there is one.
func (s *service) stop() {
	s.mu.Lock()
	c := s.child
	s.child = nil
	s.mu.Unlock()
	c.stop()
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
