package bridge

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// changingUpstreams answer a call with the number of Updates that there were when its context was
// pinned.
type changingUpstreams struct {
	fakeUpstreams
	mu      sync.Mutex
	updates int
	pins    int
}

type pinnedAt struct{}

func (c *changingUpstreams) Update([]discovery.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates++
}

func (c *changingUpstreams) Pin(ctx context.Context) (context.Context, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins++
	return context.WithValue(ctx, pinnedAt{}, c.updates), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pins--
	}
}

func (c *changingUpstreams) Call(ctx context.Context, server, _ string, _ json.RawMessage) (json.RawMessage,
	error) {
	return json.Marshal(map[string]any{"server": server, "at": ctx.Value(pinnedAt{})})
}

func changing() *changingUpstreams {
	tools := []upstream.Tool{{Name: "x"}}
	return &changingUpstreams{fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"old": tools,
		"new": tools}}}
}

// A run keeps the servers that it began with, to its last call; the next one has the new ones.
func TestUpdateTakesEffectBetweenCalls(t *testing.T) {
	up := changing()
	var b *Bridge
	during := func() {}
	calls := func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
		during()
		var said []string
		for _, p := range []string{"old", "new"} {
			raw, err := h.Call(ctx, sandbox.Call{Provider: p, Tool: "x"})
			if err != nil {
				said = append(said, p+": "+err.Error())
				continue
			}
			said = append(said, string(raw))
		}
		for _, d := range r.Discovered {
			said = append(said, "discovered "+d.Name)
		}
		return printed(strings.Join(said, "\n")), nil
	}
	b = build(t, func(c *Config) {
		c.Upstreams, c.Runner = up, fakeRunner{run: calls}
		c.Servers, c.Problems = []discovery.Server{{Name: "old"}}, nil
	})
	during = func() {
		b.Update([]discovery.Server{{Name: "new"}}, []discovery.Problem{{Server: "old",
			Reason: "it is disabled there"}})
	}
	run := func() string {
		return b.runPython(t.Context(), json.RawMessage(`{"code":"x"}`)).Content[0].(mcp.TextContent).Text
	}
	if got := run(); !strings.Contains(got, `{"at":0,"server":"old"}`) ||
		!strings.Contains(got, `new: there is no server "new"`) ||
		!strings.Contains(got, "discovered old") || strings.Contains(got, "discovered new") {
		t.Errorf("the call during which the servers changed saw:\n%s", got)
	}
	during = func() {}
	if got := run(); !strings.Contains(got, `{"at":1,"server":"new"}`) ||
		!strings.Contains(got, `server "old" is configured in`) || !strings.Contains(got, "it is disabled there") ||
		!strings.Contains(got, "discovered new") || strings.Contains(got, "discovered old") {
		t.Errorf("the next call saw:\n%s", got)
	}
	if manual := b.Catalog().Manual(b.limits); !strings.Contains(manual, "mcp_new") ||
		strings.Contains(manual, "mcp_old") || !strings.Contains(manual, "it is disabled there") {
		t.Error("the manual doesn't show the new servers")
	}
	if up.pins != 0 {
		t.Errorf("%d pins are left", up.pins)
	}
}

// The client hears that the tools have changed when their definitions have, and only then, once it
// has shaken hands.
func TestClientHearsOfUpdate(t *testing.T) {
	b := build(t, func(c *Config) { c.Upstreams = changing() })
	p := connect(t, b)
	list := func() string {
		t.Helper()
		p.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
		for {
			if f := p.next(); string(f.ID) == `"list"` {
				return string(f.Result)
			} else if f.Method != "" {
				t.Fatalf("the client was sent %s before the answer", f.Method)
			}
		}
	}
	b.Update([]discovery.Server{{Name: "early"}}, nil)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if f := p.next(); !strings.Contains(string(f.Result), `"tools":{"listChanged":true}`) {
		t.Errorf("got %s", f.Result)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := list(); !strings.Contains(got, "There are: early") {
		t.Errorf("got %s", got)
	}
	// the tools stay
	b.Update([]discovery.Server{{Name: "early"}}, []discovery.Problem{{Server: "x", Reason: "y"}})
	if got := list(); !strings.Contains(got, "There are: early") {
		t.Errorf("got %s", got)
	}
	b.Update([]discovery.Server{{Name: "early"}, {Name: "late"}}, nil)
	if f := p.next(); f.Method != "notifications/tools/list_changed" || f.ID != nil {
		t.Errorf("got %+v", f)
	}
	if got := list(); !strings.Contains(got, "There are: early, late") {
		t.Errorf("got %s", got)
	}
}
