package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// answers takes what a request is answered with.
type answers chan string

func (a answers) Send(_ context.Context, m *jsonrpc.Message) error {
	a <- string(m.Raw)
	return nil
}

func (a answers) Post(*jsonrpc.Message) bool { return true }

// share opens a connection that clients of a principal share, until the end of the test.
func share(t *testing.T, b *Bridge) *client.Conn {
	t.Helper()
	conn := b.Clients().OpenShared(t.Context(), "alice", make(chan struct{}, 2))
	t.Cleanup(func() { conn.Close(context.Canceled) })
	return conn
}

// deliver has one of the clients that share a connection run code, and returns where the answer
// comes.
func deliver(t *testing.T, conn *client.Conn, code string) answers {
	t.Helper()
	out := make(answers, 10)
	conn.Deliver(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"name":"run_python","arguments":{"code":%q},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, code), out)
	return out
}

// TestSharedClientsDiffer: calls of servers that clients of one connection have made are told apart
// by the run, so that what a server asks never reaches another client of the same principal.
func TestSharedClientsDiffer(t *testing.T) {
	seen, proceed := make(chan upstream.Client, 4), make(chan struct{})
	b := build(t, func(c *Config) {
		u := c.Upstreams.(fakeUpstreams)
		u.call = func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
			seen <- upstream.ClientOf(ctx)
			<-proceed
			return json.RawMessage(`"ok"`), nil
		}
		c.Upstreams = u
		c.Runner = fakeRunner{run: func(ctx context.Context, _ sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			for range 2 {
				call := sandbox.Call{Provider: "github", Tool: "me", Input: json.RawMessage(`{}`)}
				if _, err := h.Call(ctx, call); err != nil {
					return sandbox.Result{}, err
				}
			}
			return printed("x"), nil
		}}
	})
	conn := share(t, b)
	one, two := deliver(t, conn, "1"), deliver(t, conn, "2")
	first, second := <-seen, <-seen // both calls are under way
	if first == second {
		t.Error("two clients of one principal pass for the same")
	}
	close(proceed)
	for range 2 {
		if again := <-seen; again != first && again != second {
			t.Error("two calls of one run pass for those of different clients")
		}
	}
	for _, out := range []answers{one, two} {
		if got := <-out; !strings.Contains(got, `"x`) {
			t.Errorf("got %s", got)
		}
	}
}

// TestSharedParking: what one client of a principal leaves unanswered doesn't keep the others from
// being asked.
func TestSharedParking(t *testing.T) {
	var q questioning
	conn := share(t, q.bridge(t, nil))
	for i := range maxParked + 1 {
		if got := <-deliver(t, conn, "1"); !strings.Contains(got, `"requestState"`) {
			t.Fatalf("call %d: %s", i+1, got)
		}
	}
}

// TestSharedConnectionEnds: the sandbox that clients without sessions share outlives the connection
// which stands for them, and the next one is told why it has ended.
func TestSharedConnectionEnds(t *testing.T) {
	b, g := keeping(t, func(c *Config) { c.State = StateSession })
	call := func() string {
		conn := b.Clients().OpenShared(t.Context(), "alice", make(chan struct{}, 2))
		defer conn.Close(context.Canceled)
		return <-deliver(t, conn, "count")
	}
	if got := call(); !strings.Contains(got, `"text":"1\n[sandbox `) {
		t.Fatalf("the first call: %s", got)
	}
	if got := call(); !strings.Contains(got, `"text":"2\n[sandbox `) {
		t.Errorf("the next connection: %s", got)
	}
	id := b.cfg.Sandboxes.List("alice")[0].ID
	if !b.cfg.Sandboxes.End("alice", id, "it was not used") {
		t.Fatal("it isn't there")
	}
	<-g.at(0).Done()
	if got := call(); !strings.Contains(got, ": new; sandbox "+id+" has ended: it was not used]") {
		t.Errorf("after its end: %s", got)
	}
}
