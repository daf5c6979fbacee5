package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// looksOut prints which sockets of the internet code can open, and which interfaces it has beside
// lo.
const looksOut = `import os, socket
for name in ("AF_INET", "AF_INET6"):
    try:
        socket.socket(getattr(socket, name)).close()
        print("socket", name)
    except OSError:
        pass
for name in os.listdir("/sys/class/net"):
    if name != "lo":
        print("interface", name)
`

const guestsFilter = "the guest's own filter"

// networkRow returns what it means that looksOut has printed that.
func networkRow(printed string) row {
	found := map[string][]string{}
	for line := range strings.Lines(printed) {
		if what, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[what] = append(found[what], name)
		}
	}
	sockets, interfaces := strings.Join(found["socket"], ", "), strings.Join(found["interface"], ", ")
	const check = "network"
	switch {
	case sockets == "":
		return row{check, fine, "code could open no socket of the internet", guestsFilter + " denies it", ""}
	case interfaces == "":
		return row{check, fine, "a pod has no interface but lo", "code reaches nothing outside its pod", ""}
	}
	return row{check, toKnow, "code could open sockets of " + sockets + " beside " + interfaces,
		"only a NetworkPolicy stands between code and what the cluster's pods reach",
		"use an image whose Python has ctypes, on x86_64 or aarch64"}
}

// network makes the rows of the two walls between code and the network that a pod has. Each is
// tried from inside.
func (d *doctor) network(ctx context.Context, image runtime.Image) {
	r, err := d.bridge.RunDirect(ctx, bridge.Direct{Code: looksOut, Servers: []string{}, Progress: d.progress})
	switch {
	case err == nil && r.Result.Status == sandbox.StatusOK:
		n := networkRow(r.Result.Stdout())
		d.say(n.Status, n.Check, n.Found, n.Means, n.Fix)
	case err == nil:
		err = fmt.Errorf("%s: %s %s", r.Result.Status, r.Result.Message, r.Result.Stderr())
		fallthrough
	default:
		d.say(toKnow, "network", "code could not look at it: "+err.Error(), "a NetworkPolicy may be all there is",
			"run it again")
	}
	const policy = "NetworkPolicy"
	reached, err := d.driver.Reaches(ctx, image.ID)
	switch {
	case err != nil:
		d.say(toKnow, policy, "a pod without the guest could not try: "+err.Error(),
			guestsFilter+" may be all that keeps code from the network", "run it again")
	case reached:
		d.say(
			toKnow,
			policy,
			"a pod without the guest reached the API server: this cluster's network keeps none, or "+
				"none is there",
			"only "+guestsFilter+" keeps code from the network",
			"kubectl apply -k packaging/kubernetes, in a cluster whose network keeps policies",
		)
	default:
		d.say(fine, policy, "holds: a pod without the guest could not reach the API server",
			"what was tried is kept from code also without "+guestsFilter, "")
	}
}
