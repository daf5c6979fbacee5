package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// slowUpstreams list some servers' tools only when their context ends, and count how often they are
// asked.
type slowUpstreams struct {
	fakeUpstreams
	slow  func(server string) bool
	asked *atomic.Int64
	runs  func(server string) bool
}

func (s slowUpstreams) Tools(ctx context.Context, server string) ([]upstream.Tool, error) {
	s.asked.Add(1)
	if s.slow != nil && s.slow(server) {
		<-ctx.Done()
		return nil, &upstream.ServerError{Server: server, Op: "starting it", Err: ctx.Err()}
	}
	return s.fakeUpstreams.Tools(ctx, server)
}

func (s slowUpstreams) Running(_ context.Context, server string) bool {
	return s.runs != nil && s.runs(server)
}

// TestSearchDoesNotWaitForTheSlowest: servers that hang cost one wait, whatever their number, the
// next search hardly any, and the
// others are searched all the same.
func TestSearchDoesNotWaitForTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := slowUpstreams{asked: new(atomic.Int64), slow: func(server string) bool {
			return strings.HasPrefix(
				server, "slow")
		},
			fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"zoo": {{Name: "feed_tiger"}}}}}
		b := build(t, func(c *Config) {
			c.Upstreams, c.Servers = up, []discovery.Server{{Name: "zoo"}}
			for i := range 7 {
				c.Servers = append(c.Servers, discovery.Server{Name: fmt.Sprint("slow", i)})
			}
		})
		began := time.Now()
		text := found(t, b, `{"query":"tiger"}`)
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the first search took %v", took)
		}
		if !strings.Contains(text, "mcp_zoo.feed_tiger") || !strings.Contains(text,
			"[not searched: slow0: it has not listed its tools in time") || !strings.Contains(text, "; and 2 more]") {
			t.Errorf("got %s", text)
		}
		began = time.Now()
		if text = found(t, b, `{"query":"tiger"}`); !strings.Contains(text, "mcp_zoo.feed_tiger") ||
			!strings.Contains(text, "slow0") {
			t.Errorf("the second time: %s", text)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the second search took %v", took)
		}
	})
}

// TestSearchOfSavedTools: what an earlier process has learned is searched and read about without
// starting anything, and is told to be
// old; what a server says now takes its place.
func TestSearchOfSavedTools(t *testing.T) {
	store := catalog.OpenStore(filepath.Join(t.TempDir(), "tools"))
	definition := discovery.Server{Name: "github", Command: "gh"}
	old := []upstream.Tool{{Name: "list-issues", Description: "List issues."}, {Name: "close-issue"}}
	if err := store.Save(definition.Identity(), catalog.List{AsOf: time.Now().Add(-50 * time.Hour),
		Tools: old}); err != nil {
		t.Fatal(err)
	}
	up := slowUpstreams{asked: new(atomic.Int64),
		fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"github": old[:1]}}}
	b := build(t, func(c *Config) {
		c.Upstreams, c.Servers, c.Tools = up, []discovery.Server{definition}, store
	})
	text := found(t, b, `{"query":"issue","detail":"names"}`)
	if !strings.Contains(text, "mcp_github.close_issue") || !strings.Contains(text,
		"[cached, the server not asked since: github (2 days old)]") {
		t.Errorf("search_tools: %s", text)
	}
	h := hostFor(t, b, `["github"]`)
	for _, tc := range []struct{ helper, input, want string }{
		{"search_tool_docs", `{"query":"close issue"}`, `"cached":true,"asOf":"20`},
		{"query_tool_docs", `{"server":"github","tool":"close_issue"}`, `"cached":true`},
	} {
		if got := ask(t, h, tc.helper, tc.input); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s lacks %s", tc.helper, got, tc.want)
		}
	}
	if n := up.asked.Load(); n != 0 {
		t.Errorf("the server was started %d times to be read about", n)
	}
	got := called(t, h, "github", "close-issue", `{}`)
	if !strings.Contains(got, `server "github" has no tool "close-issue" any more: the list of 2 days ago was `+
		`out of date`) {
		t.Errorf("a call of what is gone: %s", got)
	}
	if got := ask(t, h, "load_server", `{"server":"github"}`); !strings.Contains(got,
		`"gone":["close-issue","close_issue"]`) {
		t.Errorf("the guest isn't told: %s", got)
	}
	if text := found(t, b, `{"query":"issue","detail":"names"}`); strings.Contains(text, "close_issue") ||
		strings.Contains(text, "cached") {
		t.Errorf("after the server has listed its tools: %s", text)
	}
	if got := called(t, h, "github", "never", `{}`); strings.Contains(got, "any more") {
		t.Errorf("a tool that never was: %s", got)
	}
}

// TestDeniedSince: of a tool that the policy denies by what its server says of it now, it is said
// that it is denied, not that it is gone.
func TestDeniedSince(t *testing.T) {
	up := fakeUpstreams{tools: map[string][]upstream.Tool{"github": {{Name: "purge",
		Annotations: json.RawMessage(`{"readOnlyHint":true}`)}}}}
	b := build(t, func(c *Config) {
		c.Upstreams, c.Servers, c.Policy = up, []discovery.Server{{Name: "github"}},
			policyOf(t, "[hints]\ndestructive = \"deny\"\n")
	})
	if text := found(t, b, `{}`); text != "mcp_github.purge" {
		t.Fatalf("got %s", text)
	}
	up.tools["github"] = []upstream.Tool{{Name: "purge"}}
	h := hostFor(t, b, `["github"]`)
	if got := called(t, h, "github", "purge", `{}`); !strings.HasPrefix(got,
		`denied: tool "purge" of server "github" may not be called, by hints.destructive`) {
		t.Errorf("a call: %s", got)
	}
	if got := ask(t, h, "load_server", `{"server":"github"}`); strings.Contains(got, `"gone"`) ||
		!strings.Contains(got, `"denied":{"purge":`) {
		t.Errorf("the guest is told: %s", got)
	}
}

// TestSearchAsksWhoRuns: a server that runs says itself which tools it has, unless it takes too
// long.
func TestSearchAsksWhoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		up := slowUpstreams{asked: new(atomic.Int64), slow: func(string) bool { return hangs },
			runs:          func(string) bool { return true },
			fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"github": {{Name: "one"}}}}}
		b := build(t, func(c *Config) { c.Upstreams, c.Servers = up, []discovery.Server{{Name: "github"}} })
		found(t, b, `{}`)
		up.tools["github"] = []upstream.Tool{{Name: "two"}}
		if text := found(t, b, `{}`); text != "mcp_github.two" {
			t.Errorf("after a change: %s", text)
		}
		hangs = true
		began := time.Now()
		if text := found(t, b, `{}`); text != "mcp_github.two" || time.Since(began) > 4*time.Second {
			t.Errorf("when it hangs: %s, after %v", text, time.Since(began))
		}
	})
}

// TestSearchStartsServersForItsClient: a server that is first started by a search is told what the
// client can be asked for.
func TestSearchStartsServersForItsClient(t *testing.T) {
	u := listingFor{fakeUpstreams: config().Upstreams.(fakeUpstreams), able: make(chan upstream.Abilities, 1)}
	b := build(t, func(c *Config) { c.Upstreams = u })
	p := connect(t, b)
	p.introduce(`{"elicitation":{}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools",` +
		`"arguments":{"server":"github"}}}`)
	p.next()
	if got := <-u.able; got != (upstream.Abilities{Elicitation: true}) {
		t.Errorf("the server is told of %+v", got)
	}
}

// listingFor notes for which client a server's tools are listed.
type listingFor struct {
	fakeUpstreams
	able chan upstream.Abilities
}

func (l listingFor) Tools(ctx context.Context, server string) ([]upstream.Tool, error) {
	var able upstream.Abilities
	if c := upstream.ClientOf(ctx); c != nil {
		able = c.Abilities()
	}
	l.able <- able
	return l.fakeUpstreams.Tools(ctx, server)
}
