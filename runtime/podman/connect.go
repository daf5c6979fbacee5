//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/sirupsen/logrus"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// connection is a reached engine. It doesn't change; the bindings want it inside the context of every call: see with.
type connection struct {
	values context.Context //nolint:containedctx // holds the bindings' client, nothing that ends
	facts  runtime.Facts
	socket string // on this machine, where the engine or its tunnel listens; empty for none
	tunnel *child // ssh; nil for none
	own    bool   // the engine is a service of our own

	profile string // the seccomp profile's path for the engine; empty for its default
	users   users  // the user namespace of each container
}

// joined ends with the call's context and has the connection's values.
type joined struct {
	context.Context
	values context.Context //nolint:containedctx // as above
}

func (j joined) Value(key any) any {
	if v := j.values.Value(key); v != nil {
		return v
	}
	return j.Context.Value(key)
}

func (c *connection) with(ctx context.Context) context.Context { return joined{ctx, c.values} }

// there says, in microseconds, whether the engine's socket still takes connections. Of an engine on another machine this says
// nothing but that the tunnel stands.
func (c *connection) there() bool {
	if c.tunnel != nil && !c.tunnel.alive() {
		return false
	}
	if c.socket == "" {
		return true
	}
	conn, err := net.DialTimeout("unix", c.socket, time.Second)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
	}
	conn.Close()
	return true
}

// answers says whether the engine answers within d.
func (c *connection) answers(d time.Duration) bool {
	if !c.there() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	conn, err := bindings.GetClient(c.values)
	if err != nil {
		return false
	}
	r, err := conn.DoRequest(c.with(ctx), nil, "GET", "/_ping", nil, nil)
	if err != nil {
		return false
	}
	r.Body.Close()
	return true
}

// quiet keeps the bindings' own logger off the terminal: what goes wrong comes back as errors.
func quiet() { logrus.SetOutput(io.Discard) }

// Facts asks the engine what it is. The answer is remembered while the engine stays reachable.
func (d *Driver) Facts(ctx context.Context) (runtime.Facts, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Facts{}, err
	}
	return c.facts, nil
}

// attempt is one look for an engine, on behalf of all who want one. It doesn't end with any of them: the next finds it done.
type attempt struct {
	done chan struct{} // closed when c and err are set
	c    *connection
	err  error
}

// lookTimeout bounds an attempt: a few endpoints, and a service of our own.
const lookTimeout = 30 * time.Second

// connect returns the connection, making it if there is none or its socket is gone.
func (d *Driver) connect(ctx context.Context) (*connection, error) {
	d.mu.Lock()
	c := d.conn
	d.mu.Unlock()
	if c != nil {
		if c.there() {
			return c, nil
		}
		d.drop(c)
	}
	a, err := d.attempt()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.c, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// attempt joins the attempt under way, or starts one.
func (d *Driver) attempt() (*attempt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, d.unavailable("", errors.New("the driver is closed"), "")
	case d.conn != nil: // meanwhile
		a := &attempt{done: make(chan struct{}), c: d.conn}
		close(a.done)
		return a, nil
	case d.dialing != nil:
		return d.dialing, nil
	}
	a := &attempt{done: make(chan struct{})}
	d.dialing = a
	d.background.Go(func() {
		ctx, cancel := context.WithTimeout(d.life, lookTimeout)
		defer cancel()
		a.c, a.err = d.look(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.conn, d.dialing = a.c, nil
		close(a.done)
	})
	return a, nil
}

// look tries our own service where it runs, then the endpoint that the user names; where none is named, the sockets that are there, then
// podman's own connections, then a service of its own. Those last two take a start of podman's program each, so where nothing runs yet
// they go side by side: seldom is there a connection without a socket.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	f := finder{d: d}
	ours := d.running()
	f.places = ours
	others := d.client || runtimeFlags(d.cfg.Hardening.OCIRuntime) == nil // only our own service has the flags
	switch {
	case d.cfg.Endpoint != "":
		f.places = append(f.places, d.endpoints(ctx)...)
	case others:
		f.places = append(f.places, d.sockets()...)
	}
	if c, err := f.try(ctx, f.places); c != nil || err != nil {
		return c, err
	}
	if d.cfg.Endpoint != "" {
		return nil, cmp.Or(d.dormant(ctx, f.places), f.passed[0])
	}
	serve := func() (*connection, error) { return d.serve(ctx) }
	stop := func() {}
	if len(ours) == 0 { // else it would end what may only be slow
		serve, stop = d.serveBeside(ctx)
	}
	if others {
		listed := d.listed(ctx)
		f.places = append(f.places, listed...)
		if c, err := f.try(ctx, listed); c != nil || err != nil {
			stop()
			return c, err
		}
	}
	c, err := serve()
	if err == nil {
		c.facts.Lacks = append(c.facts.Lacks, refusals(f.places)...)
		return c, nil
	}
	if m := d.dormant(ctx, f.places); m != nil {
		return nil, m
	}
	return nil, d.none(f.passed, err)
}

// finder is one look for an engine.
type finder struct {
	d      *Driver
	places []endpoint // that were there to be tried
	passed []error    // why those that were tried can't be used
}

// try gives the first of some places that can be used; nil for none. The only error is that the time is over.
func (f *finder) try(ctx context.Context, places []endpoint) (*connection, error) {
	for _, e := range places {
		c, err := f.d.try(ctx, e)
		if err == nil {
			c.facts.Lacks = append(c.facts.Lacks, refusals(f.places)...)
			a := c.facts
			f.d.log.Info("engine", "engine", "podman", "version", a.Version, "endpoint", a.Endpoint, "rootless", a.Rootless, "runtime", a.OCIRuntime)
			return c, nil
		}
		f.passed = append(f.passed, err)
		if ctx.Err() != nil {
			return nil, f.d.unavailable("", fmt.Errorf("no engine was found in time: %w", errors.Join(f.passed...)), "run: podman info")
		}
	}
	return nil, nil
}

// serveBeside is serve, begun at once. One of its two functions must be called: wait for its outcome, or stop, which returns when all is
// gone again.
func (d *Driver) serveBeside(ctx context.Context) (wait func() (*connection, error), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var c *connection
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = d.serve(ctx)
	}()
	wait = func() (*connection, error) {
		defer cancel()
		<-done
		return c, err
	}
	stop = func() {
		cancel()
		if <-done; err == nil {
			d.stopService()
		}
	}
	return wait, stop
}

// try dials an endpoint that nothing speaks against.
func (d *Driver) try(ctx context.Context, e endpoint) (*connection, error) {
	if e.refused != nil {
		return nil, d.unavailable(e.url, e.refused, "if you trust who listens there, set MCP_BRIDGE_RUNTIME="+e.url)
	}
	return d.dial(ctx, e)
}

// serve is the engine behind a service of our own.
func (d *Driver) serve(ctx context.Context) (*connection, error) {
	if d.client {
		return nil, errNoService
	}
	socket, err := d.startService(ctx)
	if err != nil {
		return nil, err
	}
	c, err := d.dial(ctx, endpoint{url: "unix://" + socket, own: true})
	if err != nil {
		d.stopService()
	}
	return c, err
}

var errNoService = errors.New("on this system podman runs in a virtual machine")

// none says why there is no engine.
func (d *Driver) none(passed []error, err error) error {
	var ready *runtime.UnavailableError
	if errors.As(err, &ready) && ready.Next != "" && len(passed) == 0 {
		return ready
	}
	next := "run: podman info"
	switch {
	case errors.Is(err, exec.ErrNotFound):
		next = "install podman (Debian: sudo apt install podman; Fedora: sudo dnf install podman; macOS: brew install podman && podman machine init && podman machine start)," +
			" then run: mcp-bridge doctor"
	case errors.Is(err, errNoService):
		next = "run: podman machine init && podman machine start"
	case d.ignored != nil: // and podman, which was started without it, has found no other
		next = "set XDG_RUNTIME_DIR to a directory of your own that nobody else can write to, or unset it; then run: mcp-bridge doctor"
	case ready != nil && ready.Next != "":
		next = ready.Next
	}
	var why strings.Builder
	for _, p := range passed {
		why.WriteString(p.Error() + "; ")
	}
	return d.unavailable("", fmt.Errorf("%sno other socket listens; and no service could be started: %w", why.String(), err), next)
}

// lost drops a connection whose engine no longer answers, so that the next use connects anew. It returns err, or an
// UnavailableError when the engine is indeed gone.
func (d *Driver) lost(c *connection, err error) error {
	if !c.answers(d.silence / 2) {
		return d.gone(c, err)
	}
	if !c.facts.Remote {
		if full := d.unwritable(); full != nil {
			return full
		}
	}
	if before, _, panicked := strings.Cut(err.Error(), "runtime error: "); panicked {
		return fmt.Errorf("%spodman's API service failed on it, by a mistake of its own; see: podman info", before)
	}
	return err
}

// gone is lost for an engine that is known not to answer.
func (d *Driver) gone(c *connection, err error) error {
	d.drop(c)
	if c.tunnel != nil {
		err = c.tunnel.quoted(err)
	}
	e := d.unavailable(c.facts.Endpoint, &goneError{err}, "run the call again; if that fails, run: mcp-bridge doctor")
	e.Gone = true
	return e
}

// drop makes the next use connect anew. While the driver is being closed there is none, and the tunnel is Close's to stop.
func (d *Driver) drop(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if d.conn == c || d.conn != nil && d.conn.values == c.values {
		d.conn = nil
	}
	d.background.Go(func() { d.stop(c.tunnel) })
}

// Close ends what the driver has started: the service, a tunnel, a machine. Containers of runs under way must be gone before.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	c := d.conn
	d.mu.Unlock()
	d.end()
	d.background.Wait()
	err := d.leaveMachine(c)
	d.mu.Lock()
	c, d.conn = d.conn, nil
	p := d.profile
	d.profile = nil
	d.mu.Unlock()
	if c != nil {
		d.stop(c.tunnel)
	}
	d.stopService()
	p.remove()
	return err
}

// goneError is what an engine's death looked like from here, in one line.
type goneError struct{ err error }

func (e *goneError) Error() string {
	return "it went away: " + runtime.OneLine(strings.ReplaceAll(e.err.Error(), "\n", "; "))
}

func (e *goneError) Unwrap() error { return e.err }
