package elicit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// TestQuestionsHoldNothingElse: whatever a server sends, the client is sent MCP's members by their
// exact names, in texts that show what they say, under the server's name.
func TestQuestionsHoldNothingElse(t *testing.T) {
	const asks = `"message":"The MCP server \"github\" asks, by way of mcp-bridge: m"`
	form := func(schema string) string { return `{"message":"m","requestedSchema":` + schema + `}` }
	form1 := func(input string) string { return form(`{"type":"object","properties":{"a":` + input + `}}`) }
	page := func(url string) string {
		return fmt.Sprintf(`{"mode":"url","message":"m","elicitationId":"7","url":%q}`, url)
	}
	for _, tc := range []struct{ name, params, want string }{
		{"a member that folds to another",
			`{"message":"m","me\u017f\u017fage":"The Python code of this run wants to call","MESSAGE":"x"}`,
			`{` + asks + `,"requestedSchema":{"properties":{},"type":"object"}}`},
		{"in an input", form1(`{"type":"string","title":"t","T\u0069tLe":"x","de\u017fcription":"x",` +
			`"pattern":"(a+)+$"}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"title":"t","type":"string"}},"type":"object"}}`},
		{"texts of an input", form1(`{"type":"string","title":"a\u001b[2J\n\nThe bridge",` +
			`"description":"\u202edrow` + strings.Repeat("x", maxHelp) + `"}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"description":"drow` +
				strings.Repeat("x", maxHelp-4) + `…","title":"a[2J The bridge","type":"string"}},"type":"object"}}`},
		{"choices", form1(`{"type":"string","enum":["x","y"],"enumNames":["X\u202e","Y"],"default":"x"}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"default":"x","enum":["x","y"],"enumNames":["X",` +
				`"Y"],"type":"string"}},"type":"object"}}`},
		{"several choices", form1(`{"type":"array","maxItems":2,"default":["x"],"items":{"anyOf":[{"const":"x",` +
			`"title":"X","x":1}]}}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"default":["x"],"items":{"anyOf":[{"const":"x",` +
				`"title":"X"}]},"maxItems":2,"type":"array"}},"type":"object"}}`},
		{"a value that can't be shown", form1(`{"type":"string","enum":["x\u202ey"]}`),
			"requestedSchema: properties: a: enum: it is no text of at most 200 printable bytes"},
		{"a name that can't be shown", form(`{"properties":{"a\u001b":{}}}`),
			"requestedSchema: properties: a: it is no text of at most 200 printable bytes"},
		{"no value", form1(`{"enum":[null]}`), "requestedSchema: properties: a: enum: one is null"},
		{"an input that is not an object", form1(`true`), "requestedSchema: properties: a: it is no object"},
		{"too many choices", form1(`{"enum":[1` + strings.Repeat(",1", maxChoices) + `]}`),
			"requestedSchema: properties: a: enum: it is no list of at most 200"},
		{"a long form", form1(`{"oneOf":[{}` + strings.Repeat(`,{"description":"`+strings.Repeat("x", maxHelp)+`"}`,
			50) + `]}`), "requestedSchema: it is longer than 32768 bytes"},
		{"another mode", `{"mode":"FORM","message":"m"}`, "its mode is neither form nor url"},

		{"a page", page("https://example.org/a?b=c#d"), `{"elicitationId":"7",` + asks +
			`,"mode":"url","url":"https://example.org/a?b=c#d"}`},
		{"a page that isn't encrypted", page("http://example.org/"), "its url is not an https URL"},
		{"a script", page("javascript:alert(1)"), "its url is not an https URL"},
		{"a file", page("file:///etc/passwd"), "its url is not an https URL"},
		{"a page without a host", page("https:///x"), "its url is not an https URL"},
		{"a user that looks like a host", page("https://bank.example@evil.example/"),
			"its url has a user in it, which looks like a host"},
		{"letters that look like others", page("https://ex\u0430mple.org/"),
			"its url has other characters than those of URLs, or more than 2000"},
		{"an odd number", form1(`{"minimum":"5"}`), "requestedSchema: properties: a: minimum: it is no number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, err := Question("github", json.RawMessage(tc.params))
			if err != nil {
				if got := err.Error(); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				return
			}
			if string(text.JSON(asked["_meta"])) != `{"mcp-bridge/server":"github"}` {
				t.Errorf("_meta is %s", asked["_meta"])
			}
			delete(asked, "_meta")
			if got := string(text.JSON(asked)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
