package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	detailSummary = "summary"
	detailFull    = "full"

	defaultHits = 5
	maxHits     = 50
	maxSummary  = 600              // characters of a description in a summary
	searchWait  = 15 * time.Second // for servers that have to be started before their tools can be searched
	searchStart = 8                // of them at a time
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
	Score        float64         `json:"score,omitempty"`
}

func (h *host) doc(b *toolbox, t upstream.Tool, detail string) toolDoc {
	d := toolDoc{
		Server: b.server.name, ServerAlias: b.server.alias, Tool: t.Name, ToolAlias: b.aliases[t.Name], Title: t.Title,
		Signature: b.signature(t), Description: t.Description, Allowed: slices.Contains(h.servers, b.server),
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

// queryToolDocs tells of the tools of a server, or of one. Of a server that isn't part of the run it tells what is known already.
func (h *host) queryToolDocs(ctx context.Context, in helperInput) (any, error) {
	detail, err := checkDetail(in.Detail)
	if err != nil {
		return nil, err
	}
	e, ok := h.catalog.find(in.Server)
	box := h.catalog.shelf.known(e)
	if s, err := h.server(in.Server); err == nil {
		if box, err = h.tools(ctx, s); err != nil {
			return nil, err
		}
	} else if !ok || box == nil {
		return nil, err
	}
	if in.Tool != "" {
		t, ok := box.find(in.Tool)
		if !ok {
			return nil, box.unknown(in.Tool)
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

// searchToolDocs ranks the tools of the run's servers, which are started for it if need be, and of all others that were listed
// before.
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
	boxes, left := h.searchable(ctx)
	var result struct {
		Results []toolDoc    `json:"results"`
		Unknown []unsearched `json:"unknown,omitempty"`
	}
	result.Results, result.Unknown = []toolDoc{}, left
	hits, err := h.catalog.shelf.ranking.search(ctx, in.Query, boxes, h.sight)
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

// searchable gives the tools that a search can look at, and which servers' it can't.
func (h *host) searchable(ctx context.Context) ([]*toolbox, []unsearched) {
	wait, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	boxes := make([]*toolbox, len(h.catalog.servers))
	reasons := make([]string, len(boxes))
	slots := make(chan struct{}, searchStart)
	defer sandbox.OffClock(ctx)() // starting servers is not the code's own time
	var wg sync.WaitGroup
	for i, e := range h.catalog.servers {
		if !slices.Contains(h.servers, e) {
			if boxes[i] = h.catalog.shelf.known(e); boxes[i] == nil {
				reasons[i] = "it isn't part of this call, and its tools are not known yet"
			}
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			boxes[i], reasons[i] = h.listed(wait, e)
		})
	}
	wg.Wait()
	var known []*toolbox
	var left []unsearched
	for i, b := range boxes {
		if b != nil {
			known = append(known, b)
		} else {
			left = append(left, unsearched{h.catalog.servers[i].name, reasons[i]})
		}
	}
	return known, left
}

// listed gives the tools of a server, those that were known before where it doesn't list them, and why there are none. A panic is
// such a reason: this runs on a goroutine of its own, where it would end the bridge with all runs.
func (h *host) listed(ctx context.Context, e entry) (box *toolbox, why string) {
	defer func() {
		if r := recover(); r != nil {
			h.log.Error("a search has panicked over the tools of a server", "server", e.name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			box, why = nil, fmt.Sprintf("the bridge has failed on its tools, which is a bug of the bridge; its log says more: %v", r)
		}
	}()
	tools, err := h.upstreams.Tools(ctx, e.name)
	if err != nil {
		return h.catalog.shelf.known(e), printable(reason(e, err))
	}
	return h.catalog.shelf.box(e, tools), ""
}
