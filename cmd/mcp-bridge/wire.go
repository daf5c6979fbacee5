package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/telemetry"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/console"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/startup"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/watch"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds that no setting changes.
const (
	fileLimit    = 16 << 20 // bytes of the files that a run hands over
	maxCalls     = 10_000   // tool calls of a run
	startTimeout = 30 * time.Second
	offClock     = 5 * time.Minute // for people who answer, and servers that start, in the course of one run
	noFile       = 1024            // descriptors of a process in a container
	shmSize      = 32 << 20        // bytes of /dev/shm

	// softMemory is the heap size, in bytes, above which garbage collection becomes aggressive:
	// unread tool results could otherwise double the heap. It is above what all runs together may
	// hold.
	softMemory = 768 << 20
)

// boundGarbage sets softMemory, unless the user has set a limit.
func boundGarbage() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
}

// parts are the wired program. Nothing in it has been started.
type parts struct {
	cfg      settings.Settings
	log      *slog.Logger
	catalog  discovery.Catalog // what is configured now; while serving, guarded by changes
	instance string            // of this process, at random
	watcher  *watch.Watcher    // nil where nothing is followed
	guard    *guard.Guard
	driver   *detect.Driver
	sandbox  *sandbox.Sandbox
	lasting  *sandboxes.Registry // nil where none are kept
	console  console.Socket
	chooser  *packages.Chooser
	tools    *catalog.Store
	pool     *upstream.Pool
	bridge   *bridge.Bridge

	approvals  *approvals.Approvals
	changes    sync.Mutex        // one at a time is carried out
	configured discovery.Catalog // as it was found
	following  bool
	onlyListed bool // only servers of files that MCP_BRIDGE_CONFIG names are used

	policy    *policy.Policy
	waiting   []*policy.Policy // for the user's yes; only what is stricter in them counts
	broken    error            // why there is no policy
	telemetry *telemetry.Telemetry
}

// purpose is what the parts are wired for.
type purpose int

const (
	once      purpose = iota // a command that ends by itself
	serving                  // calls of a client, until it goes
	listening                // calls of all who connect over HTTP
)

// serves reports whether calls come from clients.
func (w purpose) serves() bool { return w != once }

// usual returns the level to log from, unless the user chose another.
func (w purpose) usual() slog.Level {
	if w.serves() {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// replica returns the bridge's name among those behind one URL. A client of stdio has but one.
func (w purpose) replica(c settings.Settings) bridge.Replica {
	if w != listening {
		return ""
	}
	return c.Replica
}

// wire makes all parts, which log to stderr. Close ends them.
func wire(stderr io.Writer, what purpose) (*parts, error) {
	boundGarbage()
	cfg, err := settings.Read()
	if err != nil {
		return nil, err
	}
	p := &parts{cfg: cfg, log: cfg.Logger(stderr, what.usual()), instance: rand.Text()}
	p.search(what)
	p.policy, p.broken = cfg.ReadPolicy()
	start := newGuard
	if what == once {
		start = startWatchdog
	}
	if p.guard, err = start(p.log); err != nil {
		return nil, err
	}
	p.admit(what)
	if p.driver, err = newDriver(cfg, p.guard, p.log); err == nil {
		err = p.assemble(what)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// newGuard returns a guard whose watchdog is this program. It is not started yet.
func newGuard(log *slog.Logger) (*guard.Guard, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return guard.New(guard.Config{Argv: []string{exe, watchdogName}, Env: reapEnviron(), Log: log})
}

// startWatchdog starts it too.
func startWatchdog(log *slog.Logger) (*guard.Guard, error) {
	g, err := newGuard(log)
	if err == nil {
		err = g.Begin()
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// guarded starts the watchdog before there is anything to guard but servers and services, which do
// so themselves: not before the client's first call, since it takes as long as all that the answer
// to initialize needs.
type guarded struct {
	*sandbox.Sandbox
	guard     *guard.Guard
	approvals *approvals.Approvals // nil for doctor's, whose run is of no code but its own
}

// Run implements bridge.Runner. No run begins without a watchdog, except doctor's, which has said
// that there isn't one.
func (g guarded) Run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
	if err := g.begin(); err != nil {
		return sandbox.Result{}, err
	}
	return g.Sandbox.Run(ctx, r, h)
}

// begin is called before any code runs.
func (g guarded) begin() error {
	if g.guard != nil {
		if err := g.guard.Begin(); err != nil {
			return err
		}
	}
	if g.approvals != nil {
		g.approvals.Begin()
	}
	return nil
}

func (p *parts) sandboxConfig(what purpose) sandbox.Config {
	c := p.cfg
	standby := 0
	if what.serves() {
		standby = c.Standbys()
	}
	return sandbox.Config{
		Images: c.Images(),
		Pull:   sandbox.PullPolicy(c.Pull),
		User:   c.ContainerUser,
		Limits: runtime.Limits{Memory: int64(c.Memory), PIDs: c.PIDs, CPUs: c.CPUs,
			NoFile: startup.OpenFiles(noFile), Shm: shmSize},
		Owner:         runtime.Self(),
		OutputLimit:   settings.MostOutput,
		ArtifactLimit: fileLimit,
		MaxCalls:      maxCalls,
		MaxRuns:       c.MaxRuns(),
		Queue:         c.Queue,
		QueueTimeout:  time.Duration(c.QueueTimeout),
		MaxContainers: c.MaxContainers(p.most(what)) + standby,
		Standby:       standby,
		StandbyIdle:   idle(c.RuntimeIdleTimeout),
		StartTimeout:  startTimeout,
		Patience:      offClock,
		MaxTimeout:    time.Duration(c.MaxTimeout),
		Log:           p.log,
	}
}

func (p *parts) poolConfig() upstream.Config {
	return upstream.Config{
		Servers: p.catalog.Servers, Guard: p.guard, Logins: logins(), Secret: secretValue, Log: p.log,
		ClientVersion: version(), Instance: p.instance, MaxLine: entrypoint.MaxFrame,
		StartTimeout: time.Duration(p.cfg.UpstreamStart), IdleTimeout: idle(p.cfg.UpstreamIdle),
		Listed: p.keep, Refuse: p.refuse,
	}
}

// idle returns a timeout of which 0 means never.
func idle(s settings.Seconds) time.Duration {
	if s == 0 {
		return math.MaxInt64
	}
	return time.Duration(s)
}

func (p *parts) assemble(what purpose) (err error) {
	c := p.cfg
	p.sandbox, err = sandbox.New(p.driver, p.sandboxConfig(what))
	if err != nil {
		return err
	}
	p.telemetry = startTelemetry(p.log)
	record, err := c.OpenAudit(what.serves(), p.log)
	if err != nil {
		return err
	}
	var kept *files.Store
	var inputs *files.Inputs
	if what.serves() { // run has --artifacts, and the user's files as code
		if kept, err = c.OpenArtifacts(p.log); err != nil {
			return err
		}
		if inputs, err = c.OpenInputs(); err != nil {
			return err
		}
	}
	state, offered := "", []string(nil)
	if what.serves() {
		state, offered = c.State, c.Tools
	}
	p.chooser = p.packages()
	if p.lasting, err = p.sandboxes(what); err != nil {
		return err
	}
	p.tools = openTools()
	p.pool = upstream.NewPool(p.poolConfig())
	p.bridge, err = bridge.New(bridge.Config{
		Runner:      guarded{p.sandbox, p.guard, p.approvals},
		Upstreams:   p.pool,
		Tools:       p.tools,
		Servers:     p.catalog.Servers,
		Problems:    p.catalog.Problems,
		Approvals:   approving(p.approvals),
		Policy:      p.policy,
		PolicyError: p.broken,
		Grants:      p.grants(),
		Login:       loginByPage,
		Files:       kept,
		Inputs:      inputs,
		Packages:    p.chooser,
		Sandboxes:   p.lasting,
		State:       state,
		Offer:       offered,
		Audit:       record,
		Traces:      p.telemetry.Traces,
		Metrics:     p.telemetry.Metrics,
		Timeout:     time.Duration(c.Timeout),
		MaxTimeout:  time.Duration(c.MaxTimeout),
		Output:      int64(c.Output),
		OutputMode:  c.OutputMode,
		ShareRoots:  c.UpstreamRoots == "client",
		Version:     version(),
		Replica:     what.replica(c),
		Instance:    p.instance,
		Log:         p.log,
	})
	return err
}

// hurry is how long ending may take after SIGINT where the watchdog can do the rest: Claude Code
// sends SIGTERM after 100 ms, and logs a failure.
const hurry = 25 * time.Millisecond

// end ends everything, or after SIGINT in ctx what it can in a hurry. All runs and calls are over
// and recorded before.
func (p *parts) end(ctx context.Context) error {
	if !interrupted(ctx) || !p.guard.Watched() {
		return p.close()
	}
	patience := hurry
	if p.lasting.Hibernates() {
		patience = sandboxes.SaveAtEnd // a second signal ends it at once
	}
	ended := make(chan error, 1)
	go func() { ended <- p.close() }() // not waited for when it takes too long: the process ends
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return nil
	}
}

// close ends everything: runs, servers and telemetry at the same time, then the engine's service,
// then the watchdog.
func (p *parts) close() error {
	var work sync.WaitGroup
	var runs, servers, engine, watchdog error
	if p.sandbox != nil {
		work.Go(func() {
			if p.lasting != nil { // which ends what a person runs in a sandbox, too
				p.lasting.Close()
			}
			p.console.Close()
			runs = p.sandbox.Close()
		})
	}
	if p.pool != nil {
		work.Go(func() { servers = p.pool.Close() })
	}
	work.Go(p.chooser.Close)
	work.Go(func() { closeTelemetry(p.telemetry, p.log) })
	work.Wait()
	if p.driver != nil {
		engine = p.driver.Close()
	}
	if p.approvals != nil { // when nothing is left that could write into the record
		if err := p.approvals.Close(); err != nil {
			p.log.Warn("what is known of approved servers can't be kept: you may be asked about them again",
				"err", err)
		}
	}
	if p.guard != nil {
		watchdog = p.guard.Close()
	}
	return errors.Join(runs, servers, engine, watchdog)
}

// startTelemetry begins to export what the OTEL_* variables ask for. A mistake in them is logged.
func startTelemetry(log *slog.Logger) *telemetry.Telemetry {
	t, err := telemetry.Start(context.Background(),
		telemetry.Config{Name: bridge.Name, Version: version(), Getenv: os.Getenv, Log: log})
	if err != nil {
		log.Warn("no traces and metrics are exported", "err", err)
	}
	return t
}

// closeTelemetry sends what is left. A collector that isn't there is no failure of the program.
func closeTelemetry(t *telemetry.Telemetry, log *slog.Logger) {
	if t == nil {
		return
	}
	if err := t.Close(context.Background()); err != nil {
		log.Warn("the last traces or metrics were not sent", "err", err)
	}
}

// scan finds the configured servers that may be started.
func scan(cfg settings.Settings, log *slog.Logger) discovery.Catalog {
	a := approvals.New(approvalsConfig(log))
	return withoutHeld(a.Update(findServers(cfg)), a)
}

// approving avoids an interface that holds nil.
func approving(a *approvals.Approvals) elicit.Approvals {
	if a == nil {
		return nil
	}
	return a
}

// findServers finds the configured servers. A bridge that another bridge started finds none, or the
// two would call each other.
func findServers(cfg settings.Settings) discovery.Catalog {
	if nested() {
		return discovery.Catalog{Problems: []discovery.Problem{{
			Source: discovery.Source{Host: bridge.Name, Scope: "process", Path: settings.Prefix + "_DEPTH"},
			State:  discovery.Itself,
			Reason: "this bridge was started by another bridge, so it uses no servers",
			Next:   "remove the bridge from its own list of servers",
		}}}
	}
	return discovery.Scan(discovery.Root(), environment(cfg))
}

// nested reports whether another bridge has started this one, directly or not.
func nested() bool {
	depth, err := strconv.Atoi(os.Getenv(settings.Prefix + "_DEPTH"))
	return err == nil && depth > 0
}

// withParts runs a command that needs the wired program.
func withParts(ctx context.Context, stderr io.Writer, what purpose,
	f func(context.Context, *parts) error) (err error) {
	p, err := wire(stderr, what)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := p.end(ctx); cerr != nil {
			p.log.Error("not everything could be ended", "err", cerr)
			if err == nil {
				err = cerr
			}
		}
	}()
	p.lasting.EndsWith(ctx)
	return f(ctx, p)
}
