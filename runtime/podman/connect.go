//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/system"
	"github.com/sirupsen/logrus"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// connection is a reached engine. It doesn't change.
type connection struct {
	api
	d      *Driver
	dialer engine.Dialer
	facts  runtime.Facts
	socket string // on this machine, where the engine or its tunnel listens; empty for none
	tunnel *child // ssh; nil for none

	profile string // the seccomp profile's path for the engine; empty for its default
	users   users  // the user namespace of each container
}

// api is the bindings' client, which they want inside the context of every call.
type api struct {
	values context.Context //nolint:containedctx // holds the client, nothing that ends
}

// with returns ctx with the client in it.
func (a api) with(ctx context.Context) context.Context { return joined{ctx, a.values} }

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

func (c *connection) Facts() runtime.Facts { return c.facts }

// Home implements engine.Client. All services of one user on this machine have the same
// containers, and one of our own listens elsewhere each time.
func (c *connection) Home() string {
	switch {
	case c.facts.Remote:
		return c.facts.Endpoint
	case c.facts.Rootless:
		return "this user's"
	}
	return "root's"
}

// There implements engine.Client. Of an engine on another machine it says only that the tunnel
// stands.
func (c *connection) There() bool {
	return (c.tunnel == nil || c.tunnel.alive()) && (c.socket == "" || engine.Listens(c.socket))
}

func (c *connection) Ping(ctx context.Context) error {
	conn, err := bindings.GetClient(c.values)
	if err != nil {
		return err
	}
	r, err := conn.DoRequest(c.with(ctx), nil, "GET", "/_ping", nil, nil)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

func (c *connection) Close() { c.tunnel.stop() }

func (c *connection) Images() engine.Images { return imageStore{c.api} }

// explain words an error of an engine that is there, or has gone.
func (d *Driver) explain(c *connection, err error, gone bool) error {
	if gone {
		if c.tunnel != nil {
			err = c.tunnel.quoted(err)
		}
		return err
	}
	says := func(what string) bool { return strings.Contains(err.Error(), what) }
	switch {
	case d.cfg.Hardening.OCIRuntime != "" && says("OCI runtime") && says("not available"):
		const what = "it has no OCI runtime %s: %s"
		why := fmt.Errorf(what, d.cfg.Hardening.OCIRuntime, runtime.OneLine(err.Error()))
		return d.Unavailable(c.facts.Endpoint, why, otherRuntime)
	case c.profile != "" && says("seccomp"):
		why := fmt.Errorf("it takes no container with the seccomp profile: %s", runtime.OneLine(err.Error()))
		const next = "check the profile, or use the engine's own: MCP_BRIDGE_SECCOMP=engine"
		return d.Unavailable(c.facts.Endpoint, why, next)
	}
	if !c.facts.Remote {
		if full := d.program.unwritable(); full != nil {
			return full
		}
	}
	if before, _, panicked := strings.Cut(err.Error(), "runtime error: "); panicked {
		return fmt.Errorf("%spodman's API service failed on it, by a mistake of its own; see: podman info", before)
	}
	return err
}

// untagged is why there is no podman in a build without the tags.
var untagged error

// quiet keeps the bindings' own logger off the terminal: what goes wrong comes back as errors.
func quiet() { logrus.SetOutput(io.Discard) }

// dialTimeout bounds one attempt to reach one endpoint, and the engine's answer to what it is.
const dialTimeout = 5 * time.Second

// dial reaches one endpoint and asks what it is. A rootful engine that wasn't allowed is refused.
func (d *Driver) dial(ctx context.Context, e endpoint) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &connection{d: d}
	next := "run: podman info"
	err := c.reach(ctx, e)
	if err != nil {
		next = d.hint(e, err)
	} else if err = c.examine(ctx, e); err == nil {
		return c, nil
	}
	if c.tunnel != nil {
		err = c.tunnel.quoted(err)
	}
	c.Close()
	if ready, ok := errors.AsType[*runtime.UnavailableError](err); ok {
		return nil, ready
	}
	return nil, d.Unavailable(e.URL, err, next)
}

// reach makes a connection that answers, and of which nothing is known yet.
func (c *connection) reach(ctx context.Context, e endpoint) error {
	u, err := url.Parse(e.URL)
	if err != nil {
		return fmt.Errorf("it is no URL: %w", err)
	}
	opts := bindings.Options{URI: e.URL, Identity: e.identity, Machine: e.VM}
	switch {
	case u.Scheme == "unix":
		c.socket = u.Host + u.Path
		if !strings.HasPrefix(e.URL, "unix:///") {
			c.socket = "/" + c.socket // as podman reads unix://run/x
		}
		c.dialer = engine.Unix(c.socket)
	case u.Scheme == "tcp":
		tls := c.d.cfg.TLS
		opts.TLSCAFile, opts.TLSCertFile, opts.TLSKeyFile = tls.CA, tls.Cert, tls.Key
		if err := c.d.mayUse(u); err != nil {
			return err
		}
		c.dialer = engine.TCP(u.Host, nil)
	case u.Scheme == "ssh" && !e.VM:
		if c.tunnel, err = c.d.program.tunnel(ctx, u, c.d.cfg.SSHKey); err != nil {
			return err
		}
		c.socket = c.tunnel.socket
		opts.URI = "unix://" + c.socket
		c.dialer = engine.Unix(c.socket)
	}
	if c.dialer != nil { // the bindings try three times, 0.6 s in all, to reach what isn't there
		conn, err := c.dialer(ctx)
		if err != nil {
			return err
		}
		conn.Close()
	}
	return c.bind(ctx, u, opts)
}

// bind makes the bindings' own connection. It holds on to its context, whose end means nothing once
// it is made.
func (c *connection) bind(ctx context.Context, u *url.URL, opts bindings.Options) error {
	type answer struct {
		values context.Context //nolint:containedctx // passed on at once
		err    error
	}
	dialled := make(chan answer, 1) // a machine's ssh heeds no context; it gives up by itself after 40 s
	go func() {
		values, err := bindings.NewConnectionWithOptions(ctx, opts)
		dialled <- answer{values, err}
	}()
	select {
	case a := <-dialled:
		if a.err != nil {
			return a.err
		}
		c.values = a.values
		return c.carry(u)
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}

// carry has the bindings' requests go through a transport of ours, which keeps more connections for
// later than the two that theirs does. It is for before the connection's first use.
func (c *connection) carry(u *url.URL) error {
	conn, err := bindings.GetClient(c.values)
	if err != nil {
		return err
	}
	t, ok := conn.Client.Transport.(*http.Transport)
	if !ok {
		return fmt.Errorf("the connection has no transport of its own but a %T", conn.Client.Transport)
	}
	switch {
	case t.TLSClientConfig != nil:
		secure := t.TLSClientConfig.Clone()
		if secure.ServerName == "" {
			secure.ServerName = u.Hostname()
		}
		secure.NextProtos = nil // a stream is attached over HTTP/1.1
		c.dialer = engine.TCP(u.Host, secure)
	case c.dialer == nil: // a machine's ssh, which is the bindings' own
		c.dialer = func(ctx context.Context) (net.Conn, error) { return t.DialContext(ctx, "", "") }
	}
	conn.Client.Transport = c.dialer.Transport()
	t.CloseIdleConnections()
	return nil
}

// examine asks the engine what it is, and decides what its containers get.
func (c *connection) examine(ctx context.Context, e endpoint) error {
	info, err := system.Info(c.with(ctx), nil)
	if err != nil {
		return fmt.Errorf("it doesn't say what it is: %w", err)
	}
	c.facts = facts(info, e, bindings.ServiceVersion(c.values).String())
	if !c.facts.Rootless && !c.facts.Desktop && !c.d.cfg.AllowRootful {
		return engine.Rootful(c.d.Name(), e.URL, "use podman as an ordinary user")
	}
	return c.harden(info)
}

// mayUse refuses to send code in the clear over a network. This machine's own addresses stay in it,
// but any of its users can use such an engine.
func (d *Driver) mayUse(u *url.URL) error {
	if d.cfg.TLS.CA != "" {
		return nil
	}
	if err := engine.InTheClear(d.Name(), u, "/run/user/UID/podman/podman.sock"); err != nil {
		return err
	}
	d.log.Warn("this engine takes commands from every user of this machine: its endpoint is TCP without TLS",
		"endpoint", u.Redacted())
	return nil
}

// hint returns what to type next when an endpoint can't be reached.
func (d *Driver) hint(e endpoint, err error) string {
	says := func(what string) bool { return strings.Contains(err.Error(), what) }
	switch {
	case strings.HasPrefix(e.URL, "tcp:"):
		return "check " + d.cfg.Setting + ", and that podman system service listens there"
	case !strings.HasPrefix(e.URL, "ssh:"):
		if errors.Is(err, os.ErrPermission) {
			return "you may not use this socket: use a podman of your own (unset " + d.cfg.Setting +
				"), or ask for access to it"
		}
		return "start it with: systemctl --user start podman.socket, or check " + d.cfg.Setting
	case e.VM:
		return "run: podman machine start"
	case says("executable file not found"):
		return "install ssh (Debian: sudo apt install openssh-client)"
	case says("REMOTE HOST IDENTIFICATION HAS CHANGED"):
		return "that host has another key than the one in known_hosts: find out why before you trust it"
	case says("Host key verification failed"):
		return "log in once by hand, to see and accept the host's key: " + byHand(e.URL)
	case says("Permission denied"):
		return "log in by hand, to see why: " + byHand(e.URL) + "; a key with a passphrase has to be in" +
			" the agent (ssh-add), and another key's file in CONTAINER_SSHKEY"
	}
	return "on that host run: systemctl --user enable --now podman.socket && loginctl enable-linger;" +
		" and check the path in " + d.cfg.Setting
}
