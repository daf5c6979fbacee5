package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestHiddenText has a row for each kind of character that people don't see and models read: none of
// them reaches a question, a search or the manual.
func TestHiddenText(t *testing.T) {
	kinds := "\U000e0041\u200b\u2060\ufeff\u00ad\u3164\u115f\u1160\uffa0\u180e\u2062\u206a\ufff9\ufffb\U0001d173\U000e0100\ufe00\u034f\u202e\u2066\u009b\x1b\x7f\u200d\ufe0f"
	for _, r := range kinds {
		t.Run(fmt.Sprintf("%U", r), func(t *testing.T) {
			veiled := "a" + string(r) + "b"
			quoted := string(encode(veiled))
			seen := func(where, text string) {
				var decoded any
				if json.Unmarshal([]byte(text), &decoded) == nil {
					text = fmt.Sprint(decoded)
				}
				if strings.ContainsRune(text, r) || !strings.Contains(text, "ab") && where != "consent" {
					t.Errorf("%s: %+q", where, text)
				}
			}
			params := `{"message":` + quoted + `,"requestedSchema":{"properties":{"x":{"type":"string","title":` + quoted +
				`,"description":` + quoted + `,"oneOf":[{"const":"x","title":` + quoted + `}],"enumNames":[` + quoted + `]}}}}`
			asked, err := question("s"+veiled, json.RawMessage(params))
			if err != nil {
				t.Fatal(err)
			}
			seen("question", string(encode(asked)))
			for _, exact := range []string{`"enum":[` + quoted + `]`, `"default":` + quoted} {
				params := `{"message":"m","requestedSchema":{"properties":{"x":{"type":"string",` + exact + `}}}}`
				if _, err := question("s", json.RawMessage(params)); err == nil {
					t.Errorf("%s is asked for", exact)
				}
			}
			tool := upstream.Tool{Name: "t", Description: veiled, InputSchema: json.RawMessage(`{"properties":{"p":{"type":"string","description":` + quoted + `}}}`)}
			b := build(t, func(c *Config) {
				c.Servers = []discovery.Server{{Name: "s", Command: "s", Description: veiled}}
				c.Upstreams = fakeUpstreams{tools: map[string][]upstream.Tool{"s": {tool}}}
			})
			seen("search", found(t, b, `{"query":"t"}`))
			seen("search in full", found(t, b, `{"query":"t","detail":"full"}`))
			seen("manual", b.manual())
			change := describeChange(tool, []string{"description", "schema"})
			form, _ := (&consent{}).form(entry{name: "s"}, veiled, json.RawMessage(`{"x":`+quoted+`}`), policy.Decision{}, change)
			seen("consent", form["message"].(string))
		})
	}
}
