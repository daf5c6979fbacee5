package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// dialTimeout bounds one attempt to reach one endpoint, and the engine's answer to what it is.
const dialTimeout = 10 * time.Second

// oldestAPI is docker 20.10's. Before it a container could not be given a control group namespace of its own.
const oldestAPI = "1.41"

// connection is a reached engine.
type connection struct {
	cli     *client.Client
	dial    dialer
	facts   runtime.Facts
	podman  bool // its docker-compatible service
	cpus    int  // of the engine's machine; it refuses a limit above that
	exposed bool // the way there can be read or answered by others: see endpoint.open

	mu     sync.Mutex
	images map[string]template // by id
}

// Facts asks the engine what it is. The answer is remembered while the engine stays reachable.
func (d *Driver) Facts(ctx context.Context) (runtime.Facts, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Facts{}, err
	}
	f := c.facts
	f.LSM, f.Lacks = slices.Clone(f.LSM), slices.Clone(f.Lacks)
	return f, nil
}

// attempt is one look for an engine, on behalf of all who want one. It doesn't end with any of them: the next finds it done.
type attempt struct {
	done chan struct{} // closed when c and err are set
	c    *connection
	err  error
}

// lookTimeout bounds an attempt: a few endpoints, of which not all can be silent.
const lookTimeout = 30 * time.Second

// connect returns the connection, making it if there is none.
func (d *Driver) connect(ctx context.Context) (*connection, error) {
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
		return nil, d.unavailable("", errClosed, "")
	case d.conn != nil:
		a := &attempt{done: make(chan struct{}), c: d.conn}
		close(a.done)
		return a, nil
	case d.dialing != nil:
		return d.dialing, nil
	}
	a := &attempt{done: make(chan struct{})}
	d.dialing = a
	d.background.Go(func() {
		ctx, cancel := context.WithTimeout(d.open, lookTimeout)
		defer cancel()
		c, err := d.look(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		defer close(a.done)
		d.dialing = nil
		switch {
		case err != nil:
			a.err = err
			return
		case d.closed:
			a.err = errors.Join(d.unavailable("", errClosed, ""), c.cli.Close())
			return
		}
		a.c, d.conn = c, c
		select {
		case d.connected <- struct{}{}:
		default:
		}
		d.log.Info("engine", "engine", c.facts.Engine, "version", c.facts.Version, "endpoint", c.facts.Endpoint, "rootless", c.facts.Rootless)
	})
	return a, nil
}

// nextStart is what to do about an engine that doesn't answer where it was looked for.
func (d *Driver) nextStart() string {
	next := "start it (systemctl --user start docker, or Docker Desktop), or check " + d.variable()
	if d.cfg.Endpoint == "" {
		next += " and: docker context ls"
	}
	return next
}

// variable is where the user says which endpoint to use.
func (d *Driver) variable() string {
	if d.cfg.Endpoint != "" && d.cfg.Setting != "" {
		return d.cfg.Setting
	}
	return "DOCKER_HOST"
}

const nextInstall = "install docker and set it up rootless (dockerd-rootless-setuptool.sh install), or start Docker Desktop, then run: mcp-bridge doctor"

// look tries the endpoints in order. Where the user named one, its error is the answer.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	f, err := d.endpoints()
	if err != nil {
		return nil, d.unavailable("", err, "check DOCKER_CONTEXT, and: docker context ls")
	}
	var passed []string
	next := nextInstall
	for _, e := range f.list {
		c, err := d.try(ctx, e)
		if err == nil {
			c.facts.Lacks = append(c.facts.Lacks, refusals(f.list)...)
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, d.unavailable("", fmt.Errorf("no engine was found in time: %w", err), d.nextStart())
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
		return nil, d.unavailable("", fmt.Errorf("no docker socket is there: %w", fs.ErrNotExist), nextInstall)
	}
	return nil, d.unavailable("", errors.New(strings.Join(passed, "; ")), next)
}

// dial reaches one endpoint and asks what it is; a rootful engine that wasn't allowed is refused.
func (d *Driver) dial(ctx context.Context, e endpoint) (*connection, error) {
	dial, err := d.dialerFor(e)
	if err != nil {
		return nil, d.unavailable(e.url, err, "set "+d.variable()+" to a URL such as unix:///run/user/1000/docker.sock")
	}
	if err := d.mayUse(e); err != nil {
		return nil, err
	}
	cli, err := d.client(e, dial)
	if err != nil {
		return nil, d.unavailable(e.url, err, d.nextStart())
	}
	wait, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := d.greet(wait, e, dial, cli)
	if err != nil {
		_ = cli.Close()
		return nil, err
	}
	return c, nil
}

// client is docker's, on connections of ours: the HTTP client comes after the host, which would set a proxy and a dialer.
func (d *Driver) client(e endpoint, dial dialer) (*client.Client, error) {
	u, err := url.Parse(e.url)
	if err != nil {
		return nil, err
	}
	host := "tcp://" + u.Host // for the headers, and for what the client's errors say
	if u.Scheme == "unix" || u.Scheme == "npipe" {
		host = e.url
	}
	return client.NewClientWithOpts(client.WithHost(host), client.WithScheme("http"),
		client.WithHTTPClient(&http.Client{Transport: dial.transport(), CheckRedirect: client.CheckRedirect}),
		client.WithVersion(d.settings.apiVersion), client.WithAPIVersionNegotiation())
}

// greet asks an engine what it is.
func (d *Driver) greet(ctx context.Context, e endpoint, dial dialer, cli *client.Client) (*connection, error) {
	no := func(err error) error {
		return d.unavailable(e.url, errors.New(runtime.OneLine(err.Error())), d.afterNoAnswer(err))
	}
	ping, err := cli.Ping(ctx)
	if err != nil {
		return nil, no(err)
	}
	cli.NegotiateAPIVersionPing(ping)
	if v := cli.ClientVersion(); versions.LessThan(v, oldestAPI) {
		return nil, d.unavailable(e.url, fmt.Errorf("it speaks version %s of the API, and %s is needed", v, oldestAPI), "upgrade docker to 20.10 or later")
	}
	info, err := cli.Info(ctx)
	if err != nil {
		return nil, no(err)
	}
	version, err := cli.ServerVersion(ctx)
	if err != nil {
		return nil, no(err)
	}
	c := &connection{cli: cli, dial: dial, cpus: info.NCPU, exposed: len(e.open()) > 0, images: map[string]template{}}
	c.facts = facts(info, e, cli.ClientVersion())
	for _, part := range version.Components {
		c.podman = c.podman || part.Name == "Podman Engine"
	}
	if c.podman {
		var p podmanInfo
		if err := libpod(ctx, cli.HTTPClient(), http.MethodGet, "/info", &p); err != nil {
			return nil, no(err)
		}
		c.facts = p.facts(c.facts)
	}
	if err := d.harden(c, info); err != nil {
		return nil, err
	}
	if !c.facts.Rootless && !c.facts.Desktop && !d.cfg.AllowRootful {
		return nil, d.unavailable(e.url, errors.New("it runs as root, so a flaw in it would hand over the machine"),
			"set docker up rootless (dockerd-rootless-setuptool.sh install), or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
	}
	return c, nil
}

// afterNoAnswer is the next step where an engine could not be asked. Membership of the group docker is never it: that is root.
func (d *Driver) afterNoAnswer(err error) string {
	switch s := err.Error(); {
	case errors.Is(err, fs.ErrPermission) || strings.Contains(s, "permission denied"):
		return "use a docker of your own: dockerd-rootless-setuptool.sh install"
	case strings.Contains(s, "x509") || strings.Contains(s, "tls:"):
		return "check the certificates in DOCKER_CERT_PATH, or those of the context: docker context inspect"
	case strings.Contains(s, "HTTP response to HTTPS") || strings.Contains(s, "to an HTTPS server") || strings.Contains(s, "malformed HTTP"):
		return "check whether the endpoint wants TLS: DOCKER_TLS_VERIFY and DOCKER_CERT_PATH"
	case strings.Contains(s, "ssh"):
		return "check that this works without a password: ssh HOST docker version"
	}
	return d.nextStart()
}

// lost drops a connection whose engine no longer answers, so that the next use connects anew. It returns err, or an
// UnavailableError when the engine is indeed gone.
func (d *Driver) lost(c *connection, err error) error {
	ctx, cancel := context.WithTimeout(d.open, dialTimeout)
	defer cancel()
	if _, perr := c.cli.Ping(ctx); perr == nil {
		return err
	}
	d.drop(c)
	e := d.unavailable(c.facts.Endpoint, &goneError{err}, "run the call again; if that fails, run: mcp-bridge doctor")
	e.Gone = true
	return e
}

// drop makes the next use connect anew.
func (d *Driver) drop(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == c {
		d.conn = nil
		_ = c.cli.Close()
	}
}

// unreachable says that nobody listens at the engine's endpoint any more.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || client.IsErrConnectionFailed(err)
}

// goneError is what an engine's death looked like from here, in one line.
type goneError struct{ err error }

func (e *goneError) Error() string { return "it went away: " + runtime.OneLine(e.err.Error()) }

func (e *goneError) Unwrap() error { return e.err }
