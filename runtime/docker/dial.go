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
	"strings"

	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// dialer reads an endpoint's URL.
func (d *Driver) dialer(e endpoint) (engine.Dialer, error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	switch u.Scheme {
	case "unix":
		if u.Host != "" { // unix://relative/path
			return nil, errors.New("the path of a unix socket must be absolute: unix:///…")
		}
		return engine.Unix(u.Path), nil
	case "npipe":
		return pipeDialer(e.URL)
	case "ssh":
		args, err := sshArgs(u)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (net.Conn, error) {
			return d.relays.Start(ctx, d.cfg.Guard, "ssh", args...)
		}, nil
	case "tcp", "http", "https":
		return tcpDialer(u, e)
	}
	const known = "the scheme is %q; known are unix, tcp, http, https, ssh and npipe"
	return nil, fmt.Errorf(known, u.Scheme)
}

// sshArgs returns ssh's arguments for docker's relay on the other side, as docker's command line
// runs it. The shell there, which ssh always has run the command, is told the socket in quotes.
func sshArgs(u *url.URL) ([]string, error) {
	args, err := engine.SSHArgs(u, "ConnectTimeout=30", "ClearAllForwardings=yes")
	if err != nil {
		return nil, err
	}
	args = append(args, "docker")
	if strings.Trim(u.Path, "/") != "" {
		args = append(args, "--host='"+strings.ReplaceAll("unix://"+u.Path, "'", `'\''`)+"'")
	}
	return append(args, "system", "dial-stdio"), nil
}

func tcpDialer(u *url.URL, e endpoint) (engine.Dialer, error) {
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
	if !secure {
		return engine.TCP(address, nil), nil
	}
	config, err := e.certs.config(u.Hostname())
	if err != nil {
		return nil, err
	}
	return engine.TCP(address, config), nil
}

// pipeDialer returns a dialer of Windows' named pipes. Docker's client knows how, and says
// elsewhere that there are none.
func pipeDialer(endpoint string) (engine.Dialer, error) {
	t := &http.Transport{}
	by := client.WithHTTPClient(&http.Client{Transport: t})
	if _, err := client.NewClientWithOpts(by, client.WithHost(endpoint)); err != nil {
		return nil, fmt.Errorf("named pipes are of Windows: %w", err)
	}
	return func(ctx context.Context) (net.Conn, error) { return t.DialContext(ctx, "npipe", "") }, nil
}

// certs are ca.pem, cert.pem and key.pem in a directory. Each may be missing: the system's
// authorities then count, or the client shows no certificate.
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
