package oauth

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	bodyLimit     = 256 << 10 // bytes of an answer
	dialTimeout   = 10 * time.Second
	headerTimeout = 15 * time.Second // for the beginning of an answer
	totalTimeout  = 30 * time.Second // for one whole exchange
)

// Client speaks to authorization servers. Its methods may be called concurrently.
type Client struct {
	any, far *http.Transport // far connects to no address of this machine or its link
}

// NewClient returns a client.
func NewClient() *Client {
	return &Client{any: transport(nil), far: transport(refuseNear)}
}

func transport(control func(network, address string, _ syscall.RawConn) error) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, Control: control}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true, // a handful of requests in a login, one in an hour after it
		ForceAttemptHTTP2:      true,
	}
}

// to returns an HTTP client for a login to server, for the server and for what it names.
func (c *Client) to(server *url.URL) *http.Client {
	return &http.Client{
		Timeout:       totalTimeout,
		Transport:     &guarded{c, server},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guarded is the transport of a login to server. It bounds answers.
type guarded struct {
	*Client
	server *url.URL
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	t := g.any
	if g.mustBeFar(req) {
		t = g.far
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, bodyLimit}
	return resp, nil
}

// mustBeFar reports whether a request must not reach this machine, whatever a resolver says. That
// holds for what a distant server names; the server's own host was named by the user. A proxy
// resolves names itself.
func (g *guarded) mustBeFar(req *http.Request) bool {
	proxy, err := http.ProxyFromEnvironment(req)
	return err == nil && proxy == nil && !isNear(g.server) &&
		!strings.EqualFold(req.URL.Hostname(), g.server.Hostname())
}

// limitedBody is a body that fails beyond a number of bytes.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", bodyLimit)
	}
	return n, err
}

var errNear = errors.New("it is on this machine or its link, and the server isn't")

func refuseNear(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || nearAddress(to.Addr()) {
		return errNear
	}
	return nil
}

// numeric matches names that some resolvers read as an IPv4 address: the last label is a number
// (URL Standard, 3.5).
var numeric = regexp.MustCompile(`(^|\.)(0[xX][0-9a-fA-F]*|[0-9]+)\.?$`)

// isNear reports whether a URL's host is this machine or its link, as far as its name tells. Other
// names are judged when they are dialled.
func isNear(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return nearAddress(a)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || numeric.MatchString(host)
}

// nearAddress reports whether an address is of this machine or its link, where clouds tell machines
// their secrets. A company's authorization server may well be on a private network, so that is not
// near.
func nearAddress(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast()
}

// endpoint returns an address that a login may use: https, or http if it and the server are on this
// machine. Otherwise a distant server could make us reach into this machine.
func endpoint(raw string, server *url.URL) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, errors.New("it is no plain absolute URL")
	case u.Scheme == "https" && (!isNear(u) || isNear(server)):
		return u, nil
	case u.Scheme == "http" && discovery.Loopback(u) && discovery.Loopback(server):
		return u, nil
	case u.Scheme == "https":
		return nil, errNear
	}
	return nil, errors.New("it is not of https")
}
