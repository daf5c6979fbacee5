package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/auth"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/listen"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
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
			"signal ends it.\n\nVariables:" + settings.Help,
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

// asRoot reports whether this process is root's, and runs no code for that.
func asRoot(cfg settings.Settings) bool {
	elsewhere := settings.IsURL(cfg.Runtime) || settings.IsCluster(cfg.Runtime)
	return os.Geteuid() == 0 && !cfg.AllowRootful && !elsewhere
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
		if asRoot(p.cfg) {
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
		_ = p.cfg.CheckFiles(func(setting, _ string, err error) {
			if err != nil {
				p.log.Warn(settings.FilesMean[setting], "setting", "MCP_BRIDGE_"+setting, "err", err)
			}
		})
		p.warnOfPolicy()
		if name := p.cfg.Env; name != "" && name != environments.Base {
			if err := p.environments().Check(name); err != nil {
				p.log.Error("no code will be run but such as asks for packages",
					append(text.Next(err), "setting", settings.Prefix+"_ENV")...)
			}
		}
		held := p.approvals.HeldNames(p.catalog.Servers)
		defer context.AfterFunc(ctx, func() {
			if by, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
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

// listen serves over HTTP until ctx ends.
func (p *parts) listen(ctx context.Context, l *listen.Listener) error {
	if p.cfg.UpstreamRoots != "none" {
		return exit.Usage(errors.New("MCP_BRIDGE_UPSTREAM_ROOTS=client is for stdio: over HTTP clients share " +
			"servers, and one would have the directories of one client for all of them; leave it out"))
	}
	who, err := auth.New(p.cfg, p.log)
	if err != nil {
		return err
	}
	socket, err := l.Listen(ctx, who.Asks())
	if err != nil {
		return err
	}
	if len(p.cfg.Config) == 0 {
		p.log.Warn("MCP_BRIDGE_CONFIG is not set, so code has no servers: over HTTP no others are used",
			"next", "set it to a file that names servers, and start the bridge again")
	} else {
		p.log.Warn("over HTTP only the servers of MCP_BRIDGE_CONFIG are used, and all clients act with the " +
			"credentials that are configured for them")
	}
	p.log.Info("listening", "url", l.Scheme()+"://"+socket.Addr().String()+streamable.Path,
		"clients", auth.Clients(who))
	if l.Unnamed() && p.cfg.HTTPAudience == "" {
		p.log.Warn("clients get 403 that reach the bridge by another name or address than those of loopback: add " +
			"theirs with --allow-host")
	}
	hosts := l.Names()
	if own, err := url.Parse(p.cfg.HTTPAudience); err == nil && own.Host != "" { // by which clients know it
		hosts = append(hosts, own.Host)
	}
	if who != nil {
		ctx, end := context.WithCancel(ctx)
		looked := make(chan struct{})
		go func() { defer close(looked); auth.RemoveRevoked(ctx, who.Tokens, p.lasting, p.log) }()
		defer func() { end(); <-looked }()
	}
	return streamable.New(streamable.Config{
		Clients: p.bridge.Clients(), Hosts: hosts, Origins: l.Origins, Metrics: l.Metrics, Log: p.log,
		Authenticate: auth.Func(who, p.log), WellKnown: who.WellKnown(), Replica: p.cfg.Replica,
		DrainTime: time.Duration(p.cfg.MaxTimeout), Proxied: l.Proxied,
		Lost: p.driver.Lost,
	}).Serve(ctx, socket, l.Cert, l.Key)
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
