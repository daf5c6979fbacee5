package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/listen"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/watch"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
)

func serveCmd(a *app) *cobra.Command {
	var l listen.Listener
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over stdio, or over HTTP; what a host runs",
		Long: "Serve MCP over standard input and output until the input ends, or over Streamable HTTP until a\n" +
			"signal ends it.\n\nVariables:" + variablesHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(cmd.Flags()); err != nil {
				return exit.Usage(err)
			}
			return a.serve(cmd.Context(), &l)
		},
	}
	l.AddFlags(cmd.Flags())
	return cmd
}

// serve serves over stdio, or what l listens to if it has an address.
func (a *app) serve(ctx context.Context, l *listen.Listener) error {
	a.serving.Store(true)
	what := serving
	if l.HTTP() {
		what = listening
	}
	end, err := l.Take() // first of all: a program that is started before would have the socket too
	if err != nil {
		return err
	}
	defer end()
	return withParts(ctx, a.io.Err, what, func(ctx context.Context, p *parts) error {
		p.tell(nil)
		if os.Geteuid() == 0 && !p.cfg.AllowRootful && !isURL(p.cfg.Runtime) && !isCluster(p.cfg.Runtime) {
			p.log.Warn("this is root, whose own engine is rootful, and runs no code: run mcp-bridge as an ordinary " +
				"user, or set MCP_BRIDGE_RUNTIME to the URL of an ordinary user's engine")
		}
		if p.cfg.AllowRootful {
			p.log.Warn("MCP_BRIDGE_ALLOW_ROOTFUL is set: a flaw in a rootful engine would hand over the machine")
		}
		if p.cfg.Seccomp != seccomp.Strict {
			p.log.Warn("MCP_BRIDGE_SECCOMP is set: the engine's filter of system calls is not the strict one",
				"filter", p.cfg.Seccomp)
		}
		// an error would have kept the parts from being made
		_ = p.cfg.checkFiles(func(setting, _ string, err error) {
			if err != nil {
				p.log.Warn(filesMean[setting], "setting", "MCP_BRIDGE_"+setting, "err", err)
			}
		})
		p.warnOfPolicy()
		if name := p.cfg.Env; name != "" && name != environments.Base {
			if err := p.environments().Check(name); err != nil {
				p.log.Error("no code will be run but such as asks for packages",
					append(text.Next(err), "setting", prefix+"_ENV")...)
			}
		}
		held := p.approvals.HeldNames(p.catalog.Servers)
		defer context.AfterFunc(ctx, func() {
			var by signalError
			if errors.As(context.Cause(ctx), &by) {
				p.log.Info("a signal ends the bridge", "signal", by.signal.String())
			}
		})()
		p.log.Info("serving", "version", version(), "servers", len(p.catalog.Servers)-len(held),
			"not_used", unusedServers(p.catalog)+len(held))
		if len(held) > 0 {
			p.log.Warn("servers are not started before you approve them: they are new, or have changed, where "+
				"code could have written them", "servers", held, "next", approveAll)
		}
		if what == listening {
			defer p.follow(ctx)()
			return p.listen(ctx, l)
		}
		if a.io.AtTerminal() {
			a.io.Say("mcp-bridge: waiting for an MCP client on standard input; Ctrl-C ends")
		}
		defer p.follow(ctx)()
		err := p.bridge.Serve(ctx, a.io.In, a.frames)
		if errors.Is(err, context.Canceled) {
			return nil // a signal: that is how one ends it
		}
		return err
	})
}

// follow makes the bridge use what is configured on disk as it changes. stop ends that, and waits
// for it.
func (p *parts) follow(ctx context.Context) (stop func()) {
	if p.watcher == nil {
		return func() {}
	}
	p.changes.Lock()
	p.following = true
	p.changes.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.watcher.Run(ctx, p.found) })
	running.Go(func() { p.followPolicy(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// found takes over what is configured now, and says what is different.
func (p *parts) found(c discovery.Catalog) {
	p.changes.Lock()
	defer p.changes.Unlock()
	p.configured = c
	before := p.catalog
	p.apply()
	c = p.catalog
	added, changed, removed := differences(before.Servers, c.Servers)
	held := p.approvals.HeldNames(c.Servers)
	p.log.Info("the configuration has changed", "added", added, "changed", changed, "removed", removed,
		"servers", len(c.Servers)-len(held), "not_used", unusedServers(c)+len(held), "not_approved", held)
	p.tell(before.Problems)
}

// apply makes the bridge use what is configured, as far as the user has approved it. The caller has
// p.changes.
func (p *parts) apply() {
	p.catalog = p.approvals.Update(p.configured)
	if len(p.approvals.HeldNames(p.catalog.Servers)) > 0 {
		p.approvals.Reach()
	}
	p.bridge.Update(p.catalog.Servers, p.catalog.Problems)
}

// approved takes over that the user has said yes to something.
func (p *parts) approved() {
	p.changes.Lock()
	defer p.changes.Unlock()
	if p.following {
		p.apply()
	}
}

// tell logs what isn't used and wasn't known before. A file that can't be read may hold any server,
// so that is a warning.
func (p *parts) tell(known []discovery.Problem) {
	for _, problem := range p.catalog.Problems {
		switch {
		case slices.Contains(known, problem):
		case p.onlyListed && problem.Source.Scope != discovery.Listed: // it isn't used, right or wrong
			p.log.Debug("not used", "problem", problem.String())
		case problem.Server == "" && (problem.State == discovery.Broken || problem.State == discovery.Exposed):
			p.log.Warn("a configuration file can't be used", "problem", problem.String())
		default:
			p.log.Debug("not used", "problem", problem.String())
		}
	}
}

// tellListed warns of the files that MCP_BRIDGE_CONFIG names and that can't be used.
func (p *parts) tellListed() {
	for _, problem := range p.catalog.Problems {
		if problem.Server == "" && problem.Source.Scope == discovery.Listed {
			p.log.Warn("a configuration file can't be used", "problem", problem.String())
		}
	}
}

// differences returns the names of servers, by what has become of them.
func differences(before, now []discovery.Server) (added, changed, removed []string) {
	old := map[string]discovery.Server{}
	for _, s := range before {
		old[s.Name] = s
	}
	for _, s := range now {
		switch was, ok := old[s.Name]; {
		case !ok:
			added = append(added, s.Name)
		case !was.Same(s):
			changed = append(changed, s.Name)
		}
		delete(old, s.Name)
	}
	for _, s := range before {
		if _, gone := old[s.Name]; gone {
			removed = append(removed, s.Name)
		}
	}
	return added, changed, removed
}

// search looks for servers: once, or again after each change on disk while calls are served.
func (p *parts) search(what purpose) {
	if nested() || !what.serves() {
		p.catalog = findServers(p.cfg)
		return
	}
	env := environment(p.cfg)
	p.onlyListed = what == listening // who connects isn't the user whose files the others are
	env.OnlyListed = p.onlyListed
	p.watcher = watch.New(discovery.Root(), env)
	p.catalog = p.watcher.Catalog()
}

// variablesHelp lists the variables of config.
const variablesHelp = `
  MCP_BRIDGE_RUNTIME                container engine: podman, docker, the URL of an engine's API, or
                                    kubernetes[:CONTEXT[/NAMESPACE]]; default: the best that is found
  MCP_BRIDGE_IMAGE                  container image with python3; default python:3.12-slim, else one
                                    made by mcp-bridge image build
  MCP_BRIDGE_PULL                   when the image is asked for from its registry: missing, never or
                                    always (default missing)
  MCP_BRIDGE_TIMEOUT                time limit of a run whose caller names none (default 30)
  MCP_BRIDGE_MAX_TIMEOUT            longest timeout of a run (default 120)
  MCP_BRIDGE_MEMORY                 memory of a run, swap counted in (default 512m)
  MCP_BRIDGE_PIDS                   processes and threads of a run (default 128)
  MCP_BRIDGE_CPUS                   cores of a run; 0 means all (default 0)
  MCP_BRIDGE_CONTAINER_USER         uid:gid of the code, numbers, neither 0 (default 65534:65534)
  MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT   time without a run until no container is kept ready, and as long
                                    again until a podman machine that the bridge started is stopped;
                                    0 never (default 300)
  MCP_BRIDGE_STANDBY                containers that serve keeps ready for the next runs; 0 for none,
                                    auto for two a core, or what the memory allows (default 1)
  MCP_BRIDGE_MAX_CONCURRENT         runs at a time; auto for as many as the machine's memory holds
                                    when each takes all that it may, from 2 to 32 (default auto)
  MCP_BRIDGE_QUEUE                  calls that may wait for one of those runs to end, in order of
                                    arrival; 0 for none (default 64)
  MCP_BRIDGE_QUEUE_TIMEOUT          longest that a call waits for that (default 30)
  MCP_BRIDGE_TOOLS                  tools that clients have: code for run_python, search_tools and
                                    read_output, single for run_python alone, sandbox for those of
                                    sandboxes, all, or names with commas between them (default code)
  MCP_BRIDGE_STATE                  what calls share that name no sandbox: none, or session for one
                                    sandbox of each client (default none)
  MCP_BRIDGE_SANDBOXES              sandboxes alive at a time, at most 8 of a caller; 0 for none,
                                    auto for half of what memory holds (default auto)
  MCP_BRIDGE_SANDBOX_IDLE           time without a call until a sandbox ends (default 1800)
  MCP_BRIDGE_SANDBOX_MAX_AGE        the most that a sandbox lives (default 28800)
  MCP_BRIDGE_HIBERNATE              directory that sandboxes are saved in before they end for lack of
                                    use; default: they aren't
  MCP_BRIDGE_UPSTREAM_START_TIMEOUT longest that a server may take to start (default 20)
  MCP_BRIDGE_UPSTREAM_IDLE_TIMEOUT  time without use until a server is ended; the next call starts it
                                    again; 0 never (default 900)
  MCP_BRIDGE_UPSTREAM_ROOTS         directories that servers hear of when they ask: none, or client
                                    for those that a client of stdio gives (default none)
  MCP_BRIDGE_ARTIFACTS              directory for the files that runs of serve hand over: a path, or
                                    none; default: mcp-bridge/artifacts in your data directory
  MCP_BRIDGE_INPUTS                 directories whose files calls may name, to be copied to their
                                    code; default: none, and no such argument
  MCP_BRIDGE_CONFIG                 files and directories with server definitions, read before all
                                    others
  MCP_BRIDGE_POLICY                 file that says which tools code may call: see docs/policy.md;
                                    default: all
  MCP_BRIDGE_ENV                    packages of code that asks for none: base for none, data, or
                                    the name of another environment; default: data if it is built
  MCP_BRIDGE_ENVS                   directory with the settings of environments: see
                                    docs/environments.md; default: mcp-bridge/environments in your
                                    configuration directory
  MCP_BRIDGE_AUDIT                  file that takes a line of JSON for each run and each call of a
                                    tool; nothing is run while it can't be written
  MCP_BRIDGE_AUDIT_ARGUMENTS        have those lines hold the arguments too, not only their size and
                                    hash (default false)
  MCP_BRIDGE_OUTPUT                 how much of what a run prints its result shows; read_output gives
                                    the rest (default 16k)
  MCP_BRIDGE_OUTPUT_MODE            text for models, structured for programs (default text)
  MCP_BRIDGE_LOG_LEVEL              debug, info, warn or error; default info for serve, warn for the
                                    rest
  MCP_BRIDGE_LOG_FORMAT             text or json, on stderr (default text)
  MCP_BRIDGE_SECCOMP                system call filter that the engine sets: strict, engine for its
                                    default, or the path of a profile; in a cluster localhost/NAME is
                                    one of the nodes' (default strict)
  MCP_BRIDGE_OCI_RUNTIME            what the engine starts containers with, such as runc, crun, runsc
                                    or krun; default: its choice
  MCP_BRIDGE_ALLOW_ROOTFUL          use an engine that runs as root (default false)
  MCP_BRIDGE_REPLICA                name of this bridge where there are others behind the same URL: ids
                                    of what it alone has carry it; default: none
  MCP_BRIDGE_HTTP_TOKENS            file with the hashes of the tokens by which clients over HTTP say
                                    who they are; default: http-tokens in your state directory
  MCP_BRIDGE_HTTP_ISSUER            authorization server whose JWTs clients over HTTP may send
                                    instead; default: none
  MCP_BRIDGE_HTTP_AUDIENCE          URL by which clients reach the bridge, which those JWTs name
`
