package bridge

import (
	"fmt"
	"strings"
	"testing"
)

// TestGeminiCLI: Gemini CLI takes a first text that is JSON for structured content, which must be
// an object, and shows its model an error instead of the result. An empty text before it keeps it
// from that. No other client gets one.
func TestGeminiCLI(t *testing.T) {
	for _, client := range []struct {
		name, version string
		fits          bool
	}{
		{"gemini-cli-mcp-client-bridge", "2025-06-18", true}, {"gemini-cli", "2026-07-28", true},
		{"claude-code", "2025-11-25", false}, {"not-gemini-cli", "2026-07-28", false},
	} {
		for _, tc := range []struct {
			text string
			json bool // and no object
		}{
			{"42\n", true}, {" [1, 2, 3]\n", true}, {"true", true}, {"null\n", true}, {`"a"`, true},
			{"{\"a\": 1}\n", false}, {"42 apples", false}, {"[1, 2", false},
		} {
			t.Run(client.name+" "+tc.text, func(t *testing.T) {
				p := connect(t, build(t, nil))
				meta := ""
				if client.version == "2026-07-28" {
					meta = strings.Replace(modern[len(`{"_meta":`):len(modern)-1], `"name":"t"`,
						fmt.Sprintf(`"name":%q`, client.name), 1)
				} else {
					p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,`+
						`"capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`,
						client.version, client.name)
					p.next()
				}
				p.run(1, fmt.Sprintf(`{"code":%q}`, tc.text), meta)
				c := p.next().tool(t).Content
				empty := len(c) == 2 && c[0].Type == "text" && c[0].Text == ""
				if want := client.fits && tc.json; empty != want || !want && len(c) != 1 {
					t.Errorf("got %+v, want an empty text first: %v", c, want)
				}
				if last := c[len(c)-1].Text; last != tc.text {
					t.Errorf("the text is %q", last)
				}
			})
		}
	}
}
