package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// lookTimeout bounds how long the engine is asked after the response has been written.
const lookTimeout = 30 * time.Second

// inEnvironment runs the code with the packages that it asks for, in a sandbox of its own where box
// is nil. The time to choose or build them counts as preparation, not as the code's. A sandbox
// keeps the packages of its first call.
func (b *Bridge) inEnvironment(ctx context.Context, box *sandboxes.Call, req sandbox.Request, a arguments,
	r request, p *client.Progress) (sandbox.Result, *sandbox.Environment, error) {
	chooser, turn := b.cfg.Packages, r.Turn()
	runner := b.cfg.Runner
	if box != nil {
		runner = box
		if _, made := box.Environment(); made {
			res, err := b.execute(ctx, runner, req, a, r, p)
			env, _ := box.Environment() // one that was saved has it since it was woken
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
		env, err := chooser.Choose(ctx, a.code, pass, req.Progress)
		chosen := time.Since(began)
		if err == nil {
			err = turn.Wait(ctx)
		}
		if err != nil {
			return sandbox.Result{Took: sandbox.Took{Prepared: chosen, Total: chosen}}, nil, err
		}
		req.Environment = env
		res, err := b.execute(ctx, runner, req, a, r, p)
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
			r.Afterwards(func() { b.ranIn(ctx, env) })
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
func (b *Bridge) packagesOf(ctx context.Context, o *output.Outcome, a arguments, box *sandboxes.Call,
	env *sandbox.Environment, r sandbox.Result) {
	name := packages.Base
	if env != nil {
		name = env.Name
		o.Environment = name
	}
	chosen := box == nil || box.Fresh
	switch asks := packages.Asks(a.code); {
	case asks && !chosen:
		o.Note("environment: " + name + ", chosen by the sandbox's first call")
	case asks && env != nil:
		o.Note("environment: " + name)
	}
	if hint := b.cfg.Packages.Hint(ctx, a.code, env, r.Error); hint != "" {
		if !chosen {
			hint += "; this sandbox keeps the packages of its first call, so pass sandbox \"" + NewSandbox + "\""
		}
		o.Note(hint)
	}
}
