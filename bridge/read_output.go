package bridge

import (
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

const readOutputName = "read_output"

// How much of a run's output one call of read_output gives, in bytes.
const (
	defaultRead = 16 << 10
	maxRead     = 256 << 10
	minRead     = 64 // so that every call moves on
)

var readArgumentNames = []string{"run", "offset", "limit"}

// readOutputTool is read_output as it is listed.
func readOutputTool() mcp.Tool {
	t := mcp.NewToolWithRawSchema(readOutputName, "Read on in run_python's output that was cut; offsets are bytes.", json.RawMessage(
		`{"type":"object","properties":{"run":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["run"]}`))
	t.Title, t.Annotations = "Read on", onlyReads()
	return t
}

// readOutput is one call of the tool: a piece of what a run printed, and where the next one begins.
func (b *Bridge) readOutput(raw json.RawMessage) *mcp.CallToolResult {
	text, err := b.outputOf(raw)
	if err != nil {
		return mcp.NewToolResultError("status: " + entrypoint.CodeValidation + " — " + err.Error())
	}
	return mcp.NewToolResultText(text)
}

func (b *Bridge) outputOf(raw json.RawMessage) (string, error) {
	given, err := args.Fields(raw, readOutputName, readArgumentNames)
	if err != nil {
		return "", err
	}
	var id string
	if v := given["run"]; v == nil || json.Unmarshal(v, &id) != nil || id == "" {
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
	r, err := b.kept.find(id)
	if err != nil {
		return "", err
	}
	return r.read(offset, limit)
}

// read gives a piece and a line on where it is, and on what was made of offset and limit: an offset below 0 counts from the end.
func (r *keptRun) read(offset, limit int64) (string, error) {
	total := r.doc.size()
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
		return "", args.Errorf("offset %d is at or beyond the end: run %s printed %d bytes", offset, r.id, total)
	}
	from := r.doc.align(offset)
	to := r.doc.align(min(from+limit, total))
	text, _ := r.doc.slice(from, to)
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text += "\n"
	}
	next := "that is the end"
	if to < total {
		next = fmt.Sprintf("offset=%d reads on", to)
	}
	return fmt.Sprintf("%s[bytes %d to %d of %d; %s%s]", text, from, to, total, said, next), nil
}
