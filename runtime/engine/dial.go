package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// A Dialer makes one connection to an engine, with TLS if there is any. All connections to an
// engine come from one: left to themselves, docker's client and podman's bindings dial without
// heeding a context where a stream is to be attached.
type Dialer func(ctx context.Context) (net.Conn, error)

// Unix dials a socket on this machine.
func Unix(path string) Dialer {
	return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", path) }
}

// TCP dials an address, with TLS unless config is nil.
func TCP(address string, config *tls.Config) Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		raw, err := (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", address)
		if err != nil || config == nil {
			return raw, err
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: raw.RemoteAddr(), Err: err}
		}
		return conn, nil
	}
}

// Transport returns a transport with all its connections from dial. Requests made at the same time
// leave their connections to later ones.
func (dial Dialer) Transport() *http.Transport {
	through := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	return &http.Transport{
		DisableCompression:  true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
		DialContext:         through,
		DialTLSContext:      through,
	}
}

// Listens reports whether a socket on this machine takes connections. Where that can't be told, as
// when its queue is full, it returns true.
func Listens(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
	}
	conn.Close()
	return true
}

// InTheClear returns why no code is sent to that host without TLS: anyone on the way could answer
// for the engine, and so call the user's tools in the code's name. It is nil for this machine's own
// addresses. The socket is what an ssh URL would name.
func InTheClear(engine string, u *url.URL, socket string) error {
	if u.Hostname() == "" || runtime.Loopback(u.Hostname()) {
		return nil
	}
	return unavailable(engine, u.String(),
		errors.New("without TLS, anyone on the network between could read the code and answer for the engine"),
		"use ssh://USER@"+u.Hostname()+socket+
			", or TLS: DOCKER_CERT_PATH, a directory with ca.pem, cert.pem and key.pem")
}

// Rootful returns the error for an engine that runs as root and was not allowed to.
func Rootful(engine, endpoint, instead string) error {
	return unavailable(engine, endpoint,
		errors.New("it runs as root, so a flaw in it would hand over the machine"),
		instead+", or accept that risk with MCP_BRIDGE_ALLOW_ROOTFUL=true")
}

// Endpoint is a place where an engine's API may be had.
type Endpoint struct {
	URL     string
	VM      bool  // said to be in a virtual machine, which is the wall, rootful inside or not
	Refused error // why it is not used, though it is there; nil for nothing
}

// FindSocket looks for a socket that the user has not named. It reports whether it is there, and
// refuses it where others could have put it there, or where refused says so already.
func FindSocket(log *slog.Logger, path string, refused error) (p Endpoint, ok bool) {
	if fi, err := os.Stat(path); err != nil || fi.Mode()&os.ModeSocket == 0 {
		return Endpoint{}, false
	}
	if refused == nil {
		refused = trust.System().Path(path)
	}
	if refused != nil {
		log.Warn("socket not used", "path", path, "err", refused)
	}
	return Endpoint{URL: "unix://" + path, Refused: refused}, true
}

// MayUse returns the error of that engine for an endpoint that is there and not used.
func (p Endpoint) MayUse(engine string) error {
	if p.Refused == nil {
		return nil
	}
	return unavailable(engine, p.URL, p.Refused,
		"if you trust who listens there, set MCP_BRIDGE_RUNTIME="+p.URL)
}

// Refusal words a refused endpoint for Facts.Lacks. It is empty for one that is used.
func (p Endpoint) Refusal() string {
	if p.Refused == nil {
		return ""
	}
	return "the socket " + strings.TrimPrefix(p.URL, "unix://") + " is there and not used: " + p.Refused.Error()
}

// Refusals returns the refusals among some endpoints.
func Refusals[P interface{ Refusal() string }](all []P) []string {
	var why []string
	for _, p := range all {
		if r := p.Refusal(); r != "" {
			why = append(why, r)
		}
	}
	return why
}
