package discovery

import (
	"net"
	"net/url"
	"strings"
)

// OriginOf is scheme, host and port of a URL (RFC 6454), to be compared.
func OriginOf(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + effectivePort(u)
}

// effectivePort is a URL's port, that of its scheme where it names none.
func effectivePort(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}

// Loopback says whether a URL is of this machine, by the name localhost or an address of the loopback network.
func Loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), "localhost") || ip != nil && ip.IsLoopback()
}

// Confidential says whether nobody on the way can read what is sent to a URL: it is of https, or doesn't leave this machine.
func Confidential(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, "https") || Loopback(u)
}

// OnThisMachine says whether a URL names this machine, as containers and every address of the loopback network do too. A name of another
// kind may lead here all the same.
func OnThisMachine(u *url.URL) bool {
	return isLocal(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}
