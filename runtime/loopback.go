package runtime

import "net/netip"

// Loopback says whether a host is this machine without anybody being asked: names are taken for
// what they say only if no name server is needed for it.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
