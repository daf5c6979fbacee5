//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/system"
	"github.com/sirupsen/logrus"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// dialTimeout bounds one attempt to reach one endpoint, and the engine's answer to what it is.
const dialTimeout = 5 * time.Second

// connection is a reached engine. The bindings want it inside the context of every call: see with.
type connection struct {
	values context.Context //nolint:containedctx // holds the bindings' client, nothing that ends
	facts  runtime.Facts
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

// line is a context for one Attach, which changes the transport of the client it finds: with a client of its own it takes no
// other call's connection, and none takes its. And it can be cut, which nothing else does to an Attach.
type line struct {
	joined
	own *bindings.Connection

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (c *connection) apart(ctx context.Context) *line {
	l := &line{joined: joined{ctx, c.values}}
	shared, err := bindings.GetClient(c.values)
	if err != nil {
		return l // Attach finds out by itself
	}
	transport, ok := shared.Client.Transport.(*http.Transport)
	if !ok {
		return l
	}
	own := *shared
	own.Client = &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		TLSClientConfig:    transport.TLSClientConfig,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := transport.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return conn, l.keep(conn)
		},
	}}
	l.own = &own
	return l
}

// keep remembers a connection, to be cut with the others.
func (l *line) keep(conn net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errors.Join(net.ErrClosed, conn.Close())
	}
	l.conns = append(l.conns, conn)
	return nil
}

// hangUp cuts the connections. It may be called more than once.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

func (l *line) Value(key any) any {
	v := l.joined.Value(key)
	if _, ok := v.(*bindings.Connection); ok && l.own != nil {
		return l.own
	}
	return v
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

// connect returns the connection, making it if there is none.
func (d *Driver) connect(ctx context.Context) (*connection, error) {
	d.dialing.Lock()
	defer d.dialing.Unlock()
	d.mu.Lock()
	c, closed := d.conn, d.closed
	d.mu.Unlock()
	switch {
	case closed:
		return nil, d.unavailable("", errors.New("the driver is closed"), "")
	case c != nil:
		return c, nil
	}
	c, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = c
	d.log.Info("engine", "engine", "podman", "version", c.facts.Version, "endpoint", c.facts.Endpoint, "rootless", c.facts.Rootless)
	return c, nil
}

// look tries the endpoints in order, then a service of its own.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	var passed []string
	for _, e := range append(d.running(), d.endpoints(ctx)...) {
		c, err := d.dial(ctx, e)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if d.cfg.Endpoint != "" {
			return nil, err
		}
		passed = append(passed, err.Error())
	}
	if d.cfg.Endpoint != "" {
		return nil, d.unavailable("", errors.New("no endpoint"), "")
	}
	socket, err := d.startService(ctx)
	if err == nil {
		var c *connection
		if c, err = d.dial(ctx, endpoint{url: "unix://" + socket, own: true}); err == nil {
			return c, nil
		}
		d.stopService()
	}
	var ready *runtime.UnavailableError
	if errors.As(err, &ready) && ready.Next != "" && len(passed) == 0 {
		return nil, ready
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	next := "run: podman info"
	if errors.Is(err, exec.ErrNotFound) {
		next = "install podman (Debian: sudo apt install podman; Fedora: sudo dnf install podman; macOS: brew install podman && podman machine init && podman machine start)," +
			" then run: mcp-bridge doctor"
	}
	if ready != nil && ready.Next != "" {
		next = ready.Next
	}
	why := strings.Join(append(passed, "no other socket listens"), "; ")
	return nil, d.unavailable("", fmt.Errorf("%s; and no service could be started: %w", why, err), next)
}

// dial reaches one endpoint and asks what it is; a rootful engine that wasn't allowed is refused.
func (d *Driver) dial(ctx context.Context, e endpoint) (*connection, error) {
	// The bindings keep the context they are given, so it must not be a call's.
	values := context.Background()
	type answer struct {
		ctx context.Context //nolint:containedctx // passed on at once
		err error
	}
	dialled := make(chan answer, 1) // NewConnection ignores its context over ssh
	go func() {
		c, err := bindings.NewConnectionWithOptions(values, bindings.Options{URI: e.url, Identity: e.identity, Machine: e.machine})
		dialled <- answer{c, err}
	}()
	wait, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var a answer
	select {
	case a = <-dialled:
	case <-wait.Done():
		a.err = fmt.Errorf("no answer: %w", context.Cause(wait))
	}
	if a.err != nil {
		return nil, d.unavailable(e.url, a.err, "start it with: systemctl --user start podman.socket, or check CONTAINER_HOST")
	}
	c := &connection{values: a.ctx}
	info, err := system.Info(c.with(wait), nil)
	if err != nil {
		return nil, d.unavailable(e.url, fmt.Errorf("it doesn't say what it is: %w", err), "run: podman info")
	}
	version := bindings.ServiceVersion(a.ctx)
	c.facts = facts(info, e, version.String())
	if !c.facts.Rootless && !e.machine && !d.cfg.AllowRootful {
		return nil, d.unavailable(e.url, errors.New("it runs as root, so a flaw in it would hand over the machine"),
			"use podman as an ordinary user, or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
	}
	return c, nil
}

// lost drops a connection whose engine no longer answers, so that the next use connects anew. It returns err, or an
// UnavailableError when the engine is indeed gone.
func (d *Driver) lost(c *connection, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, cerr := bindings.GetClient(c.values)
	if cerr == nil {
		var r *bindings.APIResponse
		if r, cerr = conn.DoRequest(c.with(ctx), nil, "GET", "/_ping", nil, nil); cerr == nil {
			r.Body.Close()
			return err
		}
	}
	d.drop(c)
	return d.unavailable(c.facts.Endpoint, &goneError{err}, "run the call again; if that fails, run: mcp-bridge doctor")
}

// drop makes the next use connect anew.
func (d *Driver) drop(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == c {
		d.conn = nil
	}
}

// goneError is what an engine's death looked like from here, in one line.
type goneError struct{ err error }

func (e *goneError) Error() string { return "it went away: " + oneLine(e.err.Error()) }

func (e *goneError) Unwrap() error { return e.err }
