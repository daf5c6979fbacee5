package podman

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

const (
	serviceStart = 20 * time.Second // until a service that was started must listen
	serviceStop  = 3 * time.Second  // from TERM to KILL
)

// service is podman's API service as our child: `podman system service`, on a socket only this user can reach.
type service struct {
	process *guard.Process
	dir     string
	socket  string
	forget  func() // the guard was told of dir
}

// running is the endpoint of our own service, if there is one that lives: a slow answer is no reason to end it, and with it all
// runs.
func (d *Driver) running() []endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.service == nil {
		return nil
	}
	select {
	case <-d.service.process.Exited():
		return nil
	default:
		return []endpoint{{url: "unix://" + d.service.socket, own: true}}
	}
}

// startService starts the service and returns its socket once it listens.
func (d *Driver) startService(ctx context.Context) (socket string, err error) {
	bin, err := exec.LookPath(d.cfg.Binary)
	if err != nil {
		return "", fmt.Errorf("there is no program %q on the PATH: %w", d.cfg.Binary, exec.ErrNotFound)
	}
	if os.Geteuid() == 0 && !d.cfg.AllowRootful {
		return "", d.unavailable("", errors.New("this process runs as root, and so would podman"),
			"run mcp-bridge as an ordinary user, or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
	}
	d.stopService() // one that died
	parent := d.cfg.RuntimeDir
	if parent == "" {
		parent = os.TempDir()
	}
	dir := filepath.Join(parent, "mcp-bridge-"+rand.Text())
	socket = filepath.Join(dir, "podman.sock")
	s := &service{dir: dir, socket: socket, forget: func() {}}
	var groups guard.Groups
	if d.cfg.Guard != nil { // before it is there, so that a kill at any moment leaves nothing
		s.forget, groups = d.cfg.Guard.File(dir), d.cfg.Guard
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.forget()
		return "", fmt.Errorf("making a private directory for podman's socket: %w", err)
	}
	// In a group of its own, a terminal's interrupt doesn't end it before its containers.
	stderr := &lastLines{limit: 2 << 10}
	cmd := exec.Command(bin, "system", "service", "--time=0", "unix://"+socket)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second // for podman's own pause process, which lives on and may hold stderr
	if s.process, err = guard.Launch(cmd, groups); err != nil {
		s.forget()
		return "", fmt.Errorf("starting %s: %w", bin, errors.Join(err, os.RemoveAll(dir)))
	}
	d.mu.Lock()
	d.service = s
	closed := d.closed
	d.mu.Unlock()
	if closed { // meanwhile: whoever closed the driver has not seen this one
		d.stopService()
		return "", errors.New("the driver is closed")
	}
	if err := s.listens(ctx, socket); err != nil {
		d.stopService()
		if said := stderr.String(); said != "" {
			err = fmt.Errorf("%w; it said: %s", err, said)
		}
		return "", d.unavailable("", err, "run: podman info")
	}
	return socket, nil
}

// listens waits until the socket takes connections.
func (s *service) listens(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, serviceStart)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return c.Close()
		}
		select {
		case <-tick.C:
		case <-s.process.Exited():
			return errors.New("podman system service ended by itself")
		case <-ctx.Done():
			return fmt.Errorf("podman system service does not listen: %w", context.Cause(ctx))
		}
	}
}

// stopService ends the child, if there is one, with its whole process group, and removes its socket.
func (d *Driver) stopService() {
	d.mu.Lock()
	s := d.service
	d.service = nil
	d.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.process.End(serviceStop); err != nil {
		d.log.Warn("podman's API service not ended", "err", err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		d.log.Warn("private directory not removed", "path", s.dir, "err", err)
	}
	s.forget()
}

// Close ends the service that the driver started, if it did. Containers of runs under way must be gone before.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.conn = nil
	d.mu.Unlock()
	d.stopService()
	d.background.Wait()
	return nil
}

// lastLines keeps the end of what a program said.
type lastLines struct {
	limit int
	mu    sync.Mutex
	buf   []byte
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if over := len(l.buf) - l.limit; over > 0 {
		l.buf = l.buf[over:]
	}
	return len(p), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.buf))
}
