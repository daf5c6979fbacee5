//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"sync"

	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// connection is a cluster, and what this bridge has there.
type connection struct {
	*cluster
	pods   *pods
	claims *claims // nil for a cluster without agent-sandbox
	images *nodeImages

	mu      sync.Mutex
	streams map[string]*stream // attached, and not started yet; by pod
}

// Rates of requests to the API server: some for each pod that starts. A server that has less to
// give answers 429 and says when to come back, which client-go does. Pings and the renewals of
// leases, one in ten seconds, don't wait for their turn: late ones would cost a connection and its
// pods.
const (
	requestsASecond = 50
	requestsAtOnce  = 100
)

// look finds the cluster and what may be done there.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: d.cfg.Context})
	cfg, err := config.ClientConfig()
	if err != nil {
		return nil, d.Unavailable("", fmt.Errorf("its kubeconfig can't be used: %w", err),
			"check it with: kubectl config get-contexts; name one with MCP_BRIDGE_RUNTIME=kubernetes:CONTEXT")
	}
	namespace := d.cfg.Namespace
	if namespace == "" {
		if namespace, _, err = config.Namespace(); err != nil {
			return nil, d.Unavailable(cfg.Host, err, "name one: MCP_BRIDGE_RUNTIME=kubernetes:CONTEXT/NAMESPACE")
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = requestsASecond, requestsAtOnce, "mcp-bridge"
	cli, err := client.NewForConfig(cfg)
	if err != nil {
		return nil, d.Unavailable(cfg.Host, err, "check the cluster's entry in the kubeconfig")
	}
	unlimited := rest.CopyConfig(cfg)
	unlimited.QPS = -1
	direct, err := client.NewForConfig(unlimited)
	if err != nil {
		return nil, d.Unavailable(cfg.Host, err, "check the cluster's entry in the kubeconfig")
	}
	in := &cluster{d: d, cli: cli, direct: direct, cfg: cfg, namespace: namespace}
	if err := in.ask(ctx); err != nil {
		return nil, err
	}
	claims, err := findClaims(ctx, in)
	if err != nil {
		return nil, err
	}
	c := &connection{cluster: in, pods: watchPods(in), claims: claims, streams: map[string]*stream{}}
	c.images = &nodeImages{c: c, known: map[string]runtime.Image{}}
	d.leases.start.Do(func() { d.Go(d.leases.keep) })
	return c, nil
}

// Close implements engine.Client. Runs that are under way hear of their pods until they have ended.
func (c *connection) Close() {
	c.pods.drain(c.d.Life())
	c.pods.end()
}

// Images implements engine.Client.
func (c *connection) Images() engine.Images { return c.images }
