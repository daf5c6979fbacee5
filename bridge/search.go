package bridge

import (
	"context"
	"slices"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/index"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// hit is a tool that fits a query.
type hit struct {
	box   *toolbox
	tool  upstream.Tool
	score float64
	near  bool // it is only the nearest to what was asked for: nothing fits
}

// search gives the tools that fit the query, best first. It is the same for the same tools. Its error is that of ctx, whose end it
// minds between words and between tools.
func (r *ranking) search(ctx context.Context, query string, boxes []*toolbox) ([]hit, error) {
	x, err := r.of(ctx, boxes)
	if err != nil {
		return nil, err
	}
	found, err := x.Search(ctx, query)
	if err != nil {
		return nil, err
	}
	near := !index.Fitting(found)
	hits := make([]hit, 0, len(found))
	for _, f := range found {
		box := boxes[f.Part]
		hits = append(hits, hit{box, box.tools[f.Tool], f.Score, near})
	}
	return hits, nil
}

// ranking keeps the latest index. It is safe for concurrent use; its zero value is ready.
type ranking struct {
	mu    sync.Mutex
	boxes []*toolbox
	index *index.Index
}

// of is the index of the tools of some servers: the one that is there while they stay the same.
func (r *ranking) of(ctx context.Context, boxes []*toolbox) (*index.Index, error) {
	r.mu.Lock()
	x := r.index
	if !slices.Equal(r.boxes, boxes) {
		x = nil
	}
	r.mu.Unlock()
	if x != nil {
		return x, nil
	}
	parts := make([]*index.Part, 0, len(boxes))
	for _, b := range boxes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		parts = append(parts, b.part())
	}
	x, err := index.Join(ctx, parts)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boxes, r.index = boxes, x
	return x, nil
}

// makePart is a toolbox for the index.
func (b *toolbox) makePart() *index.Part {
	tools := make([]index.Tool, 0, len(b.tools))
	for _, t := range b.tools {
		tools = append(tools, index.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema})
	}
	return index.NewPart(b.server.name, tools)
}
