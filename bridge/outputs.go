package bridge

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// outputs answer clients that read what the last runs have left. It is safe for concurrent use.
type outputs struct{ store *output.Store }

// of returns what can still be read of the runs of a request's principal.
func (o outputs) of(ctx context.Context) output.View {
	return o.store.Of(requestOf(ctx).Principal())
}

// readOutput answers a call of read_output.
func (o outputs) readOutput(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	text, err := o.of(ctx).Read(raw)
	if err != nil {
		return mcp.NewToolResultError("status: " + entrypoint.CodeValidation + " — " + err.Error())
	}
	return mcp.NewToolResultText(text)
}

// readFile answers resources/read for a file of a run.
func (o outputs) readFile(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	contents, err := o.of(ctx).Resource(req.Params.URI)
	if err != nil {
		requestOf(ctx).NotFound()
	}
	return contents, err
}

// listFiles adds the files of the last runs to the result of resources/list.
func (o outputs) listFiles(
	ctx context.Context, _ any, _ *mcp.ListResourcesRequest, result *mcp.ListResourcesResult,
) {
	result.Resources = append(result.Resources, o.of(ctx).Resources()...)
}
