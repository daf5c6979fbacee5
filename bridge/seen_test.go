package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// result is a CallToolResult of some contents.
func result(contents ...string) json.RawMessage {
	return json.RawMessage(`{"content":[` + strings.Join(contents, ",") + `]}`)
}

func textContent(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

// seeing is a bridge whose code calls the tool that it is given, which answers with a result.
func seeing(t *testing.T, dir string, answer func(tool string) json.RawMessage) *Bridge {
	t.Helper()
	return build(t, func(c *Config) {
		c.Tools = catalog.OpenStore(dir)
		up := c.Upstreams.(fakeUpstreams)
		up.call = func(_ context.Context, _, tool string, _ json.RawMessage) (json.RawMessage, error) {
			return answer(tool), nil
		}
		c.Upstreams = up
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			server, tool, _ := strings.Cut(r.Code, "/")
			_, err := h.Call(ctx, sandbox.Call{Run: r.ID, ID: "1", Provider: server, Tool: tool,
				Input: json.RawMessage(`{}`)})
			return printed(fmt.Sprint(err)), nil
		}}
	})
}

const issues = `[{"number":4711,"title":"SECRET-title","labels":{"SECRET/key":1}},` +
	`{"number":4712,"title":"SECRET","labels":{}},{"number":4713,"title":"SECRET"}]`

// TestSeenResults: once a result of a tool without a schema has passed, signatures, declarations
// and documentation have its shape, also in the next process; the file has nothing else of it.
func TestSeenResults(t *testing.T) {
	dir := t.TempDir()
	b := seeing(t, dir, func(string) json.RawMessage { return result(textContent(issues)) })
	find := func(b *Bridge, detail string) string {
		return found(t, b, `{"query":"me","server":"github","detail":"`+detail+`"}`)
	}
	if got := find(b, "brief"); strings.Contains(got, "seen") {
		t.Fatalf("nothing was seen yet: %s", got)
	}
	// Without a client there is no answer to wait for: what is done after it is done at once.
	if got := b.runPython(t.Context(), json.RawMessage(`{"code":"github/me"}`)); got.IsError {
		t.Fatal(got)
	}
	const shape = "list[{number: int, title: str, labels?: {str: int}}]"
	for name, b := range map[string]*Bridge{"this process": b, "the next": seeing(t, dir, nil)} {
		if got := find(b, "brief"); !strings.Contains(got,
			"mcp_github.me(**kwargs: Any) -> "+shape+" # seen, not declared") {
			t.Errorf("%s: %s", name, got)
		}
		if got := find(b, "full"); !strings.Contains(got,
			"Results seen so far, not declared by the server: "+shape) {
			t.Errorf("%s: %s", name, got)
		}
		var told entrypoint.Provider
		if err := json.Unmarshal([]byte(ask(t, hostFor(t, b, `["github"]`), "load_server", `{"server":"github"}`)),
			&told); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(told.Tools["me"].Stub, shape) || !strings.Contains(told.Tools["me"].Description,
			shape) {
			t.Errorf("%s: the guest is told %+v", name, told.Tools["me"])
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "471") {
		t.Errorf("kept is %s, %v", text, err)
	}
}

// seenShape returns what search_tools shows of the results of github's tool me, or nothing.
func seenShape(t *testing.T, b *Bridge) string {
	t.Helper()
	for line := range strings.Lines(found(t, b, `{"server":"github","detail":"brief"}`)) {
		if shape, is := strings.CutPrefix(line, "mcp_github.me(**kwargs: Any) -> "); is {
			shape, seen := strings.CutSuffix(strings.TrimSpace(shape), " # seen, not declared")
			if !seen && shape != "Any" {
				t.Errorf("got %s", shape)
			}
			return map[bool]string{true: shape}[seen]
		}
	}
	t.Fatal("the tool isn't found")
	return ""
}

// TestSeenTwice: the keys of a single object are written once a second result has them.
func TestSeenTwice(t *testing.T) {
	dir := t.TempDir()
	b := seeing(t, dir, func(string) json.RawMessage { return result(textContent(`{"login":"SECRET","id":1}`)) })
	for _, want := range []string{"{str: int | str}", "{login: str, id: int}"} {
		b.runPython(t.Context(), json.RawMessage(`{"code":"github/me"}`))
		for name, b := range map[string]*Bridge{"this process": b, "the next": seeing(t, dir, nil)} {
			if got := seenShape(t, b); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	}
}

// TestNotSeen: no other results have a shape that is kept.
func TestNotSeen(t *testing.T) {
	data := textContent(issues)
	for _, tc := range []struct {
		name, tool string
		result     json.RawMessage
	}{
		{"with a schema", "My Files!/read", result(data)},
		{"a failure", "github/me", json.RawMessage(`{"isError":true,"content":[` + data + `]}`)},
		{"two texts", "github/me", result(data, data)},
		{"a text", "github/me", result(textContent("hello"))},
		{"a number", "github/me", result(textContent("42"))},
		{"an image", "github/me", result(`{"type":"image","data":"AAAA","mimeType":"image/png"}`)},
		{"too long", "github/me", result(textContent(`["` + strings.Repeat("x", 512<<10) + `"]`))},
		{"nothing", "github/me", json.RawMessage(`{}`)},
		{"no result", "github/me", json.RawMessage(`7`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := seeing(t, t.TempDir(), func(string) json.RawMessage { return tc.result })
			b.runPython(t.Context(), json.RawMessage(`{"code":"`+tc.tool+`"}`))
			if got := found(t, b, `{"detail":"full"}`); seenShape(t, b) != "" || strings.Contains(got, "seen") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestLookingIsBounded: of one tool no more is looked at than its share.
func TestLookingIsBounded(t *testing.T) {
	big := `[{"id":"` + strings.Repeat("x", 200<<10) + `"},{"id":"x"}]`
	n := 0
	b := seeing(t, t.TempDir(), func(string) json.RawMessage {
		if n++; n < 10 {
			return result(textContent(big))
		}
		return result(textContent(`[{"late":1}]`))
	})
	for range 10 {
		b.runPython(t.Context(), json.RawMessage(`{"code":"github/me"}`))
	}
	if got := seenShape(t, b); got != "list[{id: str}]" {
		t.Errorf("got %s", got)
	}
}
