package podman

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	machineStart = 10 * time.Minute // the first start of a new one may take a few
	machineStop  = time.Minute
)

// machine is podman's virtual machine, where it has one, and what we have done with it. Only one
// that this driver has started is ever stopped, and none is ever changed: whether podman runs as
// root in there is the user's business.
type machine struct {
	mu       sync.Mutex
	name     string        // of the one that we have started; empty for none
	resting  bool          // we have stopped it again, and the next run starts it
	users    int           // runs and pulls under way
	idle     *time.Timer   // until it is stopped
	stopping chan struct{} // closed when the stop under way is over; nil when there is none
	starting *startup      // under way
}

// startup is one start, for all who wait for it.
type startup struct {
	done  chan struct{} // closed when err is set
	err   error
	lines []runtime.Progress
}

// asleep says whether we have stopped the machine.
func (m *machine) asleep() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resting
}

// listedMachine is what podman says of one.
type listedMachine struct {
	Name     string
	Default  bool
	Running  bool
	Starting bool
}

// theMachine returns the one behind podman's default connection, or else its default machine.
func (d *Driver) theMachine(ctx context.Context, places []endpoint) (m listedMachine, ok bool) {
	var all []listedMachine
	if d.ask(ctx, &all, "machine", "list", "--format", "json") != nil {
		return m, false
	}
	for _, e := range places {
		name := strings.TrimSuffix(e.name, "-root") // each has a second connection, for its root
		i := slices.IndexFunc(all, func(m listedMachine) bool { return m.Name == e.name || m.Name == name })
		if e.VM && i >= 0 {
			return all[i], true
		}
	}
	if d.cfg.Endpoint != "" {
		return m, false // it is none
	}
	if i := slices.IndexFunc(all, func(m listedMachine) bool { return m.Default || len(all) == 1 }); i >= 0 {
		return all[i], true
	}
	return m, false
}

// dormant returns the error for an engine that would be there if its machine ran; nil where it
// isn't that.
func (d *Driver) dormant(ctx context.Context, places []endpoint) error {
	if !d.client && !slices.ContainsFunc(places, func(e endpoint) bool { return e.VM }) {
		return nil
	}
	m, ok := d.theMachine(ctx, places)
	if !ok || m.Running {
		return nil
	}
	un := d.Unavailable("", fmt.Errorf("its machine %s is not running", m.Name),
		"run: podman machine start "+m.Name)
	un.Dormant = true
	return un
}

// Start implements runtime.Starter: podman machine start. Concurrent calls share one start, which
// goes on when a caller gives up; the next call finds it done. Only Close ends it early.
func (d *Driver) Start(ctx context.Context, p runtime.Progress) error {
	m := &d.machine
	m.mu.Lock()
	s := m.starting
	if s == nil {
		s = &startup{done: make(chan struct{})}
		if !d.Go(func() { d.startUp(s) }) {
			m.mu.Unlock()
			return d.Unavailable("", errors.New("the driver is closed"), "")
		}
		m.starting = s
	}
	if p != nil {
		s.lines = append(s.lines, func(line string) {
			if ctx.Err() == nil { // a caller that has given up is told no more
				p(line)
			}
		})
	}
	m.mu.Unlock()
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startUp starts the machine, and tells all who wait.
func (d *Driver) startUp(s *startup) {
	ctx, cancel := context.WithTimeout(d.Life(), machineStart)
	defer cancel()
	m := &d.machine
	name, err := d.startMachine(ctx, func(line string) {
		m.mu.Lock()
		to := slices.Clone(s.lines)
		m.mu.Unlock()
		for _, p := range to {
			p(line)
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	s.err, m.starting = err, nil
	if err == nil {
		m.resting = false
		if name != "" {
			m.name = name
			d.rest()
		}
	}
	close(s.done)
}

// startMachine starts it, and says its name if it did not run already.
func (d *Driver) startMachine(ctx context.Context, p runtime.Progress) (name string, err error) {
	d.machine.mu.Lock()
	stopping := d.machine.stopping
	d.machine.mu.Unlock()
	if stopping != nil {
		<-stopping // bounded
	}
	m, ok := d.theMachine(ctx, d.endpoints(ctx))
	switch {
	case !ok && d.client:
		return "", d.Unavailable("", errors.New("there is no podman machine"),
			"run: podman machine init && podman machine start")
	case !ok, m.Running:
		return "", nil
	}
	d.log.Info("starting podman's machine", "machine", m.Name)
	if err := d.command(ctx, p, "machine", "start", m.Name); err != nil {
		return "", d.Unavailable("", fmt.Errorf("its machine %s did not start: %w", m.Name, err),
			"run: podman machine start "+m.Name)
	}
	return m.Name, nil
}

// command runs podman's own program and hands on what it says. What it leaves running, as a machine
// is, is none of ours to end.
func (d *Driver) command(ctx context.Context, p runtime.Progress, args ...string) error {
	said := &runtime.Tail{Limit: 2 << 10}
	lines := &lineWriter{to: func(line string) {
		_, _ = said.Write([]byte(line + "\n"))
		if p != nil {
			p(line)
		}
	}}
	cmd := exec.CommandContext(ctx, d.cfg.Binary, args...)
	cmd.Env = d.environ()
	cmd.Stdout, cmd.Stderr = lines, lines
	cmd.WaitDelay = time.Second // the machine's processes hold on to these
	apart(cmd)
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w; it said: %s", err, runtime.OneLine(said.String()))
}

// awake keeps the machine from being stopped until release is called. One that we have stopped it
// starts again, and one that is being stopped it waits for. Where podman has no machine it does
// nothing.
func (d *Driver) awake(ctx context.Context) (release func(), err error) {
	m := &d.machine
	m.mu.Lock()
	m.users++
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	stopping := m.stopping
	m.mu.Unlock()
	release = sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.users--
		d.rest()
	})
	if stopping != nil {
		select {
		case <-stopping:
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}
	if m.asleep() {
		if err := d.Start(ctx, nil); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// rest has the machine stopped once it has been idle for long enough. It is called with the
// machine's mu held.
func (d *Driver) rest() {
	m := &d.machine
	if m.name == "" || m.users > 0 || d.cfg.IdleTimeout <= 0 {
		return
	}
	if m.idle != nil {
		m.idle.Stop()
	}
	m.idle = time.AfterFunc(d.cfg.IdleTimeout, func() { d.Go(d.idle) })
}

// idle stops the machine, unless it is in use again.
func (d *Driver) idle() {
	m := &d.machine
	m.mu.Lock()
	if m.name == "" || m.users > 0 || m.stopping != nil || m.starting != nil {
		m.mu.Unlock()
		return
	}
	stopping := make(chan struct{})
	m.stopping = stopping
	name := m.name
	m.mu.Unlock()
	c, _ := d.Current()
	stopped, err := d.stopMachine(c, name)
	if err != nil {
		d.log.Warn("podman's machine not stopped", "machine", name, "err", err)
	}
	if stopped && c != nil {
		d.Drop(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = nil
	close(stopping)
	if stopped {
		m.name, m.resting = "", true
	} else {
		d.rest()
	}
}

// stopMachine stops it unless a container of another program's runs there.
func (d *Driver) stopMachine(c *connection, name string) (stopped bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), machineStop)
	defer cancel()
	if c == nil { // it was never used, or it was lost
		if c, err = d.dialMachine(ctx); err != nil {
			return false, fmt.Errorf("who uses it can't be seen: %w", err)
		}
	}
	busy, err := c.busy(ctx)
	if err != nil {
		return false, fmt.Errorf("who uses it can't be seen: %w", err)
	}
	if busy {
		return false, nil
	}
	d.log.Info("stopping podman's machine", "machine", name)
	return true, d.command(ctx, nil, "machine", "stop", name)
}

// dialMachine reaches the machine, also where the driver is about to end.
func (d *Driver) dialMachine(ctx context.Context) (*connection, error) {
	err := errors.New("it has no connection")
	for _, e := range d.endpoints(ctx) {
		if !e.VM {
			continue
		}
		var c *connection
		if c, err = d.dial(ctx, e); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// leaveMachine stops the machine at the driver's end, if the driver has started it.
func (d *Driver) leaveMachine(c *connection) error {
	m := &d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idle != nil {
		m.idle.Stop()
	}
	if m.name == "" {
		return nil
	}
	_, err := d.stopMachine(c, m.name)
	m.name = ""
	return err
}

// lineWriter hands on what is written to it line by line.
type lineWriter struct {
	to   runtime.Progress
	rest string
}

func (w *lineWriter) say(line string) {
	if line = strings.TrimSpace(line); line != "" && w.to != nil {
		w.to(line)
	}
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest += string(p)
	for {
		line, rest, ok := strings.Cut(w.rest, "\n")
		if !ok {
			if len(w.rest) > 4<<10 { // not a line: don't let it grow
				w.say(w.rest)
				w.rest = ""
			}
			return len(p), nil
		}
		w.say(line)
		w.rest = rest
	}
}
