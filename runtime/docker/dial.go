package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A dialer makes one connection to an engine. Docker's client gets all of its connections from one, those with TLS too: left to
// itself it dials without heeding a context where a stream is to be attached.
type dialer func(ctx context.Context) (net.Conn, error)

// dialerFor reads an endpoint's URL.
func (d *Driver) dialerFor(e endpoint) (dialer, error) {
	u, err := url.Parse(e.url)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	switch u.Scheme {
	case "unix":
		path := u.Path
		if u.Host != "" { // unix://relative/path
			return nil, errors.New("the path of a unix socket must be absolute: unix:///…")
		}
		return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", path) }, nil
	case "npipe":
		return pipeDialer(e.url)
	case "ssh":
		args, err := sshArgs(u)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (net.Conn, error) { return d.relays.start(ctx, d.cfg.Guard, "ssh", args...) }, nil
	case "tcp", "http", "https":
		return tcpDialer(u, e)
	}
	return nil, fmt.Errorf("the scheme is %q; known are unix, tcp, http, https, ssh and npipe", u.Scheme)
}

// mayUse refuses to send code in the clear over a network: whoever sits on it could answer for the engine, and so call the
// user's tools in the code's name.
func (d *Driver) mayUse(e endpoint) error {
	u, err := url.Parse(e.url)
	if err != nil || !e.plain() || u.Hostname() == "" || runtime.Loopback(u.Hostname()) {
		return nil // what is wrong with it otherwise is the dialer's to say
	}
	return d.unavailable(e.url, errors.New("without TLS, anyone on the network between could read the code and answer for the engine"),
		"use ssh://USER@"+u.Hostname()+", or TLS: DOCKER_CERT_PATH, a directory with ca.pem, cert.pem and key.pem")
}

func tcpDialer(u *url.URL, e endpoint) (dialer, error) {
	secure := u.Scheme == "https" || u.Scheme == "tcp" && e.secure
	port := u.Port()
	switch {
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.Path != "" && u.Path != "/":
		return nil, errors.New("it has a path, which is not supported")
	case port == "" && secure:
		port = "2376"
	case port == "":
		port = "2375"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", address)
	}
	if !secure {
		return dial, nil
	}
	config, err := e.certs.config(u.Hostname())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		raw, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: raw.RemoteAddr(), Err: err}
		}
		return conn, nil
	}, nil
}

// pipeDialer is for Windows' named pipes; docker's client knows how, and says elsewhere that there are none.
func pipeDialer(endpoint string) (dialer, error) {
	t := &http.Transport{}
	if _, err := client.NewClientWithOpts(client.WithHTTPClient(&http.Client{Transport: t}), client.WithHost(endpoint)); err != nil {
		return nil, fmt.Errorf("named pipes are of Windows: %w", err)
	}
	return func(ctx context.Context) (net.Conn, error) { return t.DialContext(ctx, "npipe", "") }, nil
}

// certs are ca.pem, cert.pem and key.pem in a directory, each of which may be missing: the system's authorities then count, or
// the client shows no certificate.
type certs struct {
	dir      string
	insecure bool // a context of the user's says not to verify the server
}

func (c certs) config(host string) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: c.insecure}
	if c.dir == "" {
		return t, nil
	}
	ca, err := os.ReadFile(filepath.Join(c.dir, "ca.pem"))
	switch {
	case err == nil:
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s holds no certificate", filepath.Join(c.dir, "ca.pem"))
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "cert.pem"), filepath.Join(c.dir, "key.pem"))
	switch {
	case err == nil:
		t.Certificates = []tls.Certificate{pair}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the client's certificate: %w", err)
	}
	return t, nil
}

// line is the connection of one attached container: docker's client heeds no context while it asks for one, so it is remembered
// to be cut.
type line struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

type lineKey struct{}

// on is a context in which the connections that are made are l's.
func (l *line) on(ctx context.Context) context.Context { return context.WithValue(ctx, lineKey{}, l) }

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

// transport is an http.Transport with all its connections from dial.
func (dial dialer) transport() *http.Transport {
	return &http.Transport{
		DisableCompression:  true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			if l, ok := ctx.Value(lineKey{}).(*line); ok {
				if err := l.keep(conn); err != nil {
					return nil, err
				}
			}
			return conn, nil
		},
	}
}
