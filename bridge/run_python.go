package bridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
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

// runPython answers a call of the tool. It ends soon after ctx, which ends with the client's cancel
// or its connection.
func (b *Bridge) runPython(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	began := time.Now()
	id, status := b.newID(), statusPanic
	r := requestOf(ctx)
	p := r.Report(ctx)
	defer p.Finish() // before the answer is sent, and when the call panics
	t := sandbox.Took{}
	ctx, end := b.telemetry.begin(ctx, id)
	defer func() {
		if status == statusPanic {
			t.Total = time.Since(began)
		}
		end(status, t)
		r.Afterwards(func() {
			b.clients.Log(slog.LevelInfo, "run_python", append([]any{"run", id, "status", status,
				"queued", rounded(t.Queued), "started", rounded(t.Prepared + t.Start),
				"ran", rounded(t.Run), "took", rounded(t.Total)}, r.whose()...)...)
		})
	}()
	o := b.run(ctx, id, raw, r, p, &t)
	t.Total = time.Since(began)
	o.Timed(t)
	status = o.Status
	b.auditor(id, r).ran(ctx, id, raw, o, began)
	return o.Result(b.structured)
}

// rounded returns a duration as the log shows it.
func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func (b *Bridge) run(ctx context.Context, id string, raw json.RawMessage, r request, p *client.Progress,
	t *sandbox.Took) output.Outcome {
	ctx, c, release := b.pin(ctx)
	defer release()
	a, err := b.decode(c, raw)
	if err != nil {
		return output.Refused(id, output.StatusInvalid, err)
	}
	if err := b.unready(ctx); err != nil {
		return output.Refused(id, output.StatusUnavailable, err)
	}
	box, err := b.enter(ctx, a, r)
	if err != nil {
		return b.failed(ctx, id, err)
	}
	if box != nil {
		defer box.Leave()
		trace.SpanFromContext(ctx).SetAttributes(attribute.String("mcp_bridge.sandbox.id", box.ID()))
	}
	req := sandboxRequest(id, a, p)
	req.Sandboxes = b.cfg.Sandboxes != nil
	req.Principal = r.share()
	req.Queued, req.Progress = r.Turn().Pass, p.At
	var inputs []sandbox.Input
	var unopened error
	closeAll := func() {}
	defer func() { closeAll() }()
	req.Files = func() ([]sandbox.Input, error) {
		p.Running()
		inputs, closeAll, unopened = b.open(a)
		return inputs, unopened
	}
	res, env, err := b.inEnvironment(b.forwarding(ctx, r), box, req, a, r, p)
	*t = res.Took
	switch {
	case unopened != nil:
		return output.Refused(id, output.StatusInvalid, unopened)
	case err != nil:
		return b.failed(ctx, id, err)
	}
	r.Afterwards(c.SaveNoted)
	o := outcomeOf(id, a, res, int(b.limits.Output))
	o.Calls = int(a.calls.Load())
	b.packagesOf(ctx, &o, a, box, env, res)
	o.Sandbox = stateOf(box, res)
	o.Note(files.Renamed(a.files, inputs)...)
	if o.HasFiles() {
		if b.cfg.Files != nil && r.Principal() == Local { // another's files are only read through the bridge
			o.Written(ctx, b.cfg.Files)
		}
		r.Afterwards(func() {
			b.clients.ChangedFor(r.Principal(), string(mcp.MethodNotificationResourcesListChanged))
		})
	}
	o.Keep(b.keptFor(ctx), r.links())
	return o
}

// execute has a runner run the code, and tells of it.
func (b *Bridge) execute(ctx context.Context, runner Runner, req sandbox.Request, a arguments, r request,
	p *client.Progress) (sandbox.Result, error) {
	e := b.telemetry.execution(ctx)
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
	req.Began, req.Clock = e.began, r.clock
	ctx, end := context.WithCancel(ctx)
	h := b.host(ctx, req.ID, a, r, p, e)
	defer h.logins.work.Wait()
	defer end()
	res, err := runner.Run(ctx, req, h)
	status = string(res.Status)
	if err != nil {
		status = output.StatusUnavailable
	}
	return res, err
}

// auditor returns what records the run id that a request asks for and its calls.
func (b *Bridge) auditor(id string, r request) auditor {
	return auditor{b.cfg.Audit, r.name(), r.Principal(), b.log(id, r)}
}

// log returns what logs of the run id that a request asks for.
func (b *Bridge) log(id string, r request) *slog.Logger {
	return b.cfg.Log.With(append([]any{"run", id}, r.whose()...)...)
}

// unready returns why no code may run, whatever the engine says: what it may call isn't known, or
// what it does can't be recorded.
func (b *Bridge) unready(ctx context.Context) error {
	if err := b.policyError(); err != nil {
		return err
	}
	return auditor{audit: b.cfg.Audit}.ready(ctx)
}

// sandboxRequest returns the run that a call asks for.
func sandboxRequest(id string, a arguments, p *client.Progress) sandbox.Request {
	providers, discovered := a.catalog.Announced(a.servers)
	r := sandbox.Request{
		ID: id, Code: a.code, Timeout: a.timeout, Providers: providers, Discovered: discovered,
	}
	if p != nil {
		r.Output = func(c sandbox.Chunk) { p.Printed(c.Stream, c.Text) }
	}
	return r
}

// failed returns the outcome of a run that could not take place.
func (b *Bridge) failed(ctx context.Context, id string, err error) output.Outcome {
	switch {
	case ctx.Err() != nil:
		return output.Refused(id, output.StatusCancelled, errors.New("the call was cancelled before the code ran"))
	case errors.As(err, new(args.Error)):
		return output.Refused(id, output.StatusInvalid, err)
	case errors.As(err, new(*sandboxes.GoneError)):
		return output.Refused(id, output.StatusInvalid, goneToCode(err))
	case errors.As(err, new(*hibernation.Error)):
		return output.Refused(id, output.StatusUnavailable, fmt.Errorf("%w. Nothing was run; pass sandbox %q for "+
			"another one", err, NewSandbox))
	case errors.As(err, new(*sandboxes.BusyError)), errors.As(err, new(*sandboxes.FullError)):
		return output.Refused(id, output.StatusBusy, fmt.Errorf("%w. Nothing was run; call again later", err))
	case errors.As(err, new(*sandbox.QueueError)):
		return output.Refused(id, output.StatusBusy, err)
	}
	return output.Refused(id, output.StatusUnavailable, err)
}

// outcomeOf returns the outcome of a run, with what there is to say of its arguments.
func outcomeOf(id string, a arguments, r sandbox.Result, limit int) output.Outcome {
	o := output.New(id, r, a.timeout, limit, a.reads)
	if r.Error != nil {
		if why := a.catalog.Undefined(r.Error.Type, r.Error.Message); why != "" {
			o.Note(why)
		}
	}
	if a.clamped != "" {
		o.Note(a.clamped)
	}
	if r.Status == sandbox.StatusTimeout && a.timeout < a.most {
		o.Note("to allow more time, give a longer timeout: up to " + text.Seconds(a.most) + " s")
	}
	return o
}

// randomID returns 48 random bits.
func randomID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
