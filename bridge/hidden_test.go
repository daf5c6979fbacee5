package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestHiddenText has a row for each kind of character that people don't see and models read: none
// of them reaches a question, a search or the manual.
func TestHiddenText(t *testing.T) {
	kinds := "\U000e0041\u200b\u2060\ufeff\u00ad\u3164" +
		"\u115f\u1160\uffa0\u180e\u2062\u206a\ufff9\ufffb" +
		"\U0001d173\U000e0100\ufe00\u034f\u202e\u2066\u009b\x1b\x7f\u200d\ufe0f"
	for _, r := range kinds {
		t.Run(fmt.Sprintf("%U", r), func(t *testing.T) {
			veiled := "a" + string(r) + "b"
			quoted := string(text.JSON(veiled))
			seen := func(where, text string) {
				var decoded any
				if json.Unmarshal([]byte(text), &decoded) == nil {
					text = fmt.Sprint(decoded)
				}
				if strings.ContainsRune(text, r) || !strings.Contains(text, "ab") && where != "consent" {
					t.Errorf("%s: %+q", where, text)
				}
			}
			params := `{"message":` + quoted + `,"requestedSchema":{"properties":{"x":{"type":"string","title":` +
				quoted +
				`,"description":` + quoted + `,"oneOf":[{"const":"x","title":` + quoted + `}],"enumNames":[` + quoted +
				`]}}}}`
			asked, err := elicit.Question("s"+veiled, json.RawMessage(params))
			if err != nil {
				t.Fatal(err)
			}
			seen("question", string(text.JSON(asked)))
			for _, exact := range []string{`"enum":[` + quoted + `]`, `"default":` + quoted} {
				params := `{"message":"m","requestedSchema":{"properties":{"x":{"type":"string",` + exact + `}}}}`
				if _, err := elicit.Question("s", json.RawMessage(params)); err == nil {
					t.Errorf("%s is asked for", exact)
				}
			}
			tool := upstream.Tool{Name: "t", Description: veiled, InputSchema: json.RawMessage(
				`{"properties":{"p":{"type":"string","description":` + quoted + `}}}`)}
			b := build(t, func(c *Config) {
				c.Servers = []discovery.Server{{Name: "s", Command: "s", Description: veiled}}
				c.Upstreams = fakeUpstreams{tools: map[string][]upstream.Tool{"s": {tool}}}
			})
			seen("search", found(t, b, `{"query":"t"}`))
			seen("search in full", found(t, b, `{"query":"t","detail":"full"}`))
			seen("manual", b.Catalog().Manual(b.limits))
			u := &user{answer: answer("once")}
			tool.Name, tool.Description = veiled, "x"
			grants := granted{GrantOf(discovery.Server{Name: "s"}, tool)}
			tool.Description = veiled
			c := catalog.New(catalog.Config{}, []discovery.Server{{Name: "s"}}, nil)
			call := question(c, "s", tool, json.RawMessage(`{"x":`+quoted+`}`), policy.Decision{})
			if err := u.consent(t, grants, call); err != nil {
				t.Fatal(err)
			}
			seen("consent", u.saw[0])
		})
	}
}

// granted is the one grant there is.
type granted struct{ was policy.Grant }

func (g granted) Granted(policy.Grant) (policy.Grant, bool) { return g.was, true }

func (granted) Grant(policy.Grant) error { return nil }
