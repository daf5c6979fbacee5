package runtime

import "net/netip"

// Loopback reports whether a host is this machine without asking anybody: names are taken for what
// they say only if no name server is needed for it.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
