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
	r := b.newRun(requestOf(ctx), raw)
	res, err := b.foundTools(ctx, r)
	about := append([]any{"call", r.id, "ok", err == nil, "took", rounded(time.Since(r.began))},
		r.request.whose()...)
	r.request.Afterwards(func() {
		b.clients.Log(slog.LevelInfo, catalog.SearchTools, about...)
	})
	if err != nil {
		status := output.StatusUnavailable
		var call *entrypoint.CallError
		if errors.As(err, &call) {
			status = call.Code
		} else if errors.As(err, new(args.Error)) {
			status = entrypoint.CodeValidation
		}
		return mcp.NewToolResultError("status: " + status + " — " + err.Error())
	}
	return res
}

// foundTools has the host of r, which runs no code, search.
func (b *Bridge) foundTools(ctx context.Context, r *run) (*mcp.CallToolResult, error) {
	if err := b.policyError(); err != nil {
		return nil, errors.New(text.Hinted(err))
	}
	ctx, c, release := b.pin(ctx)
	defer release()
	r.args = arguments{catalog: c, servers: c.Servers()}
	ctx = r.request.forwarding(ctx) // later calls of this client's may need a server that is started for this
	text, forPrograms, err := r.host(ctx, nil).view.SearchTools(ctx, r.raw, b.structured)
	if err != nil {
		return nil, err
	}
	res := mcp.NewToolResultText(text)
	res.RawStructuredContent = forPrograms
	return res, nil
}
