package catalog

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// How much is told of each tool.
const (
	detailNames   = "names"   // search_tools
	detailBrief   = "brief"   // search_tools
	detailSummary = "summary" // the runtime's helpers
	detailFull    = "full"    // both
)

const (
	defaultHits = 5
	maxHits     = 50
	maxSummary  = 600 // characters of a description in a summary
)

// serverInfo is one configured server for code that looks around.
type serverInfo struct {
	Name        string `json:"name"`
	Alias       string `json:"alias"`
	Description string `json:"description,omitempty"`
	Allowed     bool   `json:"allowed"` // this run may call it
}

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
	Cached       bool            `json:"cached,omitempty"` // the server has not been asked since AsOf
	AsOf         string          `json:"asOf,omitempty"`   // as in RFC 3339
	Score        float64         `json:"score,omitempty"`
}

func (v View) doc(h hit, detail string) toolDoc {
	t := h.tool
	d := toolDoc{
		Server: h.set.Server.Name, ServerAlias: h.set.Server.Alias, Tool: t.Name, ToolAlias: h.set.aliases[t.Name],
		Title: t.Title, Signature: h.set.signature(t), Description: t.Description,
		Allowed: slices.Contains(v.Allowed, h.set.Server), Score: h.score,
	}
	if !h.set.asOf.IsZero() {
		d.Cached, d.AsOf = true, h.set.asOf.Format(time.RFC3339)
	}
	if detail == detailFull {
		d.InputSchema, d.OutputSchema, d.Annotations = t.InputSchema, t.OutputSchema, t.Annotations
	} else if short := text.Brief(d.Description, maxSummary); short != d.Description {
		d.Description = strings.TrimSpace(strings.TrimSuffix(short, "…")) + "…"
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

// Describe returns what there is to say of a configured server without its tools. Code asks only of
// servers that its call may not use.
func (v View) Describe(server string) (any, error) {
	s, ok := v.Find(server)
	if !ok {
		return nil, invalid("%s", v.Unknown(server, v.servers))
	}
	return serverInfo{s.Name, s.Alias, s.Description, slices.Contains(v.Allowed, s)}, nil
}

// Docs documents the tools of a server, or one of them, from what is known where that will do. Of a
// server that the call may not use it tells nothing else.
func (v View) Docs(ctx context.Context, server, tool, detail string) (any, error) {
	detail, err := checkDetail(detail)
	if err != nil {
		return nil, err
	}
	set, err := v.documented(ctx, server, tool)
	if err != nil {
		return nil, err
	}
	if tool != "" {
		t, ok := set.Find(tool)
		if !ok {
			return nil, set.NoTool(tool)
		}
		return []toolDoc{v.doc(hit{set: set, tool: t}, detail)}, nil
	}
	docs := make([]toolDoc, 0, len(set.tools))
	for _, t := range set.tools {
		if err := ctx.Err(); err != nil {
			return nil, ended(err)
		}
		docs = append(docs, v.doc(hit{set: set, tool: t}, detail))
	}
	return docs, nil
}

// documented returns the tools of a server for a reader: those that are known, unless the server
// runs or the wanted tool isn't among them. Then the server is asked, if the call may use it.
func (v View) documented(ctx context.Context, server, wanted string) (*Toolset, error) {
	s, err := v.Server(server)
	if err != nil {
		if s, ok := v.Find(server); ok {
			if t := v.known(s.Name); t != nil {
				return t, nil
			}
		}
		return nil, err
	}
	t := v.known(s.Name)
	if t == nil || v.Running(ctx, s) {
		return v.Tools(ctx, s)
	}
	if _, ok := t.Find(wanted); wanted != "" && !ok {
		return v.Tools(ctx, s)
	}
	return t, nil
}

// SearchDocs ranks the tools of all servers, and documents the best. Servers that the call may use
// are started for it where nothing is known of their tools.
func (v View) SearchDocs(ctx context.Context, query, detail string, limit int) (any, error) {
	detail, err := checkDetail(detail)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(query) == "" {
		return nil, invalid(`a search needs a query: words that say what the tool is to do, such as "create issue"`)
	}
	if limit == 0 {
		limit = defaultHits
	}
	hits, unknown, err := v.search(ctx, query, v.servers)
	if err != nil {
		return nil, err
	}
	results := []toolDoc{}
	for _, h := range hits[:min(len(hits), max(limit, 1), maxHits)] {
		results = append(results, v.doc(h, detail))
	}
	return struct {
		Results []toolDoc    `json:"results"`
		Unknown []unsearched `json:"unknown,omitempty"`
	}{results, unknown}, nil
}
