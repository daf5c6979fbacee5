package bridge

import (
	"encoding/json"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// maxPageJSON bounds the structured form of a page, in bytes: a tool for which there is no more room comes without its schemas.
const maxPageJSON = 256 << 10

// pageJSON is a page as programs read it: its tools are told as code has them from runtime.search_tool_docs.
type pageJSON struct {
	Results []toolDoc    `json:"results"`
	Total   int          `json:"total"`            // on all pages
	Cursor  string       `json:"cursor,omitempty"` // of the next one
	Unknown []unsearched `json:"unknown,omitempty"`
}

// encoded has the tools that the text shows, but for those whose very names are beyond the bound.
func (p page) encoded(h *host, shown []hit) json.RawMessage {
	detail := detailSummary
	if p.a.detail == detailFull {
		detail = detailFull
	}
	out := pageJSON{Results: []toolDoc{}, Total: len(p.hits), Cursor: p.next(len(shown)), Unknown: p.unknown[:min(len(p.unknown), maxPage)]}
	room := budget(maxPageJSON)
	for _, hit := range shown {
		d := h.doc(hit.box, hit.tool, detail)
		d.Score = hit.score
		if !room.takes(d, maxPageJSON) {
			d.InputSchema, d.OutputSchema, d.Annotations = nil, nil, nil
			d.Signature, d.Description, d.Title = text.Brief(d.Signature, maxSignature), text.Brief(d.Description, maxLine), text.Brief(d.Title, maxLine)
			if !room.takes(d, maxPageJSON) {
				continue
			}
		}
		out.Results = append(out.Results, d)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // what takes has encoded
	}
	return raw
}
