package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// dialTimeout bounds one attempt to reach one endpoint, and the engine's answer to what it is.
const dialTimeout = 10 * time.Second

// oldestAPI is docker 20.10's. Before it a container could not be given a control group namespace
// of its own.
const oldestAPI = "1.41"

// connection is a reached engine.
type connection struct {
	d      *Driver
	cli    *client.Client
	dial   engine.Dialer
	facts  runtime.Facts
	socket string // on this machine; empty for none
	cpus   int    // of the engine's machine; it refuses a limit above that
	images *imageStore
}

func (c *connection) Facts() runtime.Facts { return c.facts }

func (c *connection) Home() string { return c.facts.Endpoint }

func (c *connection) There() bool { return c.socket == "" || engine.Listens(c.socket) }

func (c *connection) Ping(ctx context.Context) error {
	_, err := c.cli.Ping(ctx)
	return err
}

func (c *connection) Close() { _ = c.cli.Close() }

func (c *connection) Images() engine.Images { return c.images }

// variable returns the name of what says which endpoint to use.
func (d *Driver) variable() string {
	if d.cfg.Endpoint != "" && d.cfg.Setting != "" {
		return d.cfg.Setting
	}
	return "DOCKER_HOST"
}

const nextInstall = "install docker and set it up rootless (dockerd-rootless-setuptool.sh install)," +
	" or start Docker Desktop, then run: mcp-bridge doctor"

// look tries the endpoints in order. Where the user named one, its error is the answer.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	f, err := d.endpoints()
	if err != nil {
		next := "check DOCKER_CONTEXT, and: docker context ls"
		if bad := (*trust.Error)(nil); errors.As(err, &bad) {
			next = bad.Hint()
		}
		return nil, d.Unavailable("", err, next)
	}
	var passed []string
	next := nextInstall
	for _, e := range f.list {
		c, err := d.try(ctx, e)
		if err == nil {
			c.facts.Lacks = append(c.facts.Lacks, engine.Refusals(f.list)...)
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, d.Unavailable("", fmt.Errorf("no engine was found in time: %w", err), d.hint(err))
		}
		var un *runtime.UnavailableError
		if f.only || len(f.list) == 1 || !errors.As(err, &un) {
			return nil, err
		}
		if len(passed) == 0 {
			next = un.Next
		}
		passed = append(passed, err.Error())
	}
	if len(passed) == 0 {
		return nil, d.Unavailable("", fmt.Errorf("no docker socket is there: %w", fs.ErrNotExist), nextInstall)
	}
	return nil, d.Unavailable("", errors.New(strings.Join(passed, "; ")), next)
}

// try reaches one endpoint, where nothing speaks against it, and asks what it is.
func (d *Driver) try(ctx context.Context, e endpoint) (*connection, error) {
	if err := e.MayUse(d.Name()); err != nil {
		return nil, err
	}
	dial, err := d.dialer(e)
	if err != nil {
		next := "set " + d.variable() + " to a URL such as unix:///run/user/1000/docker.sock"
		return nil, d.Unavailable(e.URL, err, next)
	}
	u, err := url.Parse(e.URL)
	if err == nil && e.plain() {
		err = engine.InTheClear(d.Name(), u, "")
	}
	if err != nil {
		return nil, err
	}
	c := &connection{d: d, dial: dial}
	host := "tcp://" + u.Host // for the headers, and for what the client's errors say
	switch u.Scheme {
	case "unix":
		host, c.socket = e.URL, u.Path
	case "npipe":
		host = e.URL
	}
	// The HTTP client comes after the host, which would set a proxy and a dialer.
	c.cli, err = client.NewClientWithOpts(client.WithHost(host), client.WithScheme("http"),
		client.WithHTTPClient(&http.Client{Transport: dial.Transport(), CheckRedirect: client.CheckRedirect}),
		client.WithVersion(d.settings.apiVersion), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, d.Unavailable(e.URL, err, d.hint(err))
	}
	c.images = &imageStore{cli: c.cli, settings: d.settings, log: d.log, endpoint: runtime.Redacted(e.URL),
		exposed: len(e.open()) > 0, known: map[string]template{}}
	wait, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := c.greet(wait, e); err != nil {
		c.Close()
		if errors.As(err, new(*runtime.UnavailableError)) {
			return nil, err
		}
		return nil, d.Unavailable(e.URL, errors.New(runtime.OneLine(err.Error())), d.hint(err))
	}
	return c, nil
}

// greet asks an engine what it is. A rootful one that wasn't allowed is refused.
func (c *connection) greet(ctx context.Context, e endpoint) error {
	ping, err := c.cli.Ping(ctx)
	if err != nil {
		return err
	}
	c.cli.NegotiateAPIVersionPing(ping)
	if v := c.cli.ClientVersion(); versions.LessThan(v, oldestAPI) {
		return c.d.Unavailable(e.URL,
			fmt.Errorf("it speaks version %s of the API, and %s is needed", v, oldestAPI),
			"upgrade docker to 20.10 or later")
	}
	info, err := c.cli.Info(ctx)
	if err != nil {
		return err
	}
	version, err := c.cli.ServerVersion(ctx)
	if err != nil {
		return err
	}
	for _, part := range version.Components {
		if part.Name == "Podman Engine" { // whose imitation of this API leaves out much of the lock-down
			return c.d.Unavailable(e.URL, errors.New("podman answers there in docker's words"),
				"use podman's own: MCP_BRIDGE_RUNTIME=podman, or MCP_BRIDGE_RUNTIME="+runtime.Redacted(e.URL))
		}
	}
	c.cpus = info.NCPU
	c.facts = facts(info, e, c.cli.ClientVersion())
	if err := c.harden(info); err != nil {
		return err
	}
	if !c.facts.Rootless && !c.facts.Desktop && !c.d.cfg.AllowRootful {
		return engine.Rootful(c.d.Name(), e.URL, "set docker up rootless (dockerd-rootless-setuptool.sh install)")
	}
	return nil
}

// hint returns the next step where an engine could not be asked. Membership of the group docker is
// never it: that is root.
func (d *Driver) hint(err error) string {
	says := func(what string) bool { return strings.Contains(err.Error(), what) }
	switch {
	case errors.Is(err, fs.ErrPermission) || says("permission denied"):
		return "use a docker of your own: dockerd-rootless-setuptool.sh install"
	case says("x509") || says("tls:"):
		return "check the certificates in DOCKER_CERT_PATH, or those of the context: docker context inspect"
	case says("HTTP response to HTTPS") || says("to an HTTPS server") || says("malformed HTTP"):
		return "check whether the endpoint wants TLS: DOCKER_TLS_VERIFY and DOCKER_CERT_PATH"
	case says("ssh"):
		return "check that this works without a password: ssh HOST docker version"
	}
	next := "start it (systemctl --user start docker, or Docker Desktop), or check " + d.variable()
	if d.cfg.Endpoint == "" {
		next += " and: docker context ls"
	}
	return next
}
