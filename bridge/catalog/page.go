package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
)

// Bounds of what one call of search_tools answers.
const (
	maxPage      = 200       // tools
	maxFull      = 50        // tools that are declared in full
	maxPageBytes = 24 << 10  // of them together, though one is always there
	maxPageJSON  = 256 << 10 // bytes of the structured form: beyond it tools come without their schemas
	maxSignature = 300       // characters of a signature in brief
	maxLine      = 160       // and of what the tool does
	maxAbout     = 2560      // bytes of a description that are looked at for that
	maxReasons   = 5         // servers that a remark names
	maxReason    = 200       // characters of each
)

// usualHits are how many tools a page has unless the caller says.
var usualHits = map[string]int64{detailNames: 40, detailBrief: 10, detailFull: 3}

// query is what a caller of search_tools asks for.
type query struct {
	text   string   // empty for all tools
	among  []Server // all servers, or the one
	detail string
	limit  int
	cursor string // of the page before; empty for the first page
}

// page is a part of what a search has found.
type page struct {
	query
	hits    []hit // of all pages
	from    int
	shown   []hit
	unknown []unsearched
}

// SearchTools answers a call of search_tools: as text for a model, and in the structured mode as
// JSON for programs. Hosts show the JSON instead of the text, and it is longer.
func (v View) SearchTools(
	ctx context.Context, raw json.RawMessage, structured bool,
) (said string, forPrograms json.RawMessage, err error) {
	p := page{}
	if p.query, err = v.decodeQuery(raw); err != nil {
		return "", nil, err
	}
	if p.hits, p.unknown, err = v.search(ctx, p.text, p.among); err != nil {
		return "", nil, err
	}
	if len(p.hits) == 0 && len(p.among) == len(v.servers) {
		p.unknown = append(p.unknown, v.unusable()...)
	}
	if p.from, err = offset(p.cursor, p.hits); err != nil {
		return "", nil, err
	}
	p.shown = p.hits[p.from:min(len(p.hits), p.from+p.limit)]
	said = p.said()
	if structured {
		forPrograms = p.encoded(v)
	}
	return said, forPrograms, nil
}

// unusable returns the servers, and the files that may define some, that can't be used though no
// one has switched them off.
func (v View) unusable() (all []unsearched) {
	for _, p := range v.problems {
		switch p.State {
		case discovery.Broken, discovery.Exposed, discovery.Invalid, discovery.Unusable, discovery.Unapproved,
			discovery.New:
			all = append(all, unsearched{cmp.Or(p.Server, p.Source.Path), p.Reason})
		}
	}
	return all
}

// decodeQuery checks the arguments of search_tools by hand, as those of run_python.
func (v View) decodeQuery(raw json.RawMessage) (q query, err error) {
	given, err := args.Fields(raw, SearchTools, []string{"query", "server", "detail", "limit", "cursor"})
	if err != nil {
		return q, err
	}
	var server string
	texts := map[string]*string{"query": &q.text, "server": &server, "detail": &q.detail, "cursor": &q.cursor}
	for name, to := range texts {
		if raw := given[name]; raw != nil && json.Unmarshal(raw, to) != nil {
			return q, args.Errorf("argument %q must be a string, not %s", name, args.Kind(raw))
		}
	}
	q.text, q.among = strings.TrimSpace(q.text), v.servers
	if server != "" {
		s, ok := v.Find(server)
		if !ok {
			return q, args.Error(v.Unknown(server, v.servers))
		}
		q.among = []Server{s}
	}
	most := int64(maxPage)
	switch q.detail {
	case "": // what serves best
		q.detail = detailBrief
		if q.text == "" {
			q.detail = detailNames
		}
	case detailNames, detailBrief:
	case detailFull:
		most = maxFull
	default:
		return q, args.Errorf(`argument "detail" is %q, %q or %q, not %.40q`,
			detailNames, detailBrief, detailFull, q.detail)
	}
	limit, err := args.Integer("limit", given["limit"], usualHits[q.detail])
	if err != nil {
		return q, err
	}
	if limit <= 0 {
		return q, args.Errorf(`argument "limit" must be a positive number of tools such as %d`,
			usualHits[detailBrief])
	}
	q.limit = int(min(limit, most))
	return q, nil
}

// offset returns where the page begins that a cursor stands for.
func offset(cursor string, hits []hit) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	from, err := strconv.Atoi(cursor)
	if err != nil || from <= 0 || from >= len(hits) {
		return 0, args.Errorf(`argument "cursor" is of another search, or the tools have changed since: ` +
			`leave it out to start again`)
	}
	return from, nil
}

// next returns the cursor of the page behind this one; empty where there isn't one.
func (p *page) next() string {
	if to := p.from + len(p.shown); to < len(p.hits) {
		return strconv.Itoa(to)
	}
	return ""
}

// said returns the page for a model. It shows fewer hits than asked for where they would be too
// long.
func (p *page) said() string {
	body := p.cut()
	var out strings.Builder
	query := text.Brief(text.Line(p.text), maxLine)
	switch {
	case len(p.hits) == 0 && query == "":
		out.WriteString("There are no tools.\n")
	case len(p.hits) == 0:
		fmt.Fprintf(&out, "Nothing fits %q. "+
			"Try other words for what the tool does, or no query to see all.\n", query)
	case !fitting(p.hits):
		fmt.Fprintf(&out, "Nothing fits %q. The nearest, which may do something else:\n", query)
	}
	out.WriteString(body)
	if cursor := p.next(); cursor != "" {
		to := p.from + len(p.shown)
		fmt.Fprintf(&out, "[%d to %d of %d; cursor=%q goes on]\n", p.from+1, to, len(p.hits), cursor)
	}
	var old, unknown []string
	for _, set := range setsOf(p.shown) {
		if !set.asOf.IsZero() {
			old = append(old, fmt.Sprintf("%s (%s old)", text.Line(set.Server.Name), age(set.asOf)))
		}
	}
	for _, u := range p.unknown {
		unknown = append(unknown, text.Brief(text.Line(u.Server+": "+u.Reason), maxReason))
	}
	out.WriteString(some("cached, the server not asked since", old))
	out.WriteString(some("not searched", unknown))
	return strings.TrimSuffix(out.String(), "\n")
}

// some returns a line with the first of some clauses, and how many more there are.
func some(title string, clauses []string) string {
	more := ""
	switch n := len(clauses); {
	case n == 0:
		return ""
	case n > maxReasons:
		clauses, more = clauses[:maxReasons], fmt.Sprintf("; and %d more", n-maxReasons)
	}
	return fmt.Sprintf("[%s: %s%s]\n", title, strings.Join(clauses, "; "), more)
}

// cut returns the text of the hits that are shown, of which it leaves out as many as don't fit.
func (p *page) cut() string {
	for {
		told := p.tell()
		switch {
		case len(told) <= maxPageBytes:
			return told
		case len(p.shown) == 1:
			h := p.shown[0]
			rest := fmt.Sprintf("\n… cut here; in run_python, help(mcp_%s.%s) has all of it\n",
				h.set.Server.Alias, h.set.aliases[h.tool.Name])
			return text.First(told, maxPageBytes-len(rest)) + rest
		}
		p.shown = p.shown[:len(p.shown)/2]
	}
}

func (p *page) tell() string {
	var out strings.Builder
	if p.detail == detailFull {
		for _, set := range setsOf(p.shown) {
			out.WriteString(set.declarations(p.shown))
		}
		return text.Safe(out.String())
	}
	for _, h := range p.shown {
		if out.Len() > maxPageBytes {
			break // too long already
		}
		if p.detail == detailNames {
			fmt.Fprintf(&out, "mcp_%s.%s\n", h.set.Server.Alias, h.set.aliases[h.tool.Name])
			continue
		}
		out.WriteString(text.Brief(text.Line(h.set.signature(h.tool)), maxSignature) + "\n")
		about := h.tool.Description
		if strings.TrimSpace(about) == "" {
			about = h.tool.Title
		}
		if about = text.Line(text.First(about, maxAbout)); about != "" {
			out.WriteString("  " + text.Brief(about, maxLine) + "\n")
		}
	}
	return text.Safe(out.String())
}

// setsOf returns the toolsets of some hits, in their order.
func setsOf(hits []hit) (sets []*Toolset) {
	for _, h := range hits {
		if !slices.Contains(sets, h.set) {
			sets = append(sets, h.set)
		}
	}
	return sets
}

// declarations returns the Python declarations of those hits that are the server's.
func (t *Toolset) declarations(hits []hit) string {
	p := provider(t.Server)
	p.Tools = map[string]entrypoint.Tool{}
	for _, h := range hits {
		if h.set == t {
			told := t.told(h.tool)
			p.Tools[told.SafeName] = told
		}
	}
	declared, plain := stubs.Declarations(p), ""
	if strings.Contains(declared, ") -> Any:") {
		plain = "; a result of type Any is a dict or list where its text is JSON, else a str"
	}
	return fmt.Sprintf("# called as mcp_%s.<name>(…)%s\n%s", t.Server.Alias, plain, declared)
}

// pageJSON is a page as programs read it: its tools are told as code has them from
// runtime.search_tool_docs.
type pageJSON struct {
	Results []toolDoc    `json:"results"`
	Total   int          `json:"total"`            // on all pages
	Cursor  string       `json:"cursor,omitempty"` // of the next one
	Unknown []unsearched `json:"unknown,omitempty"`
}

// encoded returns the tools that the text shows, as far as there is room.
func (p *page) encoded(v View) json.RawMessage {
	out := pageJSON{Results: []toolDoc{}, Total: len(p.hits), Cursor: p.next()}
	out.Unknown = p.unknown[:min(len(p.unknown), maxPage)]
	for _, h := range p.shown {
		out.Results = append(out.Results, v.doc(h, p.detail))
	}
	raw := text.JSON(out)
	if len(raw) > maxPageJSON {
		for i := range out.Results {
			d := &out.Results[i]
			d.InputSchema, d.OutputSchema, d.Annotations = nil, nil, nil
			d.Signature, d.Title = text.Brief(d.Signature, maxSignature), text.Brief(d.Title, maxLine)
			d.Description = text.Brief(d.Description, maxLine)
		}
		raw = text.JSON(out)
	}
	for len(raw) > maxPageJSON && len(out.Results) > 0 {
		out.Results = out.Results[:len(out.Results)/2]
		raw = text.JSON(out)
	}
	return raw
}
