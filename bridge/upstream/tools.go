package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	maxPages = 1000
	maxTools = 10_000
)

// toolCache keeps a session's tools until the server says that they changed.
type toolCache struct {
	stale atomic.Int64  // raised by every notification
	turn  chan struct{} // has room for one: who lists. It guards what follows
	valid bool
	asOf  int64 // stale when the list was begun
	list  []Tool
	at    time.Time
	age   time.Duration // for which the list is good from then on; see fresh
	heard int64         // the inbox's when the list was begun
}

// listTools is the server's tools, from the cache if they didn't change. Of several callers one lists, under its own
// context, and the others wait under theirs.
func (s *session) listTools(ctx context.Context) ([]Tool, error) {
	defer s.used(ctx)() // also while another one lists
	c := &s.tools
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fresh() {
		return slices.Clone(c.list), nil
	}
	now, heard := c.stale.Load(), s.in.heard.Load()
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.ListTimeout, fmt.Errorf("it did not list its tools within %v", s.cfg.ListTimeout))
	defer cancel()
	list, age, err := s.fetchTools(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.valid, c.asOf, c.list, c.at, c.age, c.heard = true, now, list, time.Now(), age, heard
	s.listed(slices.Clone(list))
	return slices.Clone(list), nil
}

// fetchTools reads all pages, and says how long they are good.
func (s *session) fetchTools(ctx context.Context) (list []Tool, age time.Duration, err error) {
	names, position := map[string]bool{}, 0
	age, err = s.pages(ctx, tools, func(raw json.RawMessage) int {
		t, ok := readTool(raw)
		if s.inHeaders() {
			t.Invalid = badHeaders(t)
		}
		if !ok || names[t.Name] {
			s.cfg.Log.Warn("a tool without a name, or with another's, is left out", "server", s.server.Name, "position", position, "tool", t.Name)
		} else {
			names[t.Name] = true
			list = append(list, t)
		}
		position++
		return len(list)
	})
	if err != nil {
		return nil, 0, err
	}
	return list, age, nil
}

// badHeaders returns why a tool can't be called over HTTP by the newer protocol, which would have
// arguments of its in headers (x-mcp-header); empty where it can.
func badHeaders(t Tool) string {
	if !bytes.Contains(t.InputSchema, []byte(`"x-mcp-header"`)) {
		return ""
	}
	if err := mcp.ValidateParamHeaderAnnotations(&mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}); err != nil {
		return text.Line(err.Error())
	}
	return ""
}

// readTool reads one definition field by field, so that an odd one costs nothing but itself. What it
// says to people and models is made safe to show here, for all that is made of it.
func readTool(raw json.RawMessage) (Tool, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return Tool{}, false
	}
	str := func(key string) (s string) {
		_ = json.Unmarshal(fields[key], &s)
		return s
	}
	t := Tool{
		Name: str("name"), Title: text.Line(str("title")), Description: text.Safe(str("description")),
		InputSchema: text.Schema(fields["inputSchema"]), OutputSchema: text.Schema(fields["outputSchema"]), Annotations: fields["annotations"],
	}
	return t, t.Name != ""
}
