// Package docker drives dockerd over its API, through docker's own client. It decides no policy:
// what a container may use is in the runtime.Spec; what every container is denied is in spec.go,
// and can't be asked for.
//
// The engine is found as docker's command line finds it: DOCKER_HOST, the current context, then the
// sockets where a rootless docker, Docker Desktop and its like, and at last a rootful docker
// listen. Podman's imitation of this API is refused: podman has a driver of its own.
package docker

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// Config is how docker is found and what is asked of it. The zero value looks everywhere.
type Config struct {
	// Endpoint is the URL of the API: unix, tcp, http, https, npipe, or ssh, which runs docker's own
	// relay on the other side. Empty: what DOCKER_HOST, DOCKER_CONTEXT and docker's configuration
	// say, then the usual sockets.
	Endpoint     string
	Setting      string // the variable that Endpoint is from, for hints
	AllowRootful bool   // use a docker that runs as root too
	RuntimeDir   string // XDG_RUNTIME_DIR; empty for none
	Hardening    runtime.Hardening
	Guard        guard.Groups // told of the ssh processes of an ssh endpoint; may be nil
	Log          *slog.Logger // nil means silence
}

// Driver is docker as a runtime.Driver. It is safe for concurrent use.
type Driver struct {
	*engine.Engine[*connection]

	cfg      Config
	settings settings
	log      *slog.Logger
	relays   engine.Relays

	mu     sync.Mutex
	warned map[string]bool // what the engine warned of and is in the log already
}

var (
	_ runtime.Driver        = (*Driver)(nil)
	_ runtime.ImageImporter = (*Driver)(nil)
	_ engine.Client         = (*connection)(nil)
)

// New reads docker's variables and touches nothing else yet. The engine is looked for at first use.
func New(cfg Config) *Driver {
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	d := &Driver{cfg: cfg, settings: readSettings(), log: log, warned: map[string]bool{}}
	d.Engine = engine.New(engine.Config[*connection]{
		Name:  "docker",
		Times: engine.Times{Cleanup: 10 * time.Second, Silence: 10 * time.Second, Retry: 2 * time.Second},
		Log:   log,
		Look:  d.look,
	})
	return d
}

// Close ends the connections and the ssh processes behind them. Containers of runs under way must
// be gone before.
func (d *Driver) Close() error {
	err := d.Engine.Close()
	d.relays.Close()
	return err
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
