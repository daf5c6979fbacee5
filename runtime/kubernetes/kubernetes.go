//go:build kubernetes

// Package kubernetes drives a cluster through its API server, with client-go. A container is a pod
// with one container, one attached stream for its life, and no second use. It decides no policy:
// what a pod may use is in the runtime.Spec; what every pod is denied is in spec.go, and can't be
// asked for.
//
// The cluster is that of a kubeconfig's context, or the one that this process runs in. Pods are on
// machines of which the API tells nothing, so their owner is told alive by a Lease; see lease.go.
//
// It is built with the tag kubernetes only: client-go doubles the program.
package kubernetes

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// Config is which cluster is used, and what is asked of it.
type Config struct {
	Context   string // of the kubeconfig; empty for its current one, or the cluster around this process
	Namespace string // empty for the context's
	Hardening runtime.Hardening
	Log       *slog.Logger // nil means silence
}

// Driver is a namespace of a cluster as a runtime.Driver. It is safe for concurrent use.
type Driver struct {
	*engine.Engine[*connection]

	cfg    Config
	log    *slog.Logger
	self   runtime.Owner // of the pods that find out about an image
	times  times
	leases *leases
	// the nodes have refused a user namespace to a pod, which then shares the node's
	sharedUsers  atomic.Bool
	ownUsersWork atomic.Bool // a pod has had one
}

// times bound what the cluster is given time for. Tests shorten them.
type times struct {
	start time.Duration // from a pod's creation until its container runs
	users time.Duration // the same of the first pod with a user namespace, which not every node gives
	pull  time.Duration // the same where an image may have to be pulled first
	renew time.Duration // from one renewal of a lease to the next
	lease time.Duration // after which a bridge that hasn't renewed its lease is dead
	force time.Duration // after which a pod that doesn't end is taken from the API without its node's word
	// by its holder's clock; a lease this old is over at first sight: clocks are wrong by minutes
	settled time.Duration
}

var (
	_ runtime.Driver = (*Driver)(nil)
	_ engine.Client  = (*connection)(nil)
)

// quiet stops what client-go logs for the process: what matters comes back as errors.
var quiet = sync.OnceFunc(func() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) })

// New touches nothing yet. The cluster is looked for at first use.
func New(cfg Config) *Driver {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	quiet()
	d := &Driver{cfg: cfg, log: log, self: runtime.Self(), times: times{
		start: 25 * time.Second, users: 8 * time.Second, pull: 10 * time.Minute, renew: 10 * time.Second,
		lease: 40 * time.Second,
		force: 30 * time.Second, settled: 24 * time.Hour,
	}}
	d.Engine = engine.New(engine.Config[*connection]{
		Name:  "kubernetes",
		Times: engine.Times{Cleanup: 20 * time.Second, Silence: 10 * time.Second, Retry: 2 * time.Second},
		Log:   log,
		Look:  d.look,
	})
	d.leases = newLeases(d)
	return d
}

// Lost returns why no code is run until the API server is back: it has not renewed this bridge's
// lease for as long as that lasts. It is nil otherwise, and asks nothing.
func (d *Driver) Lost() error {
	err := d.leases.lost()
	if err == nil {
		return nil
	}
	endpoint := ""
	if c, ok := d.Current(); ok {
		endpoint = c.facts.Endpoint
	}
	return d.Unavailable(endpoint, err, "check that the cluster is up: kubectl cluster-info")
}

// Close ends the connection and the leases of this bridge. Containers of runs under way must be
// gone before.
func (d *Driver) Close() error {
	if c := d.Shut(); c != nil {
		c.claims.release()
		d.leases.release(c.cluster)
		c.pods.end()
	}
	return nil
}
