package main

import (
	"context"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// opensSockets prints which families of the internet code can open a socket of.
const opensSockets = `import socket
for name in ("AF_INET", "AF_INET6"):
    try:
        socket.socket(getattr(socket, name)).close()
        print(name)
    except OSError:
        pass
`

// network makes the rows of the two walls between code and the network that a pod has. Each is
// tried from inside.
func (d *doctor) network(ctx context.Context, image runtime.Image) {
	const check, filter = "network", "the guest's own filter"
	r, err := d.bridge.RunDirect(ctx, bridge.Direct{Code: opensSockets, Servers: []string{}, Progress: d.progress})
	switch opened := ""; {
	case err != nil:
		d.trouble(check, err, "whether code can open a socket isn't known")
	case r.Result.Status != sandbox.StatusOK:
		d.say(toKnow, check, string(r.Result.Status)+": "+r.Result.Message,
			"whether code can open a socket isn't known", "run it again")
	default:
		if opened = strings.Join(strings.Fields(r.Result.Stdout()), ", "); opened == "" {
			d.say(fine, check, "code could open no socket of the internet", filter+" denies it", "")
			break
		}
		d.say(toKnow, check, "code could open sockets of "+opened,
			"only a NetworkPolicy stands between code and what the cluster's pods reach",
			"use an image whose Python has ctypes, on x86_64 or aarch64")
	}
	const policy = "NetworkPolicy"
	reached, err := d.driver.Reaches(ctx, image.ID)
	switch {
	case err != nil:
		d.say(toKnow, policy, "a pod without the guest could not try: "+err.Error(),
			filter+" may be all that keeps code from the network", "run it again")
	case reached:
		d.say(toKnow, policy, "a pod without the guest reached the API server: this cluster's network keeps none, or "+
			"none is there", "only "+filter+" keeps code from the network",
			"kubectl apply -k packaging/kubernetes, in a cluster whose network keeps policies")
	default:
		d.say(fine, policy, "holds: a pod without the guest could not reach the API server",
			"code reaches nothing, also without "+filter, "")
	}
}
