package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxtools"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// inSandbox returns what answers calls of a tool that works on a sandbox without code.
func (b *Bridge) inSandbox(t mcp.Tool) func(context.Context, json.RawMessage) *mcp.CallToolResult {
	return func(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
		r := requestOf(ctx)
		p := r.Report(ctx)
		defer p.Finish()
		turn := r.Turn()
		res, afterwards := b.inside(ctx, t.Name, raw, r, r.name(), sandboxtools.Caller{
			Owner: r.owner(), Principal: r.share(), Output: b.outputs.of(ctx), Wait: turn.Wait, Pass: turn.Pass,
			Progress: p.At,
			Printed: func(c sandbox.Chunk) {
				if p != nil { // the client has asked
					p.Printed(c.Stream, c.Text)
				}
			},
		})
		r.Afterwards(afterwards)
		return res
	}
}

// inside calls a tool that works on a sandbox without code, for a client of a name. The call is
// recorded, and doesn't begin if it could not be. afterwards is called when it is answered.
func (b *Bridge) inside(ctx context.Context, tool string, raw json.RawMessage, r request, client string,
	by sandboxtools.Caller) (res *mcp.CallToolResult, afterwards func()) {
	if err := b.unready(ctx); err != nil {
		return mcp.NewToolResultError(text.Hinted(err)), func() {}
	}
	began := time.Now()
	by.ID = b.newID()
	res, said := b.sandboxTools.Call(ctx, tool, raw, by)
	outcome := cmp.Or(said.Code, audit.OutcomeOK)
	record := audit.Record{Kind: audit.KindSandbox, Run: by.ID, Sandbox: named(said.Sandbox), Tool: tool,
		Outcome: outcome, ResultBytes: said.Bytes}
	a := b.auditor(by.ID, r)
	a.client = client
	a.arguments(&record, raw)
	a.record(context.WithoutCancel(ctx), record, began)
	took := rounded(time.Since(began))
	return res, func() {
		b.clients.Log(slog.LevelInfo, tool, append([]any{"call", by.ID, "sandbox", said.Sandbox, "outcome", outcome,
			"took", took}, r.whose()...)...)
	}
}
