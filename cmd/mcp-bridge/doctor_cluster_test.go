package main

import "testing"

// TestNetworkRow: what code finds in a pod is said as what stands between it and the network.
func TestNetworkRow(t *testing.T) {
	for _, tt := range []struct {
		printed string
		want    row
	}{
		{"interface eth0\n", row{"network", fine, "no socket of the internet", "the guest's own filter", ""}},
		{"socket AF_INET\nsocket AF_INET6\n", row{"network", fine, "no interface but lo", "reaches nothing", ""}},
		{"socket AF_INET\ninterface eth0\n", row{"network", toKnow, "sockets of AF_INET beside eth0",
			"only a NetworkPolicy", "ctypes"}},
	} {
		if got := networkRow(tt.printed); !find([]row{got}, tt.want) {
			t.Errorf("%q: got %+v", tt.printed, got)
		}
	}
}
