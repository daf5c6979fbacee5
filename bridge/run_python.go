package bridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// The names of the tools whose calls may start servers.
const (
	runPythonName   = catalog.RunPython
	searchToolsName = catalog.SearchTools
)

// statusPanic is the status in the log of a call on which the bridge has failed. No result has it.
const statusPanic = "panic"

// A run is one run of code, from what asks for it to what is recorded of it: a call of run_python,
// a Direct, or code of the user's own in a sandbox. It ends with its call, on whose goroutine its
// methods are called.
type run struct {
	bridge   *Bridge
	id       string // names it in the log, in its container's labels, and for who reads what it has left
	began    time.Time
	request  request
	raw      json.RawMessage // the arguments, as they came
	args     arguments       // once they are decoded
	auditor  auditor
	progress *client.Progress // nil where no MCP client asks
	box      *sandboxes.Call  // its turn in a sandbox that lasts; nil for a container of its own
	took     sandbox.Took     // Total once it is over
	calls    atomic.Int64     // that the code has made, as they are recorded

	ask func(context.Context, string) (bool, error) // of a Direct; nil: the MCP client is asked
}

// newRun returns a run that a request asks for with raw.
func (b *Bridge) newRun(of request, raw json.RawMessage) *run {
	id := b.newID()
	return &run{bridge: b, id: id, began: time.Now(), request: of, raw: raw, auditor: b.auditor(id, of)}
}

// runPython answers a call of the tool. It ends soon after ctx, which ends with the client's cancel
// or its connection.
func (b *Bridge) runPython(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	r := b.newRun(requestOf(ctx), raw)
	status := statusPanic
	r.progress = r.request.Report(ctx)
	defer r.progress.Finish() // before the answer is sent, and when the call panics
	ctx, end := b.telemetry.begin(ctx, r.id)
	defer func() {
		if status == statusPanic {
			r.took.Total = time.Since(r.began)
		}
		end(status, r.took)
		id, of, t := r.id, r.request, r.took // r isn't kept longer
		of.Afterwards(func() {
			b.clients.Log(slog.LevelInfo, "run_python", append([]any{"run", id, "status", status,
				"queued", rounded(t.Queued), "started", rounded(t.Prepared + t.Start),
				"ran", rounded(t.Run), "took", rounded(t.Total)}, of.whose()...)...)
		})
	}()
	o := r.call(ctx)
	r.took.Total = time.Since(r.began)
	o.Timed(r.took)
	status = o.Status
	r.record(ctx, o)
	return o.Result(b.structured)
}

// rounded returns a duration as the log shows it.
func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// call does what a call of run_python asks for.
func (r *run) call(ctx context.Context) output.Outcome {
	b, p := r.bridge, r.progress
	ctx, c, release := b.pin(ctx)
	defer release()
	var err error
	if r.args, err = b.decoder.decode(c, r.raw); err != nil {
		return output.Refused(r.id, output.StatusInvalid, err)
	}
	if err := b.unready(ctx); err != nil {
		return output.Refused(r.id, output.StatusUnavailable, err)
	}
	if r.box, err = r.enter(ctx); err != nil {
		return r.failed(ctx, err)
	}
	if r.box != nil {
		defer r.box.Leave()
		trace.SpanFromContext(ctx).SetAttributes(attribute.String("mcp_bridge.sandbox.id", r.box.ID()))
	}
	req := r.sandboxRequest()
	req.Sandboxes = b.cfg.Sandboxes != nil
	req.Principal = r.request.share()
	req.Queued, req.Progress = r.request.Turn().Pass, p.At
	var inputs []sandbox.Input
	var unopened error
	closeAll := func() {}
	defer func() { closeAll() }()
	req.Files = func() ([]sandbox.Input, error) {
		p.Running()
		if len(r.args.files) > 0 {
			inputs, closeAll, unopened = b.cfg.Inputs.Open(r.args.files)
		}
		return inputs, unopened
	}
	res, env, err := r.inEnvironment(r.request.forwarding(ctx), req)
	r.took = res.Took
	switch {
	case unopened != nil:
		return output.Refused(r.id, output.StatusInvalid, unopened)
	case err != nil:
		return r.failed(ctx, err)
	}
	r.request.Afterwards(c.SaveNoted)
	o := r.outcome(res, int(b.limits.Output))
	r.packagesOf(ctx, &o, env, res)
	o.Note(files.Renamed(r.args.files, inputs)...)
	if o.HasFiles() {
		principal := r.request.Principal()
		if b.cfg.Files != nil && principal == Local { // another's files are only read through the bridge
			o.Written(ctx, b.cfg.Files)
		}
		r.request.Afterwards(func() {
			b.clients.ChangedFor(principal, string(mcp.MethodNotificationResourcesListChanged))
		})
	}
	o.Keep(b.outputs.of(ctx), r.request.Request == nil || !r.request.NoLinks)
	return o
}

// execute has a runner run the code, and tells of it.
func (r *run) execute(ctx context.Context, req sandbox.Request) (sandbox.Result, error) {
	runner := r.bridge.cfg.Runner
	if r.box != nil {
		runner = r.box
	}
	e := r.bridge.telemetry.execution(ctx)
	status := statusPanic
	defer func() { e.end(status) }()
	open := req.Files
	req.Files = func() ([]sandbox.Input, error) {
		e.lease()
		if open == nil {
			return nil, nil
		}
		return open()
	}
	req.Began, req.Clock = e.began, r.request.clock
	ctx, end := context.WithCancel(ctx)
	h := r.host(ctx, e)
	defer h.logins.work.Wait()
	defer end()
	res, err := runner.Run(ctx, req, h)
	status = string(res.Status)
	if err != nil {
		status = output.StatusUnavailable
	}
	return res, err
}

// auditor returns what records and logs the run id that a request asks for, and its calls.
func (b *Bridge) auditor(id string, r request) auditor {
	log := b.cfg.Log.With(append([]any{"run", id}, r.whose()...)...)
	return auditor{b.cfg.Audit, r.name(), r.Principal(), log}
}

// unready returns why no code may run, whatever the engine says: what it may call isn't known, or
// what it does can't be recorded.
func (b *Bridge) unready(ctx context.Context) error {
	if err := b.policyError(); err != nil {
		return err
	}
	return auditor{audit: b.cfg.Audit}.ready(ctx)
}

// sandboxRequest returns what the sandbox is to run.
func (r *run) sandboxRequest() sandbox.Request {
	providers, discovered := r.args.catalog.Announced(r.args.servers)
	req := sandbox.Request{
		ID: r.id, Code: r.args.code, Timeout: r.args.timeout, Providers: providers, Discovered: discovered,
	}
	if p := r.progress; p != nil {
		req.Output = func(c sandbox.Chunk) { p.Printed(c.Stream, c.Text) }
	}
	return req
}

// failed returns the outcome of a run that could not take place.
func (r *run) failed(ctx context.Context, err error) output.Outcome {
	switch {
	case ctx.Err() != nil:
		return output.Refused(r.id, output.StatusCancelled,
			errors.New("the call was cancelled before the code ran"))
	case errors.As(err, new(args.Error)):
		return output.Refused(r.id, output.StatusInvalid, err)
	case errors.As(err, new(*sandboxes.GoneError)):
		return output.Refused(r.id, output.StatusInvalid, goneToCode(err))
	case errors.As(err, new(*hibernation.Error)):
		return output.Refused(r.id, output.StatusUnavailable,
			fmt.Errorf("%w. Nothing was run; pass sandbox %q for another one", err, NewSandbox))
	case errors.As(err, new(*sandboxes.BusyError)), errors.As(err, new(*sandboxes.FullError)):
		return output.Refused(r.id, output.StatusBusy, fmt.Errorf("%w. Nothing was run; call again later", err))
	case errors.As(err, new(*sandbox.QueueError)):
		return output.Refused(r.id, output.StatusBusy, err)
	}
	return output.Refused(r.id, output.StatusUnavailable, err)
}

// outcome returns what came of the run, with what there is to say of its arguments.
func (r *run) outcome(res sandbox.Result, limit int) output.Outcome {
	a := r.args
	o := output.New(r.id, res, a.timeout, limit, a.reads)
	o.Calls, o.Sandbox = int(r.calls.Load()), stateOf(r.box, res)
	if res.Error != nil {
		if why := a.catalog.Undefined(res.Error.Type, res.Error.Message); why != "" {
			o.Note(why)
		}
	}
	if a.clamped != "" {
		o.Note(a.clamped)
	}
	if res.Status == sandbox.StatusTimeout && a.timeout < a.most {
		o.Note("to allow more time, give a longer timeout: up to " + text.Seconds(a.most) + " s")
	}
	return o
}

// record records what came of the run, which may have ended with ctx.
func (r *run) record(ctx context.Context, o output.Outcome) {
	record := audit.Record{
		Kind: audit.KindRun, Run: r.id, Outcome: o.Status, Calls: int64(o.Calls),
		ResultBytes: len(o.Stdout) + len(o.Stderr), Environment: o.Environment,
	}
	if o.Sandbox != nil {
		record.Sandbox = o.Sandbox.ID
	}
	r.auditor.arguments(&record, r.raw)
	r.auditor.record(context.WithoutCancel(ctx), record, r.began)
}

// randomID returns 48 random bits.
func randomID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
