package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// lookTimeout bounds how long the engine is asked after the response has been written.
const lookTimeout = 30 * time.Second

// inEnvironment runs the code with the packages that it asks for, in a sandbox of its own where the
// run has none. The time to choose or build them counts as preparation, not as the code's. A
// sandbox keeps the packages of its first call.
func (r *run) inEnvironment(ctx context.Context, req sandbox.Request) (sandbox.Result, *sandbox.Environment,
	error) {
	b, chooser, turn := r.bridge, r.bridge.cfg.Packages, r.request.Turn()
	if r.box != nil {
		if _, made := r.box.Environment(); made {
			res, err := r.execute(ctx, req)
			env, _ := r.box.Environment() // one that was saved has it since it was woken
			return res, env, err
		}
	}
	pass := func() {
		if turn.Wait(ctx) == nil {
			turn.Pass()
		}
	}
	for again := false; ; again = true {
		began := time.Now()
		env, err := chooser.Choose(ctx, r.args.code, pass, req.Progress)
		chosen := time.Since(began)
		if err == nil {
			err = turn.Wait(ctx)
		}
		if err != nil {
			return sandbox.Result{Took: sandbox.Took{Prepared: chosen, Total: chosen}}, nil, err
		}
		req.Environment = env
		res, err := r.execute(ctx, req)
		if chooser != nil { // without one no time was taken
			res.Took.Prepared += chosen
			res.Took.Total += chosen
		}
		var missing *runtime.ImageError
		if env != nil && !again && errors.As(err, &missing) && missing.Ref == env.Image.ID { // removed since then
			chooser.Forget()
			continue
		}
		if chooser != nil {
			r.request.Afterwards(func() { b.ranIn(ctx, env) })
		}
		return res, env, err
	}
}

// ranIn records that code ran in env, which may be nil. It updates run_python's description if what
// code can import has changed.
func (b *Bridge) ranIn(ctx context.Context, env *sandbox.Environment) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	b.cfg.Packages.Ran(ctx, env)
	b.mu.Lock()
	differs := b.about != b.cfg.Packages.About()
	if differs {
		b.offer(b.latest)
	}
	b.mu.Unlock()
	if differs {
		b.clients.Changed(string(mcp.MethodNotificationToolsListChanged))
	}
}

// offer puts run_python among the tools, or in the place of the one that is there. It is called
// with mu held, or before anything is served.
func (b *Bridge) offer(c *catalog.Catalog) {
	b.about = b.cfg.Packages.About()
	if b.offers(runPythonName) {
		b.addTool(b.runTool(c), b.runPython)
	}
}

// packagesOf adds to an outcome which environment the run had, and a hint if it lacked a module.
func (r *run) packagesOf(ctx context.Context, o *output.Outcome, env *sandbox.Environment,
	res sandbox.Result) {
	name := packages.Base
	if env != nil {
		name = env.Name
		o.Environment = name
	}
	chosen := r.box == nil || r.box.Fresh
	switch asks := packages.Asks(r.args.code); {
	case asks && !chosen:
		o.Note("environment: " + name + ", chosen by the sandbox's first call")
	case asks && env != nil:
		o.Note("environment: " + name)
	}
	if hint := r.bridge.cfg.Packages.Hint(ctx, r.args.code, env, res.Error); hint != "" {
		if !chosen {
			hint += "; this sandbox keeps the packages of its first call, so pass sandbox \"" + NewSandbox + "\""
		}
		o.Note(hint)
	}
}
