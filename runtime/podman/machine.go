package podman

import (
	"context"
	"errors"
	"fmt"
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
	d    *Driver
	turn chan struct{} // full while the machine is started or stopped

	mu      sync.Mutex
	name    string      // of the one that we have started; empty for none
	resting bool        // we have stopped it again, and the next run starts it
	users   int         // runs and pulls under way
	timer   *time.Timer // until it is stopped
}

// asleep reports whether we have stopped the machine.
func (m *machine) asleep() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resting
}

// listedMachine is what podman says of one.
type listedMachine struct {
	Name    string
	Default bool
	Running bool
}

// find returns the machine behind podman's default connection, or else its default machine.
func (m *machine) find(ctx context.Context, places []endpoint) (found listedMachine, ok bool) {
	var all []listedMachine
	if m.d.program.ask(ctx, &all, "machine", "list", "--format", "json") != nil {
		return found, false
	}
	for _, e := range places {
		name := strings.TrimSuffix(e.name, "-root") // each has a second connection, for its root
		i := slices.IndexFunc(all, func(l listedMachine) bool { return l.Name == e.name || l.Name == name })
		if e.VM && i >= 0 {
			return all[i], true
		}
	}
	if m.d.cfg.Endpoint != "" {
		return found, false // it isn't one
	}
	if i := slices.IndexFunc(all, func(l listedMachine) bool { return l.Default || len(all) == 1 }); i >= 0 {
		return all[i], true
	}
	return found, false
}

// dormant returns the error for an engine that would be there if its machine ran; nil where it
// isn't that.
func (m *machine) dormant(ctx context.Context, places []endpoint) error {
	if !m.d.client && !slices.ContainsFunc(places, func(e endpoint) bool { return e.VM }) {
		return nil
	}
	found, ok := m.find(ctx, places)
	if !ok || found.Running {
		return nil
	}
	un := m.d.Unavailable("", fmt.Errorf("its machine %s is not running", found.Name),
		"run: podman machine start "+found.Name)
	un.Dormant = true
	return un
}

// start starts the machine. One start is made for concurrent callers. It goes on when its caller
// gives up, and the next call finds it done; only Close ends it early.
func (m *machine) start(ctx context.Context, p runtime.Progress) error {
	done := make(chan error, 1)
	begun := m.d.Go(func() {
		life, cancel := context.WithTimeout(m.d.Life(), machineStart)
		defer cancel()
		done <- m.startNow(life, func(line string) {
			if p != nil && ctx.Err() == nil { // a caller that has given up is told no more
				p(line)
			}
		})
	})
	if !begun {
		return m.d.Unavailable("", errors.New("the driver is closed"), "")
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take waits until the machine is neither started nor stopped, and keeps it so until done is
// called.
func (m *machine) take(ctx context.Context) (done func(), err error) {
	select {
	case m.turn <- struct{}{}:
		return func() { <-m.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// startNow starts the machine if it doesn't run.
func (m *machine) startNow(ctx context.Context, p runtime.Progress) error {
	done, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, ok := m.find(ctx, m.d.endpoints(ctx))
	switch {
	case !ok && m.d.client:
		return m.d.Unavailable("", errors.New("there is no podman machine"),
			"run: podman machine init && podman machine start")
	case ok && !found.Running:
		m.d.log.Info("starting podman's machine", "machine", found.Name)
		if err := m.d.program.run(ctx, p, "machine", "start", found.Name); err != nil {
			return m.d.Unavailable("", fmt.Errorf("its machine %s did not start: %w", found.Name, err),
				"run: podman machine start "+found.Name)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resting = false
	if ok && !found.Running {
		m.name = found.Name
		m.rest()
	}
	return nil
}

// awake keeps the machine from being stopped until release is called. One that we have stopped it
// starts again. Where podman has no machine it does nothing.
func (m *machine) awake(ctx context.Context) (release func(), err error) {
	m.mu.Lock()
	m.users++
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	release = sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.users--
		m.rest()
	})
	done, err := m.take(ctx) // a stop that is under way is waited for
	if err == nil {
		done()
		if m.asleep() {
			err = m.start(ctx, nil)
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// rest has the machine stopped once it has been idle for long enough. It is called with mu held.
func (m *machine) rest() {
	if m.name == "" || m.users > 0 || m.d.cfg.IdleTimeout <= 0 {
		return
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer = time.AfterFunc(m.d.cfg.IdleTimeout, func() { m.d.Go(m.idle) })
}

// idle stops the machine, unless it is in use again.
func (m *machine) idle() {
	done, err := m.take(m.d.Life())
	if err != nil {
		return
	}
	defer done()
	m.mu.Lock()
	name, unused := m.name, m.users == 0
	m.mu.Unlock()
	if name == "" || !unused {
		return
	}
	stopped, err := m.stop(name)
	if err != nil {
		m.d.log.Warn("podman's machine not stopped", "machine", name, "err", err)
	}
	if c, ok := m.d.Current(); stopped && ok {
		m.d.Drop(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if stopped {
		m.name, m.resting = "", true
	} else {
		m.rest()
	}
}

// stop stops the machine unless a container of another program's runs there, be it of its user or
// of its root.
func (m *machine) stop(name string) (stopped bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), machineStop)
	defer cancel()
	err = errors.New("it has no connection")
	for _, e := range m.d.listed(ctx) {
		if !e.VM || strings.TrimSuffix(e.name, "-root") != name {
			continue
		}
		var containers []struct{}
		if err = m.d.program.ask(ctx, &containers, "--connection", e.name, "ps", "--format", "json"); err != nil {
			break
		}
		if len(containers) > 0 {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("who uses it can't be seen: %w", err)
	}
	m.d.log.Info("stopping podman's machine", "machine", name)
	return true, m.d.program.run(ctx, nil, "machine", "stop", name)
}

// leave stops the machine at the driver's end, if the driver has started it.
func (m *machine) leave() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	if m.name == "" {
		return nil
	}
	_, err := m.stop(m.name)
	m.name = ""
	return err
}
