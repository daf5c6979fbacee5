package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

const searchToolsName = "search_tools"

// How much search_tools tells of each tool.
const (
	detailNames = "names"
	detailBrief = "brief"
)

// usualHits are how many tools a page has where nobody says.
var usualHits = map[string]int{detailNames: 40, detailBrief: 10, detailFull: 3}

var searchArgumentNames = []string{"query", "server", "detail", "limit", "cursor"}

// searchTool is search_tools as it is listed.
func searchTool(structured bool) mcp.Tool {
	t := mcp.NewToolWithRawSchema(searchToolsName, "Find tools of the user's MCP servers by what they do (no query: all), as names, signatures (brief) or Python declarations (full).", json.RawMessage(
		`{"type":"object","properties":{"query":{"type":"string"},"server":{"type":"string"},`+
			`"detail":{"enum":["names","brief","full"]},"limit":{"type":"integer"},"cursor":{"type":"string"}}}`))
	t.Title, t.Annotations = "Find tools", onlyReads()
	if structured { // pageJSON, as far as programs need to know it beforehand
		t.RawOutputSchema = json.RawMessage(`{"type":"object","properties":{"results":{"type":"array","items":{"type":"object"}},"total":{"type":"integer"},` +
			`"cursor":{"type":"string"},"unknown":{"type":"array","items":{"type":"object"}}},"required":["results","total"]}`)
	}
	return t
}

// searchArguments are what a caller of search_tools asks for, checked.
type searchArguments struct {
	query  string
	among  []entry // all servers, or the one
	detail string
	limit  int
	cursor string
}

// searchTools is one call of the tool. It takes no place among the runs.
func (b *Bridge) searchTools(ctx context.Context, raw json.RawMessage) *mcp.CallToolResult {
	began, id := time.Now(), newID()
	res, err := b.foundTools(ctx, id, raw)
	took := rounded(time.Since(began))
	requestOf(ctx).Afterwards(func() { b.clients.Log(slog.LevelInfo, searchToolsName, "call", id, "ok", err == nil, "took", took) })
	if err != nil {
		status := entrypoint.CodeValidation
		var call *entrypoint.CallError
		var wrong args.Error
		if errors.As(err, &call) {
			status = call.Code
		} else if !errors.As(err, &wrong) {
			status = output.StatusUnavailable
		}
		return mcp.NewToolResultError("status: " + status + " — " + err.Error())
	}
	return res
}

// foundTools is text for a model, and nothing else: hosts show structuredContent, where there is some, in its stead, and that is longer.
// Who reads it with a program has it in OutputStructured; an outputSchema would have every conversation pay for what few read.
func (b *Bridge) foundTools(ctx context.Context, id string, raw json.RawMessage) (*mcp.CallToolResult, error) {
	if b.broken != nil {
		return nil, errors.New(output.Refused("", output.StatusUnavailable, b.broken).Message)
	}
	ctx, c, release := b.pin(ctx)
	defer release()
	a, err := c.decodeSearch(raw)
	if err != nil {
		return nil, err
	}
	r := requestOf(ctx)
	ctx = b.forwarding(ctx, r) // of a server that is started for this, later calls of this client's may need it
	h := b.host(ctx, id, arguments{catalog: c, servers: c.servers}, r, nil, nil)
	boxes, unknown := h.searchable(ctx, a.among)
	hits, err := c.shelf.matching(ctx, a.query, boxes)
	if err != nil {
		return nil, ended(err)
	}
	from, err := a.offset(hits)
	if err != nil {
		return nil, err
	}
	p := page{a: a, hits: hits, from: from, unknown: unknown}
	shown, body := p.fitting()
	res := mcp.NewToolResultText(p.text(shown, body))
	if b.structured {
		res.RawStructuredContent = p.encoded(h, shown)
	}
	return res, nil
}

// matching is what fits a query best, or for none all there is, in order.
func (s *shelf) matching(ctx context.Context, query string, boxes []*toolbox) ([]hit, error) {
	if query != "" {
		return s.ranking.search(ctx, query, boxes)
	}
	var all []hit
	for _, b := range boxes {
		for _, t := range b.tools {
			all = append(all, hit{box: b, tool: t})
		}
	}
	return all, nil
}

// decodeSearch checks the arguments by hand, as those of run_python.
func (c *catalog) decodeSearch(raw json.RawMessage) (a searchArguments, err error) {
	given, err := args.Fields(raw, searchToolsName, searchArgumentNames)
	if err != nil {
		return a, err
	}
	var server string
	for name, to := range map[string]*string{"query": &a.query, "server": &server, "detail": &a.detail, "cursor": &a.cursor} {
		if v := given[name]; v != nil && json.Unmarshal(v, to) != nil {
			return a, args.Errorf("argument %q must be a string, not %s", name, args.Kind(v))
		}
	}
	a.query, a.among = strings.TrimSpace(a.query), c.servers
	if server != "" {
		e, ok := c.find(server)
		if !ok {
			return a, args.Error(c.unknown(server, c.servers))
		}
		a.among = []entry{e}
	}
	switch a.detail {
	case "" /* what serves best */ :
		a.detail = detailBrief
		if a.query == "" {
			a.detail = detailNames
		}
	case detailNames, detailBrief, detailFull:
	default:
		return a, args.Errorf(`argument "detail" is %q, %q or %q, not %.40q`, detailNames, detailBrief, detailFull, a.detail)
	}
	limit, err := args.Integer("limit", given["limit"], int64(usualHits[a.detail]))
	if err != nil {
		return a, err
	}
	if limit <= 0 {
		return a, args.Errorf(`argument "limit" must be a positive number of tools such as %d`, usualHits[detailBrief])
	}
	a.limit = int(min(limit, maxPage))
	if a.detail == detailFull {
		a.limit = min(a.limit, maxFull)
	}
	return a, nil
}

// offset is where the page begins that the cursor stands for. One that was given for another search, or before the tools have
// changed, would skip tools or repeat them.
func (a searchArguments) offset(hits []hit) (int, error) {
	if a.cursor == "" {
		return 0, nil
	}
	number, mark, _ := strings.Cut(a.cursor, "-")
	from, err := strconv.Atoi(number)
	if err != nil || from <= 0 || from >= len(hits) || mark != fingerprint(hits) {
		return 0, args.Errorf(`argument "cursor" is of another search, or the tools have changed since: leave it out to begin anew`)
	}
	return from, nil
}

// fingerprint is a short mark of a list of hits.
func fingerprint(hits []hit) string {
	sum := fnv.New32a()
	for _, h := range hits {
		_, _ = sum.Write([]byte(h.box.server.name + "\x00" + h.tool.Name + "\x00")) // never fails
	}
	return strconv.FormatUint(uint64(sum.Sum32()), 36)
}

// servers are those of some hits, in their order.
func serversOf(hits []hit) (boxes []*toolbox) {
	for _, h := range hits {
		if !slices.Contains(boxes, h.box) {
			boxes = append(boxes, h.box)
		}
	}
	return boxes
}
