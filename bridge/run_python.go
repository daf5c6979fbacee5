package bridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// runPython is one call of the tool, from its arguments to its result. It ends soon after ctx, which ends with the client's
// cancel or its connection.
func (b *Bridge) runPython(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	began := time.Now()
	id, status := newID(), statusPanic
	p := startProgress(ctx)
	defer p.finish() // before the answer is sent, and when the call panics
	t := times{}
	ctx, end := b.signals.begin(ctx, id)
	defer func() {
		if status == statusPanic {
			t.total = time.Since(began)
		}
		end(status, t)
		afterwards(ctx, func() {
			b.teller.tell(slog.LevelInfo, "run_python", "run", id, "status", status,
				"queued", rounded(t.queued), "started", rounded(t.prepared+t.started), "ran", rounded(t.ran), "took", rounded(t.total))
		})
	}()
	o := b.run(ctx, id, raw, p, &t)
	t.total = time.Since(began)
	o.timed(t)
	status = o.Status
	b.books(b.log.With("run", id)).ran(ctx, id, raw, o, began)
	return o.render(b.structured)
}

// times are where a call's time went. All but total are zero where it never came so far.
type times struct {
	queued   time.Duration // until other calls had ended, and their containers were gone
	prepared time.Duration // until engine and image were there
	started  time.Duration // until the container was ready
	ran      time.Duration // the code's own
	total    time.Duration
}

// rounded is a duration as the log shows it.
func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func (b *Bridge) run(ctx context.Context, id string, raw json.RawMessage, p *progress, t *times) outcome {
	ctx, c, release := b.pin(ctx)
	defer release()
	a, err := b.decode(c, raw)
	if err != nil {
		return refused(id, statusInvalid, err)
	}
	if err := b.unready(ctx); err != nil {
		return refused(id, statusUnavailable, err)
	}
	order := orderOf(ctx)
	order.wait()
	t.queued, err = b.admission.enter(ctx, func(preparing int) {
		order.has()
		p.at(b.admission.waitingFor(preparing))
	})
	order.has()
	if err != nil {
		return b.turnedAway(ctx, id, err)
	}
	defer b.admission.leave()

	p.at("preparing")
	began := time.Now()
	err = b.admission.prepare(func() error { return b.runner.Prepare(ctx, p.at) })
	t.prepared = time.Since(began)
	if err != nil {
		return b.failed(ctx, id, err)
	}
	inputs, closeAll, err := b.open(a)
	defer closeAll()
	if err != nil {
		return refused(id, statusInvalid, err)
	}
	b.runner.Expect(c.announced.providers, c.announced.discovered)
	p.running()
	req := b.request(id, a, p)
	req.Files = inputs
	res, err := b.execute(b.forwarding(ctx), req, a, p)
	if err != nil {
		return b.failed(ctx, id, err)
	}
	afterwards(ctx, func() { b.seen.flush(c) })
	t.queued += res.Took.Room
	t.started, t.ran = res.Took.Start, res.Took.Run
	o := newOutcome(id, a, res, b.output)
	o.Notices = append(o.Notices, files.Renamed(a.files, inputs)...)
	if b.files != nil && len(o.files) > 0 {
		o.written(ctx, b.files)
	}
	if o.Truncated != nil || len(o.files) > 0 {
		x, _ := ctx.Value(exchangeKey{}).(*exchange)
		o.keptAs(b.kept, x == nil || !x.old)
		if x != nil {
			afterwards(ctx, func() { b.kept.pack(id) })
		}
		if len(o.files) > 0 {
			afterwards(ctx, func() { b.announce(string(mcp.MethodNotificationResourcesListChanged)) })
		}
	}
	return o
}

// execute has the sandbox run the code, and tells of it.
func (b *Bridge) execute(ctx context.Context, req sandbox.Request, a arguments, p *progress) (sandbox.Result, error) {
	e := b.signals.lend(ctx)
	status := statusPanic
	defer func() { e.end(status) }()
	req.Began = e.began
	ctx, end := context.WithCancel(ctx)
	h := b.host(ctx, req.ID, a, p, e)
	defer h.logins.work.Wait()
	defer end()
	res, err := b.runner.Run(ctx, req, h)
	status = string(res.Status)
	if err != nil {
		status = statusUnavailable
	}
	return res, err
}

// books are those of the bridge, which speak of trouble with them to log.
func (b *Bridge) books(log *slog.Logger) books { return books{b.audit, log} }

// unready says why no code may run whatever the engine says: what it may call isn't known, or what it does can't be recorded.
func (b *Bridge) unready(ctx context.Context) error {
	if b.broken != nil {
		return b.broken
	}
	return b.books(b.log).ready(ctx)
}

func (b *Bridge) request(id string, a arguments, p *progress) sandbox.Request {
	r := sandbox.Request{ID: id, Code: a.code, Timeout: a.timeout, Providers: a.providers, Discovered: a.catalog.announced.discovered}
	if p != nil {
		r.Output = p.printed
	}
	return r
}

// turnedAway is the outcome of a call that the queue didn't let in.
func (b *Bridge) turnedAway(ctx context.Context, id string, err error) outcome {
	if ctx.Err() != nil {
		return refused(id, statusCancelled, err)
	}
	return refused(id, statusBusy, err)
}

// failed is the outcome of a run that could not take place.
func (b *Bridge) failed(ctx context.Context, id string, err error) outcome {
	if ctx.Err() != nil {
		return refused(id, statusCancelled, errors.New("the call was cancelled before the code ran"))
	}
	return refused(id, statusUnavailable, err)
}

// refused is the outcome of a call whose code was not run: one sentence, and the next step where the error knows one.
func refused(id, status string, err error) outcome {
	return outcome{Call: id, Status: status, ExitCode: -1, Message: text.Hinted(err)}
}

// newID names a call in the log and in its container's labels.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
