package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// auditor records runs and calls. Its audit may be nil: then nothing is recorded.
type auditor struct {
	audit     *audit.Log
	client    string // what has asked for the run, by its own word
	principal string // who has
	log       *slog.Logger
}

// ready returns why nothing may be done now, since it could not be recorded.
func (a auditor) ready(ctx context.Context) error {
	if a.audit == nil {
		return nil
	}
	return a.audit.Ready(ctx)
}

// record records what ended just now. That it can't be written refuses what comes next, see ready;
// what has been done is done.
func (a auditor) record(ctx context.Context, r audit.Record, began time.Time) {
	if a.audit == nil {
		return
	}
	r.Client = a.client
	if a.principal != Local {
		r.Principal = a.principal
	}
	r.TookMs = float64(time.Since(began).Microseconds()) / 1000
	if err := a.audit.Record(ctx, r); err != nil {
		a.log.Error("nothing more is run until this is recorded", "err", err)
	}
}

// arguments notes what a call or a run was asked for with.
func (a auditor) arguments(r *audit.Record, args json.RawMessage) {
	if a.audit != nil {
		a.audit.SetArguments(r, args)
	}
}

// recorded does an inner call and records it, however it ends. The call is not made when it could
// not be recorded. What do learns of the call, it notes in the record: names are those that were
// asked for until then.
func recorded[T any](
	ctx context.Context, h *host, server, tool string, do func(context.Context, *audit.Record) (T, error),
) (result T, err error) {
	if err := h.auditor.ready(ctx); err != nil {
		why := "the call was not made: " + text.Hinted(err)
		return result, &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: why}
	}
	h.calls.Add(1)
	began := time.Now()
	ctx, end := h.telemetry.call(h.execution.within(ctx))
	r := audit.Record{Kind: audit.KindCall, Run: h.run, Server: server, Tool: tool}
	r.Outcome = entrypoint.CodeInternal // of a panic
	defer func() {
		r.Server, r.Tool = named(r.Server), named(r.Tool)
		h.auditor.record(context.WithoutCancel(ctx), r, began) // the call may have ended with ctx
		_, known := h.catalog.Definitions()[r.Server]
		end(r, known, time.Since(began))
	}()
	result, err = do(ctx, &r)
	r.Outcome = codeOf(err)
	return result, err
}

// maxRecordedName bounds a name in the record, in bytes: code that could write long lines could
// have older ones rotated away.
const maxRecordedName = 256

// named returns a name as it is recorded: of a long one the beginning, with its length.
func named(name string) string {
	if len(name) <= maxRecordedName {
		return name
	}
	return fmt.Sprintf("%s… (%d bytes)", text.First(name, maxRecordedName), len(name))
}

func codeOf(err error) string {
	var e *entrypoint.CallError
	switch {
	case err == nil:
		return audit.OutcomeOK
	case errors.As(err, &e):
		return e.Code
	}
	return entrypoint.CodeInternal
}

// judged notes a verdict.
func judged(r *audit.Record, d policy.Decision) {
	r.Verdict, r.By = d.Verdict.String(), d.Source
}
