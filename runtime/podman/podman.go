// Package podman drives podman over its API socket, through podman's own bindings. It decides no policy: what a container
// may use is in the runtime.Spec; what every container is denied is in spec.go and can't be asked for.
//
// Where no API service listens and there is a podman binary, the driver starts one as its own child, on a socket in a
// private directory, and ends it with Close.
package podman

import (
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Guard is told what must not outlive this process even if it is killed. Both methods return what to call once the thing is
// gone in the ordinary way.
type Guard interface {
	Group(pgid int) (forget func())
	File(path string) (forget func())
}

// Config is how podman is found. The zero value looks everywhere.
type Config struct {
	Endpoint     string // URL of the API, such as CONTAINER_HOST; empty: look for it
	AllowRootful bool   // use a rootful podman too
	RuntimeDir   string // XDG_RUNTIME_DIR; empty for none
	Binary       string // podman's own program; empty means "podman" on the PATH
	Guard        Guard  // may be nil
	Log          *slog.Logger
}

// cleanup bounds each thing that has to be done after a run whatever became of its context: kill, ask how it ended, remove.
const cleanup = 10 * time.Second

// Driver is podman as a runtime.Driver. It is safe for concurrent use.
type Driver struct {
	cfg     Config
	log     *slog.Logger
	cleanup time.Duration

	background sync.WaitGroup // requests that were given up and have not returned yet

	dialing sync.Mutex // held while connecting, so that many waiters make one attempt

	mu      sync.Mutex
	conn    *connection
	service *service
	closed  bool
}

var _ runtime.Driver = (*Driver)(nil)

// New touches nothing yet; the engine is looked for at first use.
func New(cfg Config) *Driver {
	if cfg.Binary == "" {
		cfg.Binary = "podman"
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	quiet()
	return &Driver{cfg: cfg, log: log, cleanup: cleanup}
}

// Name is "podman".
func (d *Driver) Name() string { return "podman" }

func (d *Driver) unavailable(endpoint string, err error, next string) *runtime.UnavailableError {
	return &runtime.UnavailableError{Engine: "podman", Endpoint: redact(endpoint), Err: err, Next: next}
}

// redact keeps a password in a URL out of errors and logs.
func redact(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
