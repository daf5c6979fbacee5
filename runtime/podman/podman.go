// Package podman drives podman over its API socket, through podman's own bindings. It decides no
// policy: what a container may use is in the runtime.Spec; what every container is denied is in
// spec.go, and can't be asked for.
//
// Where no API service listens and there is a podman binary, the driver starts one as its own
// child, on a socket in a private directory, and ends it with Close. Another machine's engine is
// reached over ssh, by a child as well.
package podman

import (
	"cmp"
	"context"
	"log/slog"
	goruntime "runtime"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// Guard is told what must not outlive this process even if it is killed. Both methods return what
// to call once the thing is gone in the ordinary way.
type Guard interface {
	Group(pgid int) (forget func())
	File(path string) (forget func())
}

// Config is how podman is found, and what it adds to every container. The zero value looks
// everywhere and adds nothing.
type Config struct {
	Endpoint     string // URL of the API, such as CONTAINER_HOST; empty: look for it
	Setting      string // the variable that Endpoint is from, for hints; empty means CONTAINER_HOST
	SSHKey       string // CONTAINER_SSHKEY: the key file for ssh; empty: as ssh's own settings say
	TLS          TLS    // for a tcp endpoint
	AllowRootful bool   // use a rootful podman too
	Hardening    runtime.Hardening
	IdleTimeout  time.Duration // after which a podman machine that we started is stopped; 0 means never
	RuntimeDir   string        // XDG_RUNTIME_DIR; empty for none
	Binary       string        // podman's own program; empty means "podman" on the PATH
	Guard        Guard         // may be nil
	Log          *slog.Logger  // nil means silence
}

// TLS names the PEM files for a tcp endpoint. Without CA there is no TLS, and then only this
// machine's own addresses are used.
type TLS struct {
	CA        string // of the server
	Cert, Key string // our own; both or neither
}

// Driver is podman as a runtime.Driver and a runtime.Starter. It is safe for concurrent use.
type Driver struct {
	*engine.Engine[*connection]

	cfg     Config
	log     *slog.Logger
	client  bool // podman's program is a client only here, whose engine is always elsewhere
	program *program
	service *service
	machine *machine
	profile profile
	shared  atomic.Bool // the engine has refused a user namespace for each container
}

var (
	_ runtime.Driver        = (*Driver)(nil)
	_ runtime.Starter       = (*Driver)(nil)
	_ runtime.ImageImporter = (*Driver)(nil)
)

// New looks at whose XDG_RUNTIME_DIR is, and touches nothing yet. The engine is looked for at first
// use.
func New(cfg Config) *Driver {
	cfg.Binary = cmp.Or(cfg.Binary, "podman")
	cfg.Setting = cmp.Or(cfg.Setting, "CONTAINER_HOST")
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	quiet()
	d := &Driver{cfg: cfg, log: log, client: goruntime.GOOS != "linux", program: newProgram(cfg, log)}
	d.service = &service{program: d.program, oci: cfg.Hardening.OCIRuntime, rootful: cfg.AllowRootful}
	d.machine = &machine{d: d, turn: make(chan struct{}, 1)}
	d.Engine = engine.New(engine.Config[*connection]{
		Name:      "podman",
		Times:     engine.Times{Cleanup: 8 * time.Second, Silence: 3 * time.Second, Retry: 2 * time.Second},
		Log:       log,
		Look:      d.look,
		Use:       d.machine.awake,
		Explain:   d.explain,
		Unsettled: d.unsettled,
	})
	return d
}

// Start implements runtime.Starter: podman machine start.
func (d *Driver) Start(ctx context.Context, p runtime.Progress) error { return d.machine.start(ctx, p) }

// Close ends what the driver has started: the service, a tunnel, a machine. Containers of runs
// under way must be gone before.
func (d *Driver) Close() error {
	c := d.Shut()
	err := d.machine.leave()
	if c != nil {
		c.Close()
	}
	d.service.stop()
	d.profile.remove()
	return err
}
