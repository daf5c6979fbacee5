package output

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// ReadTool is the name of the tool that Read answers.
const ReadTool = "read_output"

// How much of a run's output one call of read_output gives, in bytes.
const (
	defaultRead = 16 << 10
	maxRead     = 256 << 10
	minRead     = 64 // so that every call moves on
)

var readArgumentNames = []string{"run", "offset", "limit"}

// Tool returns read_output as it is listed.
func Tool() mcp.Tool {
	const schema = `{"type":"object","properties":{"run":{"type":"string"},"offset":{"type":"integer"},` +
		`"limit":{"type":"integer"}},"required":["run"]}`
	const about = "Read on in run_python's output that was cut; offsets are bytes."
	t := mcp.NewToolWithRawSchema(ReadTool, about, json.RawMessage(schema))
	t.Title = "Read on"
	t.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: new(true), DestructiveHint: new(false), IdempotentHint: new(true), OpenWorldHint: new(false),
	}
	return t
}

// Read answers a call of read_output: a piece of what a run printed, and where the next one begins.
// Errors are of args, or say which runs are kept.
func (v View) Read(raw json.RawMessage) (string, error) {
	given, err := args.Fields(raw, ReadTool, readArgumentNames)
	if err != nil {
		return "", err
	}
	var id string
	if run := given["run"]; run == nil || json.Unmarshal(run, &id) != nil || id == "" {
		return "", args.Errorf(`argument "run" must be the id that stands in the mark of the output that was cut`)
	}
	offset, err := args.Integer("offset", given["offset"], 0)
	if err != nil {
		return "", err
	}
	limit, err := args.Integer("limit", given["limit"], defaultRead)
	if err != nil {
		return "", err
	}
	if limit <= 0 {
		return "", args.Errorf(`argument "limit" must be a positive number of bytes such as %d`, defaultRead)
	}
	r, err := v.find(id)
	if err != nil {
		return "", err
	}
	return r.read(offset, limit)
}

// read returns a piece and a line on where it is, and on what was made of offset and limit. An
// offset below 0 counts from the end.
func (r *kept) read(offset, limit int64) (string, error) {
	total := int64(len(r.text))
	var said string
	if offset < 0 {
		said = fmt.Sprintf("offset=%d counts from the end; ", offset)
		offset = max(0, total+offset)
	}
	if within := min(max(limit, minRead), maxRead); within != limit {
		said += fmt.Sprintf("limit=%d became %d: it is from %d to %d bytes; ", limit, within, minRead, maxRead)
		limit = within
	}
	if offset > total || offset == total && total > 0 {
		return "", args.Errorf("offset %d is at or beyond the end: %d bytes of run %s are kept",
			offset, total, r.id)
	}
	from := len(text.First(r.text, int(offset)))
	piece := text.First(r.text[from:], int(limit))
	to, next := from+len(piece), "that is the end"
	if to < len(r.text) {
		next = fmt.Sprintf("offset=%d reads on", to)
	}
	if piece != "" && !strings.HasSuffix(piece, "\n") {
		piece += "\n"
	}
	return fmt.Sprintf("%s[bytes %d to %d of %d; %s%s]", piece, from, to, total, said, next), nil
}
