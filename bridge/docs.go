package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

const (
	detailSummary = "summary"
	detailFull    = "full"

	defaultHits = 5
	maxHits     = 50
	maxSummary  = 600 // characters of a description in a summary
)

// toolDoc is one tool as code finds it. The schemas are there in full detail only.
type toolDoc struct {
	Server       string          `json:"server"`
	ServerAlias  string          `json:"serverAlias"`
	Tool         string          `json:"tool"`
	ToolAlias    string          `json:"toolAlias"`
	Title        string          `json:"title,omitempty"`
	Signature    string          `json:"signature"`
	Description  string          `json:"description,omitempty"`
	Allowed      bool            `json:"allowed"` // this run may call it
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Cached       bool            `json:"cached,omitempty"` // this is what the server has said at AsOf; it has not been asked since
	AsOf         string          `json:"asOf,omitempty"`   // as in RFC 3339
	Score        float64         `json:"score,omitempty"`
}

func (h *host) doc(b *toolbox, t upstream.Tool, detail string) toolDoc {
	d := toolDoc{
		Server: b.server.name, ServerAlias: b.server.alias, Tool: t.Name, ToolAlias: b.aliases[t.Name], Title: t.Title,
		Signature: b.signature(t), Description: t.Description, Allowed: slices.Contains(h.servers, b.server),
	}
	if !b.asOf.IsZero() {
		d.Cached, d.AsOf = true, b.asOf.Format(time.RFC3339)
	}
	if detail == detailFull {
		d.InputSchema, d.OutputSchema, d.Annotations = t.InputSchema, t.OutputSchema, t.Annotations
	} else if r := []rune(d.Description); len(r) > maxSummary {
		d.Description = strings.TrimSpace(string(r[:maxSummary-1])) + "…"
	}
	return d
}

func checkDetail(detail string) (string, error) {
	switch detail {
	case "", detailSummary:
		return detailSummary, nil
	case detailFull:
		return detail, nil
	}
	return "", invalid("detail is %q or %q, not %q", detailSummary, detailFull, detail)
}

// queryToolDocs tells of the tools of a server, or of one, from what is known of them where that will do. Of a server that isn't part
// of the run it tells nothing else.
func (h *host) queryToolDocs(ctx context.Context, in helperInput) (any, error) {
	detail, err := checkDetail(in.Detail)
	if err != nil {
		return nil, err
	}
	box, err := h.documented(ctx, in.Server, in.Tool)
	if err != nil {
		return nil, err
	}
	if in.Tool != "" {
		t, ok := box.find(in.Tool)
		if !ok {
			return nil, h.catalog.shelf.unknown(box, in.Tool)
		}
		return []toolDoc{h.doc(box, t, detail)}, nil
	}
	docs := make([]toolDoc, 0, len(box.tools))
	for _, t := range box.tools {
		if err := ctx.Err(); err != nil {
			return nil, ended(err)
		}
		docs = append(docs, h.doc(box, t, detail))
	}
	return docs, nil
}

// documented is the tools of a server for who reads about them: those that are known, unless the server runs or the wanted tool isn't
// among them. Then the server is asked, if it is part of the run.
func (h *host) documented(ctx context.Context, server, wanted string) (*toolbox, error) {
	e, err := h.server(server)
	if err != nil {
		if e, ok := h.catalog.find(server); ok {
			if box := h.catalog.shelf.known(e); box != nil {
				return box, nil
			}
		}
		return nil, err
	}
	box := h.catalog.shelf.known(e)
	if box == nil || h.running(ctx, e) {
		return h.tools(ctx, e)
	}
	if _, ok := box.find(wanted); wanted != "" && !ok {
		return h.tools(ctx, e)
	}
	return box, nil
}

// ended is the error of a context for the code that asked.
func ended(err error) error {
	code := entrypoint.CodeCancelled
	if errors.Is(err, context.DeadlineExceeded) {
		code = entrypoint.CodeTimeout
	}
	return &entrypoint.CallError{Code: code, Message: fmt.Sprintf("looking through the tools was given up: %v", err)}
}

// unsearched is a server whose tools a search could not look at.
type unsearched struct {
	Server string `json:"server"`
	Reason string `json:"reason"`
}

// searchToolDocs ranks the tools of all servers. Those of the run are started for it where nothing is known of their tools.
func (h *host) searchToolDocs(ctx context.Context, in helperInput) (any, error) {
	detail, err := checkDetail(in.Detail)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Query) == "" {
		return nil, invalid("a search needs a query: words that say what the tool is to do, such as \"create issue\"")
	}
	limit := in.Limit
	if limit == 0 {
		limit = defaultHits
	}
	boxes, left := h.searchable(ctx, h.catalog.servers)
	var result struct {
		Results []toolDoc    `json:"results"`
		Unknown []unsearched `json:"unknown,omitempty"`
	}
	result.Results, result.Unknown = []toolDoc{}, left
	hits, err := h.catalog.shelf.ranking.search(ctx, in.Query, boxes)
	if err != nil {
		return nil, ended(err)
	}
	for _, hit := range hits[:min(len(hits), max(limit, 1), maxHits)] {
		d := h.doc(hit.box, hit.tool, detail)
		d.Score = hit.score
		result.Results = append(result.Results, d)
	}
	return result, nil
}
