package bridge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Direct is a run that the program's own user asks for, not an MCP client.
type Direct struct {
	Code     string
	File     string        // what tracebacks call the code; empty for <run_python>
	Servers  []string      // by name or alias; nil for all
	Timeout  time.Duration // 0 for the configured one
	Output   func(sandbox.Chunk)
	Progress runtime.Progress // what is done before the code runs

	// Ask asks the user whether a call may be made that the policy says to ask about. It returns when
	// ctx ends. Nil means that no one can be asked. It may be called concurrently.
	Ask func(ctx context.Context, question string) (bool, error)
}

// directBytes is how much of the output stands in the JSON of a Direct: all of it goes to Output.
const directBytes = 1 << 20

// Report is what came of a Direct.
type Report struct {
	Result  sandbox.Result
	Notices []string // what the caller should know besides, such as that the timeout was clamped

	outcome output.Outcome
}

// JSON returns all of it as one object, in the form of structuredContent. Its exitCode is the
// caller's: what its own process ends with. Paths say where the caller has put files, by name.
func (r Report) JSON(exitCode int, paths map[string]string) json.RawMessage {
	o := r.outcome
	o.ExitCode = exitCode
	o.At(paths)
	return o.JSON()
}

// RunDirect runs code under the same rules as the tool run_python. An error means that the code was
// not run: its text is one sentence, and it has a Hint() where the next step is known; it is an
// args.Error where it is the caller's mistake.
func (b *Bridge) RunDirect(ctx context.Context, d Direct) (Report, error) {
	raw := map[string]any{"code": d.Code}
	if d.Servers != nil {
		raw["servers"] = d.Servers
	}
	if d.Timeout > 0 {
		raw["timeout"] = d.Timeout.Seconds()
	}
	args, err := json.Marshal(raw)
	if err != nil {
		return Report{}, err
	}
	ctx, c, release := b.pin(ctx)
	defer release()
	a, err := b.decoder.decode(c, args)
	if err != nil {
		return Report{}, err
	}
	if err := b.unready(ctx); err != nil {
		return Report{}, err
	}
	r, status := b.newRun(request{clock: &sandbox.Clock{}}, args), statusPanic
	r.args, r.ask = a, d.Ask
	ctx, end := b.telemetry.begin(ctx, r.id)
	defer func() { end(status, sandbox.Took{Total: time.Since(r.began)}) }()
	req := r.sandboxRequest()
	req.Output, req.File = d.Output, d.File
	req.Progress = func(what string) {
		if d.Progress != nil && what != sandbox.Preparing { // a person is told what takes time, if anything does
			d.Progress(what)
		}
	}
	res, env, err := r.inEnvironment(ctx, req)
	c.SaveNoted()
	if err != nil {
		status = output.StatusUnavailable
		r.record(ctx, output.Refused(r.id, status, err))
		return Report{}, err
	}
	o := r.outcome(res, directBytes)
	r.packagesOf(ctx, &o, env, res)
	status = o.Status
	r.record(ctx, o)
	return Report{Result: res, Notices: o.Notices, outcome: o}, nil
}
