package bridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// runPython is one call of the tool, from its arguments to its result. It ends soon after ctx, which ends with the client's
// cancel or its connection.
func (b *Bridge) runPython(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	began := time.Now()
	id := newID()
	p := startProgress(ctx)
	defer p.finish() // before the answer is sent, and when the call panics
	o := b.run(ctx, id, raw, p)
	b.log.Info("run_python", "call", id, "status", o.Status, "took", time.Since(began).Round(time.Millisecond))
	return o.render(b.structured)
}

func (b *Bridge) run(ctx context.Context, id string, raw json.RawMessage, p *progress) outcome {
	a, err := b.decode(raw)
	if err != nil {
		return refused(id, statusInvalid, err)
	}
	if err := b.enter(ctx, p); err != nil {
		return refused(id, statusCancelled, err)
	}
	defer b.leave()

	p.at("preparing")
	if err := b.runner.Prepare(ctx, p.at); err != nil {
		return b.failed(ctx, id, err)
	}
	p.running(a.timeout)
	res, err := b.runner.Run(ctx, b.request(id, a, p), b.host(a.servers, p))
	if err != nil {
		return b.failed(ctx, id, err)
	}
	o := newOutcome(id, a, res, shownBytes)
	if o.Truncated != nil || len(o.files) > 0 {
		x, _ := ctx.Value(exchangeKey{}).(*exchange)
		o.keptAs(b.kept, x == nil || !x.old)
	}
	return o
}

func (b *Bridge) request(id string, a arguments, p *progress) sandbox.Request {
	r := sandbox.Request{ID: id, Code: a.code, Timeout: a.timeout}
	for _, e := range a.servers {
		r.Providers = append(r.Providers, provider(e))
	}
	for _, e := range b.catalog.servers {
		r.Discovered = append(r.Discovered, entrypoint.Discovered{Name: e.name, Description: e.description})
	}
	if p != nil {
		r.Output = p.printed
	}
	return r
}

// enter waits for a slot, in the order of arrival, until ctx ends. leave gives it back.
func (b *Bridge) enter(ctx context.Context, p *progress) error {
	gaveUp := fmt.Errorf("the call was cancelled while it waited for one of %d runs to end", cap(b.slots))
	if ctx.Err() != nil { // a free slot is not for a call that was cancelled already
		return gaveUp
	}
	select {
	case b.slots <- struct{}{}:
		return nil
	default:
	}
	p.at(fmt.Sprintf("waiting for one of %d runs to end", cap(b.slots)))
	select {
	case b.slots <- struct{}{}:
		if ctx.Err() != nil { // both were there
			b.leave()
			return gaveUp
		}
		return nil
	case <-ctx.Done():
		return gaveUp
	}
}

func (b *Bridge) leave() { <-b.slots }

// failed is the outcome of a run that could not take place.
func (b *Bridge) failed(ctx context.Context, id string, err error) outcome {
	if ctx.Err() != nil {
		return refused(id, statusCancelled, errors.New("the call was cancelled before the code ran"))
	}
	return refused(id, statusUnavailable, err)
}

// refused is the outcome of a call whose code was not run: one sentence, and the next step where the error knows one.
func refused(id, status string, err error) outcome {
	o := outcome{Call: id, Status: status, ExitCode: -1, Message: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		o.Message = sentence(o.Message, hinted.Hint())
	}
	return o
}

// newID names a call in the log and in its container's labels.
func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
