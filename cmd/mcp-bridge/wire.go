package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds that nobody has had a reason to tune yet.
const (
	outputLimit  = 256 << 10 // bytes kept of what a run prints
	maxCalls     = 10_000    // tool calls of a run
	concurrency  = 64        // of them at a time
	startTimeout = 30 * time.Second
	noFile       = 1024     // descriptors of a process in a container
	shmSize      = 32 << 20 // bytes of /dev/shm
)

// parts are the wired program. Nothing in it has been started but the watchdog.
type parts struct {
	cfg     config
	log     *slog.Logger
	catalog discovery.Catalog
	guard   *guard.Guard
	driver  *podman.Driver
	sandbox *sandbox.Sandbox
	pool    *upstream.Pool
	bridge  *bridge.Bridge
}

// wire makes all parts. Close ends them.
func (a *app) wire(usual slog.Level) (*parts, error) {
	cfg, err := readConfig()
	if err != nil {
		return nil, err
	}
	p := &parts{cfg: cfg, log: cfg.logger(a.stderr, usual)}
	p.catalog = scan(cfg)
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	p.guard, err = guard.Start(guard.Config{Argv: []string{exe, watchdogName}, Env: reapEnviron(), Log: p.log})
	if err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	p.driver = newDriver(cfg, p.guard, p.log)
	if err := p.assemble(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// newDriver is the engine that the environment chooses. Guard may be nil.
func newDriver(cfg config, g podman.Guard, log *slog.Logger) *podman.Driver {
	endpoint := cfg.Runtime
	if endpoint == "podman" {
		endpoint = ""
	}
	if endpoint == "" {
		endpoint = os.Getenv("CONTAINER_HOST")
	}
	return podman.New(podman.Config{
		Endpoint:     endpoint,
		AllowRootful: bool(cfg.AllowRootful),
		RuntimeDir:   os.Getenv("XDG_RUNTIME_DIR"),
		Guard:        g,
		Log:          log,
	})
}

func (p *parts) assemble() (err error) {
	c := p.cfg
	p.sandbox, err = sandbox.New(p.driver, sandbox.Config{
		Images:       c.images(),
		User:         c.ContainerUser,
		Limits:       runtime.Limits{Memory: int64(c.Memory), PIDs: c.PIDs, CPUs: c.CPUs, NoFile: noFile, Shm: shmSize},
		Owner:        runtime.Self(),
		OutputLimit:  outputLimit,
		MaxCalls:     maxCalls,
		Concurrency:  concurrency,
		StartTimeout: startTimeout,
		MaxTimeout:   time.Duration(c.MaxTimeout),
		Log:          p.log,
	})
	if err != nil {
		return err
	}
	p.pool = upstream.NewPool(upstream.Config{Servers: p.catalog.Servers, Guard: p.guard, Log: p.log, ClientVersion: version()})
	p.bridge, err = bridge.New(bridge.Config{
		Runner:     p.sandbox,
		Upstreams:  p.pool,
		Servers:    p.catalog.Servers,
		Problems:   p.catalog.Problems,
		Timeout:    time.Duration(c.Timeout),
		MaxTimeout: time.Duration(c.MaxTimeout),
		OutputMode: c.OutputMode,
		Version:    version(),
		Log:        p.log,
	})
	return err
}

// close ends everything, inside out: runs, servers, the engine's service, the watchdog.
func (p *parts) close() error {
	var errs []error
	if p.sandbox != nil {
		errs = append(errs, p.sandbox.Close())
	}
	if p.pool != nil {
		errs = append(errs, p.pool.Close())
	}
	if p.driver != nil {
		errs = append(errs, p.driver.Close())
	}
	return errors.Join(append(errs, p.guard.Close())...)
}

// scan finds the configured servers. A bridge that another bridge started finds none, or the two would call each other.
func scan(cfg config) discovery.Catalog {
	if depth, err := strconv.Atoi(os.Getenv(prefix + "_DEPTH")); err == nil && depth > 0 {
		return discovery.Catalog{Problems: []discovery.Problem{{
			Source: discovery.Source{Host: bridge.Name, Scope: "process", Path: prefix + "_DEPTH"},
			Reason: "this bridge was started by another bridge, so it uses no servers",
			Next:   "remove the bridge from its own list of servers",
		}}}
	}
	return discovery.Scan(discovery.Root(), discovery.Current(cfg.Config))
}

// withParts runs a command that needs the wired program. It logs from the level usual on, unless the user chose another.
func (a *app) withParts(ctx context.Context, usual slog.Level, f func(context.Context, *parts) error) (err error) {
	p, err := a.wire(usual)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := p.close(); cerr != nil {
			p.log.Error("not everything could be ended", "err", cerr)
			if err == nil {
				err = cerr
			}
		}
	}()
	return f(ctx, p)
}
