//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// tries is what a pod without our guest does, with the labels that the NetworkPolicy is about: it
// connects to the API server, which every pod can where no policy keeps it. Some networks begin to
// keep a policy, or to carry anything, a moment after a pod's start: what the last of three tries
// within two seconds says counts. Some refuse what a policy denies.
const tries = `import os, socket, sys, time
code = 3
for again in range(3):
    time.sleep(again and 1)
    try:
        to = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
        socket.create_connection(to, 3).close()
        code = 4
    except OSError:
        code = 3
sys.exit(code)
`

// Exit codes of tries.
const (
	reachedNothing = 3
	reachedServer  = 4
)

// tryTime bounds what tries does once it runs.
const tryTime = 20 * time.Second

// Reaches reports whether the cluster's network lets a pod of ours connect to the API server. The
// guest's own filter would keep code from that, and is not in this pod.
func (d *Driver) Reaches(ctx context.Context, image string) (reached bool, err error) {
	c, err := d.Connect(ctx)
	if err != nil {
		return false, err
	}
	change := func(p *corev1.Pod) {
		p.Spec.Containers[0].Command = []string{"python3", "-I", "-B", "-c", tries}
		p.Spec.Containers[0].Args = nil
	}
	var exit runtime.Exit
	ended := func(p *corev1.Pod, gone bool) (ok bool, err error) {
		if exit, ok, err = exitOf(p); ok || err != nil {
			return ok, err
		}
		_, err = running(p, gone)
		return false, err
	}
	err = c.withPod(ctx, image, change, d.times.start+tryTime, ended, nil)
	switch {
	case err != nil:
		return false, d.Engine.Lost(c, err)
	case exit.Code != reachedNothing && exit.Code != reachedServer:
		return false, fmt.Errorf("a pod that tries its network ended with code %d", exit.Code)
	}
	return exit.Code == reachedServer, nil
}
