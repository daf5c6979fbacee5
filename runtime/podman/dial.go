//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/system"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// dialTimeout bounds one attempt to reach one endpoint, and the engine's answer to what it is.
const dialTimeout = 5 * time.Second

// dial reaches one endpoint and asks what it is; a rootful engine that wasn't allowed is refused.
func (d *Driver) dial(ctx context.Context, e endpoint) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := d.reach(ctx, e)
	if err != nil {
		var ready *runtime.UnavailableError
		if errors.As(err, &ready) {
			return nil, err
		}
		return nil, d.unavailable(e.url, err, d.hint(e, err))
	}
	if err := d.examine(ctx, c, e); err != nil {
		if c.tunnel != nil {
			err = c.tunnel.quoted(err)
		}
		d.stop(c.tunnel)
		var ready *runtime.UnavailableError
		if errors.As(err, &ready) {
			return nil, err
		}
		return nil, d.unavailable(e.url, err, "run: podman info")
	}
	return c, nil
}

// reach is a connection that answers, and of which nothing is known yet.
func (d *Driver) reach(ctx context.Context, e endpoint) (*connection, error) {
	u, err := url.Parse(e.url)
	if err != nil {
		return nil, fmt.Errorf("it is no URL: %w", err)
	}
	c := &connection{own: e.own}
	opts := bindings.Options{URI: e.url, Identity: e.identity, Machine: e.machine}
	switch {
	case u.Scheme == "unix":
		c.socket = u.Host + u.Path
		if !strings.HasPrefix(e.url, "unix:///") {
			c.socket = "/" + c.socket // as podman reads unix://run/x
		}
		// Before the bindings, which try three times, 0.6 s in all, to reach what isn't there.
		err = knock(ctx, "unix", c.socket)
	case u.Scheme == "tcp":
		opts.TLSCAFile, opts.TLSCertFile, opts.TLSKeyFile = d.cfg.TLS.CA, d.cfg.TLS.Cert, d.cfg.TLS.Key
		if err = d.mayUse(u); err == nil {
			err = knock(ctx, "tcp", u.Host)
		}
	case u.Scheme == "ssh" && !e.machine:
		if c.tunnel, err = d.tunnel(ctx, u); err == nil {
			c.socket = c.tunnel.socket
			opts.URI = "unix://" + c.socket
		}
	}
	if err != nil {
		return nil, err
	}
	if c.values, err = bind(ctx, opts); err != nil {
		if c.tunnel != nil {
			err = c.tunnel.quoted(err)
			d.stop(c.tunnel)
		}
		return nil, err
	}
	return c, nil
}

// knock finds out at once whether somebody listens.
func knock(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// bind is the bindings' own connection. It holds on to its context, whose end means nothing once it is made.
func bind(ctx context.Context, opts bindings.Options) (context.Context, error) {
	type answer struct {
		values context.Context //nolint:containedctx // passed on at once
		err    error
	}
	dialled := make(chan answer, 1) // a machine's ssh heeds no context; it gives up by itself after 40 s
	go func() {
		values, err := bindings.NewConnectionWithOptions(ctx, opts)
		if err == nil {
			err = reuseConnections(values)
		}
		dialled <- answer{values, err}
	}()
	select {
	case a := <-dialled:
		return a.values, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}

// reuseConnections has requests that are made at the same time leave their connections to later ones: of those that the bindings' transport
// would have, all but two are closed. It is for before the connection's first use: the transport that has pinged is replaced.
func reuseConnections(values context.Context) error {
	conn, t, err := transportOf(values)
	if err != nil {
		return err
	}
	own := t.Clone()
	own.MaxIdleConnsPerHost, own.IdleConnTimeout = 16, 30*time.Second
	conn.Client.Transport = own
	t.CloseIdleConnections()
	return nil
}

// transportOf is the bindings' connection, and what carries its requests.
func transportOf(values context.Context) (*bindings.Connection, *http.Transport, error) {
	conn, err := bindings.GetClient(values)
	if err != nil {
		return nil, nil, err
	}
	t, ok := conn.Client.Transport.(*http.Transport)
	if !ok {
		return nil, nil, fmt.Errorf("the connection has no transport of its own but a %T", conn.Client.Transport)
	}
	return conn, t, nil
}

// examine asks the engine what it is, and decides what its containers get.
func (d *Driver) examine(ctx context.Context, c *connection, e endpoint) error {
	info, err := system.Info(c.with(ctx), nil)
	if err != nil {
		return fmt.Errorf("it doesn't say what it is: %w", err)
	}
	c.facts = facts(info, e, bindings.ServiceVersion(c.values).String())
	if !c.facts.Rootless && !c.facts.Desktop && !d.cfg.AllowRootful {
		return d.unavailable(e.url, errors.New("it runs as root, so a flaw in it would hand over the machine"),
			"use podman as an ordinary user, or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
	}
	return d.harden(ctx, c, info)
}

// mayUse refuses to send code in the clear over a network: whoever sits on it could answer for the engine, and so call the
// user's tools in the code's name. This machine's own addresses stay in it, but any of its users can use such an engine.
func (d *Driver) mayUse(u *url.URL) error {
	if d.cfg.TLS.CA != "" {
		return nil
	}
	if !runtime.Loopback(u.Hostname()) {
		return d.unavailable(u.String(), errors.New("without TLS, anyone on the network between could read the code and answer for the engine"),
			"use ssh://USER@"+u.Hostname()+"/run/user/UID/podman/podman.sock, or TLS: DOCKER_CERT_PATH, a directory with ca.pem, cert.pem and key.pem")
	}
	d.log.Warn("this engine takes commands from every user of this machine: its endpoint is TCP without TLS", "endpoint", u.Redacted())
	return nil
}

// hint is what to type next when an endpoint can't be reached.
func (d *Driver) hint(e endpoint, err error) string {
	says := func(what string) bool { return strings.Contains(err.Error(), what) }
	switch {
	case strings.HasPrefix(e.url, "tcp:"):
		return "check " + d.cfg.Setting + ", and that podman system service listens there"
	case !strings.HasPrefix(e.url, "ssh:"):
		if errors.Is(err, os.ErrPermission) {
			return "you may not use this socket: use a podman of your own (unset " + d.cfg.Setting + "), or ask for access to it"
		}
		return "start it with: systemctl --user start podman.socket, or check " + d.cfg.Setting
	case e.machine:
		return "run: podman machine start"
	case says("executable file not found"):
		return "install ssh (Debian: sudo apt install openssh-client)"
	case says("REMOTE HOST IDENTIFICATION HAS CHANGED"):
		return "that host has another key than the one in known_hosts: find out why before you trust it"
	case says("Host key verification failed"):
		return "log in once by hand, to see and accept the host's key: " + byHand(e.url)
	case says("Permission denied"):
		return "log in by hand, to see why: " + byHand(e.url) + "; a key with a passphrase has to be in the agent (ssh-add), and another key's file in CONTAINER_SSHKEY"
	}
	return "on that host run: systemctl --user enable --now podman.socket && loginctl enable-linger; and check the path in " + d.cfg.Setting
}
