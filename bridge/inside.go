package bridge

import (
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

// inSandbox returns what answers calls of a tool that works on a sandbox without code. Each call is
// recorded, and none begins that could not be.
func (b *Bridge) inSandbox(t mcp.Tool) func(context.Context, json.RawMessage) *mcp.CallToolResult {
	return func(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
		if err := b.unready(ctx); err != nil {
			return mcp.NewToolResultError(text.Hinted(err))
		}
		began, id := time.Now(), newID()
		r := requestOf(ctx)
		p := r.Report(ctx)
		defer p.Finish()
		turn := r.Turn()
		res, said := b.inside.Call(ctx, t.Name, raw, sandboxtools.Caller{
			ID: id, Owner: r.owner(), Wait: turn.Wait, Pass: turn.Pass, Progress: p.At,
			Printed: func(c sandbox.Chunk) { p.Printed(c.Stream, c.Text) },
		})
		outcome := said.Code
		if outcome == "" {
			outcome = audit.OutcomeOK
		}
		record := audit.Record{Kind: audit.KindSandbox, Run: id, Sandbox: named(said.Sandbox), Tool: t.Name,
			Outcome: outcome, ResultBytes: said.Bytes}
		a := b.auditor(id, r.name())
		a.arguments(&record, raw)
		a.record(context.WithoutCancel(ctx), record, began)
		took := rounded(time.Since(began))
		r.Afterwards(func() {
			b.clients.Log(slog.LevelInfo, t.Name, "call", id, "sandbox", said.Sandbox, "outcome", outcome, "took", took)
		})
		return res
	}
}
