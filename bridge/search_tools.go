package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// searchTools answers a call of search_tools. It takes no place among the runs.
func (b *Bridge) searchTools(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	began, id := time.Now(), b.newID()
	res, err := b.foundTools(ctx, id, raw)
	took := rounded(time.Since(began))
	r := requestOf(ctx)
	r.Afterwards(func() {
		about := append([]any{"call", id, "ok", err == nil, "took", took}, r.whose()...)
		b.clients.Log(slog.LevelInfo, catalog.SearchTools, about...)
	})
	if err != nil {
		status := output.StatusUnavailable
		var call *entrypoint.CallError
		var wrong args.Error
		if errors.As(err, &call) {
			status = call.Code
		} else if errors.As(err, &wrong) {
			status = entrypoint.CodeValidation
		}
		return mcp.NewToolResultError("status: " + status + " — " + err.Error())
	}
	return res
}

func (b *Bridge) foundTools(
	ctx context.Context, id string, raw json.RawMessage,
) (*mcp.CallToolResult, error) {
	if err := b.policyError(); err != nil {
		return nil, errors.New(text.Hinted(err))
	}
	ctx, c, release := b.pin(ctx)
	defer release()
	r := requestOf(ctx)
	ctx = b.forwarding(ctx, r) // later calls of this client's may need a server that is started for this
	h := b.host(ctx, id, arguments{catalog: c, servers: c.Servers()}, r, nil, nil)
	text, forPrograms, err := h.view.SearchTools(ctx, raw, b.structured)
	if err != nil {
		return nil, err
	}
	res := mcp.NewToolResultText(text)
	res.RawStructuredContent = forPrograms
	return res, nil
}
