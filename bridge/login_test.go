package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestLoginByPage holds that a call of a server that wants a login goes on once the user has logged
// in at the page that the client shows, and names the command where the client shows none or the
// user doesn't agree.
func TestLoginByPage(t *testing.T) {
	const command = "mcp-bridge login github --scope repo"
	for _, tt := range []struct {
		name, capabilities, action string
		fails                      bool // the login
		asked                      bool
		want                       string
	}{
		{"agreed", `{"elicitation":{"url":{}}}`, "accept", false, true, "done"},
		{"not agreed", `{"elicitation":{"url":{}}}`, "decline", false, true, command},
		{"failed", `{"elicitation":{"form":{},"url":{}}}`, "accept", true, true, command},
		{"forms alone", `{"elicitation":{}}`, "", false, false, command},
		{"nothing", `{}`, "", false, false, command},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logins atomic.Int64
			var in atomic.Bool
			b := build(t, func(c *Config) {
				fake := c.Upstreams.(fakeUpstreams)
				fake.call = func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
					if !in.Load() {
						return nil, &upstream.ServerError{Server: "github", Err: &upstream.LoginError{Server: "github",
							Scope: "repo", More: true}}
					}
					return json.RawMessage(`"done"`), nil
				}
				c.Upstreams = fake
				c.Login = func(ctx context.Context, s discovery.Server, scope string,
					agree func(context.Context, string, string) error) error {
					logins.Add(1)
					if s.Command != "gh" || scope != "repo" {
						t.Errorf("a login to %+v for %s", s, scope)
					}
					if err := agree(ctx, "https://login.example/authorize?state=s",
						"You log in at https://login.example."); err != nil {
						return err
					}
					if tt.fails {
						return errors.New("no one agreed in time")
					}
					in.Store(true)
					return nil
				}
				c.Runner = fakeRunner{run: func(ctx context.Context, _ sandbox.Request, h sandbox.Host) (sandbox.Result,
					error) {
					var said []string
					for range 2 {
						raw, err := h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me"})
						said = append(said, fmt.Sprint(string(raw), err))
					}
					return printed(strings.Join(said, "\n")), nil
				}}
			})
			p := connect(t, b)
			p.introduce(tt.capabilities)
			p.code(1, "x")
			if tt.asked {
				q := p.next()
				if q.Method != "elicitation/create" || q.Params.Message != `The MCP server "github" wants you to log `+
					`in. You log in at https://login.example.` {
					t.Fatalf("the client was asked %+v", q)
				}
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":%q}}`, q.ID, tt.action)
			}
			got := p.next().tool(t).Content[0].Text
			if strings.Count(got, tt.want) != 2 {
				t.Errorf("got %s, want %s twice", got, tt.want)
			}
			if n := logins.Load(); (n == 1) != tt.asked || n > 1 {
				t.Errorf("%d logins", n)
			}
		})
	}
}

// pages is a client that can show pages and is never asked.
type pages struct{ elicit.Channel }

func (pages) Abilities() elicit.Abilities { return elicit.Abilities{URL: true} }

// TestLoginOutlivesItsCaller: each call that waits for a login ends with its own context, and the
// login goes on for the others.
func TestLoginOutlivesItsCaller(t *testing.T) {
	var logins atomic.Int64
	var in atomic.Bool
	begun, release := make(chan struct{}), make(chan struct{})
	b := build(t, func(c *Config) {
		fake := c.Upstreams.(fakeUpstreams)
		fake.call = func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
			if !in.Load() {
				return nil, &upstream.ServerError{Server: "github", Err: &upstream.LoginError{Server: "github",
					Scope: "repo", More: true}}
			}
			return json.RawMessage(`"done"`), nil
		}
		c.Upstreams = fake
		c.Login = func(ctx context.Context, _ discovery.Server, _ string,
			_ func(context.Context, string, string) error) error {
			logins.Add(1)
			close(begun)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-release:
				in.Store(true)
				return nil
			}
		}
	})
	h := hostFor(t, b, `["github"]`)
	h.asker = &elicit.Asker{Channel: pages{}}
	call := func(ctx context.Context) (string, error) {
		raw, err := h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me"})
		return string(raw), err
	}
	first := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := call(ctx)
		first <- err
	}()
	<-begun
	cancel()
	if err := <-first; err == nil {
		t.Error("the cancelled first call has a result")
	}
	if _, err := call(ctx); err == nil {
		t.Error("a cancelled second call has a result")
	}
	close(release)
	if got, err := call(t.Context()); got != `"done"` || err != nil {
		t.Errorf("after the login: %s, %v", got, err)
	}
	if n := logins.Load(); n != 1 {
		t.Errorf("%d logins", n)
	}
}
