package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestWhoHasAsked: the records name the client, and say of which calls the user was asked.
func TestWhoHasAsked(t *testing.T) {
	b, path := audited(t, func(c *Config) {
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.me\"]\nverdict = \"ask\"")
		c.Runner = fakeRunner{run: func(ctx context.Context, _ sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			for range 2 {
				_, _ = h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me", Input: json.RawMessage(`{}`)})
			}
			return printed("ok"), nil
		}}
	})
	for _, name := range []string{"t", strings.Repeat("long", 50) + `\n`} {
		p := connect(t, b)
		p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{"elicitation":{}},"clientInfo":{"name":"%s","version":"1"}}}`, name)
		p.next()
		p.code(1, "1")
		p.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"answer":"run"}}}`, p.next().ID)
		p.next().tool(t)
	}
	p := connect(t, b) // has no name, and can't be asked
	p.call(`{"code":"1"}`)
	if _, err := b.RunDirect(t.Context(), Direct{Code: "1"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range readRecords(t, path) {
		got = append(got, fmt.Sprintf("%q %s %v %s", r.Client, r.Kind, r.Asked, r.Outcome))
	}
	cut := strings.Repeat("long", 16)
	want := []string{
		`"t" call true ok`, `"t" call false ok`, `"t" run false ok`,
		`"` + cut + `" call true ok`, `"` + cut + `" call false ok`, `"` + cut + `" run false ok`,
		`"" call false denied`, `"" call false denied`, `"" run false ok`,
		`"mcp-bridge run" call false denied`, `"mcp-bridge run" call false denied`, `"mcp-bridge run" run false ok`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}
