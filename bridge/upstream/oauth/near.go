package oauth

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

var errNear = errors.New("it is on this machine or its link, and the server isn't")

// numeric are names that some resolvers read as an address of IPv4: the last label is a number (URL Standard, 3.5).
var numeric = regexp.MustCompile(`(^|\.)(0[xX][0-9a-fA-F]*|[0-9]+)\.?$`)

// isNear says whether a URL is of this machine or its link by its name. A name that doesn't tell is judged as it is dialed.
func isNear(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return nearAddress(a)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || numeric.MatchString(host)
}

// nearAddress says whether an address is of this machine or of its link, where clouds tell machines their secrets. Those of a private
// network are not: a company's authorization server may well have one.
func nearAddress(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast()
}

// mustBeFar reports whether a request in a login to a server must not reach this machine or its
// link. What a server elsewhere names must be elsewhere too, whatever a resolver says of it; the
// server's own host the user has named. A proxy resolves names itself.
func mustBeFar(req *http.Request, server *url.URL) bool {
	proxy, err := http.ProxyFromEnvironment(req)
	return err == nil && proxy == nil && !isNear(server) && !strings.EqualFold(req.URL.Hostname(), server.Hostname())
}

// refuseNear refuses a connection to this machine or its link. It is a net.Dialer's Control.
func refuseNear(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || nearAddress(to.Addr()) {
		return errNear
	}
	return nil
}

// endpoint is an address that a login may use: of https, or of http where it and the server are on this machine. What a server
// elsewhere names could otherwise be made to reach into this machine.
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
