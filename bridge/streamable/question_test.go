package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// bell is a server with one tool.
type bell struct{ upstreams }

func (bell) Tools(context.Context, string) ([]upstream.Tool, error) {
	return []upstream.Tool{{Name: "ring"}}, nil
}

func (bell) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"ding"}]}`), nil
}

// TestQuestion: what a client with a session is asked comes on the stream of its call, and the
// answer by another POST of the same session, and of no other, nor of another principal.
func TestQuestion(t *testing.T) {
	rules, err := policy.Parse("policy.toml", []byte(`default = "ask"`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{
		Runner: runner(func(ctx context.Context, _ sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
			result, err := h.Call(ctx, sandbox.Call{Provider: "bell", Tool: "ring"})
			return printed(fmt.Sprintf("%s %v", result, err)), nil
		}),
		Upstreams: bell{}, Timeout: 30 * time.Second, MaxTimeout: 120 * time.Second, Policy: rules,
		Servers: []discovery.Server{{Name: "bell", Command: "bell"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, echo, func(c *streamable.Config) {
		c.Clients = b.Clients()
		users(c)
	})
	session := s.initialize(latest, `{"elicitation":{}}`, "Authorization: Bearer alice")
	other := s.initialize(latest, `{"elicitation":{}}`, "Authorization: Bearer alice")
	bob := s.initialize(latest, `{"elicitation":{}}`, "Authorization: Bearer bob")
	theirs := append(session[:1:1], bob[1:]...)
	stream := eventsOf(t, s.do(t.Context(), "POST", run(1, "x", ""), session...))
	question, ok := stream.next()
	if !ok || question.Method != "elicitation/create" {
		t.Fatalf("got %+v", question)
	}
	accept := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"answer":"once"}}}`,
		question.ID)
	decline := strings.Replace(accept, "accept", "decline", 1)
	for _, answer := range []struct {
		body    string
		session []string
		status  int
	}{{decline, other, 202}, {decline, bob, 202}, {decline, theirs, 404}, {accept, session, 202}} {
		if status, _, _ := s.post(answer.body, answer.session...); status != answer.status {
			t.Errorf("%s in %v: %d", answer.body, answer.session, status)
		}
	}
	if got, ok := stream.next(); !ok || !strings.Contains(got.text(), "ding") {
		t.Errorf("got %s", got.text())
	}
}
