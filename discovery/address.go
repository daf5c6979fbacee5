package discovery

import (
	"net"
	"net/url"
	"strings"
)

// OriginOf returns scheme, host and port of a URL (RFC 6454), to be compared.
func OriginOf(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + effectivePort(u)
}

// effectivePort returns a URL's port, that of its scheme where it names none.
func effectivePort(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
}

// Loopback reports whether a URL is of this machine, by the name localhost or an address of the
// loopback network.
func Loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(strings.TrimSuffix(u.Hostname(), "."), "localhost") || ip != nil &&
		ip.IsLoopback()
}

// Confidential reports whether what is sent to a URL is of https, or doesn't leave this machine.
func Confidential(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, "https") || Loopback(u)
}

// OnThisMachine reports whether a URL names this machine, as containers and every address of the
// loopback network do too. A name of another kind may lead here all the same.
func OnThisMachine(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "host.docker.internal" ||
		host == "host.containers.internal" {
		return true
	}
	ip := net.ParseIP(strings.Split(host, "%")[0])
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
