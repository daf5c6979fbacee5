// Package docker drives dockerd over its API, through docker's own client. It decides no policy: what a container may use is in
// the runtime.Spec; what every container is denied is in spec.go and can't be asked for.
//
// The engine is found as docker's command line finds it: DOCKER_HOST, the current context, then the sockets where a rootless
// docker, Docker Desktop and its like, and at last a rootful docker listen. Podman's docker-compatible socket works too.
package docker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// Config is how docker is found and what is asked of it. The zero value looks everywhere.
type Config struct {
	// Endpoint is the URL of the API: unix, tcp, http, https, npipe, or ssh, which runs docker's own relay on the other side.
	// Empty: what DOCKER_HOST, DOCKER_CONTEXT and docker's configuration say, then the usual sockets.
	Endpoint     string
	Setting      string // the variable that Endpoint is from, for hints
	AllowRootful bool   // use a docker that runs as root too
	RuntimeDir   string // XDG_RUNTIME_DIR; empty for none
	Hardening    runtime.Hardening
	Guard        guard.Groups // told of the ssh processes of an ssh endpoint; may be nil
	Log          *slog.Logger
}

// cleanup bounds each thing that has to be done after a run whatever became of its context: kill, ask how it ended, remove.
const cleanup = 10 * time.Second

// Driver is docker as a runtime.Driver. It is safe for concurrent use.
type Driver struct {
	cfg      Config
	settings settings
	log      *slog.Logger
	cleanup  time.Duration
	retry    time.Duration

	background sync.WaitGroup  // requests that nobody waits for any more
	open       context.Context //nolint:containedctx // ends with Close; for what background does
	shut       context.CancelFunc
	relays     relays

	connected chan struct{} // has room for one: a connection was made since what is owed was tried last

	mu      sync.Mutex
	conn    *connection
	dialing *attempt
	closed  bool
	warned  map[string]bool   // what the engine warned of and is in the log already
	owed    map[string]string // containers that could not be removed, by id or name, and their engine's endpoint
}

var (
	_ runtime.Driver        = (*Driver)(nil)
	_ runtime.ImageImporter = (*Driver)(nil)
)

// New reads docker's variables and touches nothing else yet; the engine is looked for at first use.
func New(cfg Config) *Driver {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Driver{cfg: cfg, settings: readSettings(), log: log, cleanup: cleanup, retry: retry, warned: map[string]bool{}, connected: make(chan struct{}, 1)}
	d.open, d.shut = context.WithCancel(context.Background())
	return d
}

// Name is "docker".
func (d *Driver) Name() string { return "docker" }

// Close ends the connections and the ssh processes behind them. Containers of runs under way must be gone before.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	c := d.conn
	d.conn = nil
	d.mu.Unlock()
	d.shut()
	d.background.Wait()
	if c != nil {
		_ = c.cli.Close()
	}
	d.relays.close()
	return nil
}

// warn puts what the engine says of a container into the log, once for each text.
func (d *Driver) warn(warnings []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range warnings {
		if !d.warned[w] {
			d.warned[w] = true
			d.log.Warn("docker left something out of a container's limits", "says", w)
		}
	}
}

var errClosed = errors.New("the driver is closed")

func (d *Driver) unavailable(endpoint string, err error, next string) *runtime.UnavailableError {
	return &runtime.UnavailableError{Engine: "docker", Endpoint: runtime.Redacted(endpoint), Err: err, Next: next}
}
