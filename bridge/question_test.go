package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestQuestionsHoldNothingElse: whatever a server sends, the client is sent MCP's members by their exact names, in texts that show what
// they say, under the server's name.
func TestQuestionsHoldNothingElse(t *testing.T) {
	const elicit, sample = "elicitation/create", "sampling/createMessage"
	const asks = `"message":"The MCP server \"github\" asks, by way of mcp-bridge: m"`
	const prompt = `The MCP server \"github\" asks this, by way of mcp-bridge.`
	form := func(schema string) string { return `{"message":"m","requestedSchema":` + schema + `}` }
	form1 := func(input string) string { return form(`{"type":"object","properties":{"a":` + input + `}}`) }
	page := func(url string) string {
		return fmt.Sprintf(`{"mode":"url","message":"m","elicitationId":"7","url":%q}`, url)
	}
	for _, tc := range []struct{ name, method, params, want string }{
		{"a member that folds to another", elicit, `{"message":"m","me\u017f\u017fage":"The Python code of this run wants to call","MESSAGE":"x"}`,
			`{` + asks + `,"requestedSchema":{"properties":{},"type":"object"}}`},
		{"in an input", elicit, form1(`{"type":"string","title":"t","T\u0069tLe":"x","de\u017fcription":"x","pattern":"(a+)+$"}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"title":"t","type":"string"}},"type":"object"}}`},
		{"texts of an input", elicit, form1(`{"type":"string","title":"a\u001b[2J\n\nThe bridge","description":"\u202edrow` + strings.Repeat("x", maxHelp) + `"}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"description":"drow` + strings.Repeat("x", maxHelp-4) + `…","title":"a[2J The bridge","type":"string"}},"type":"object"}}`},
		{"choices", elicit, form1(`{"type":"string","enum":["x","y"],"enumNames":["X\u202e","Y"],"default":"x"}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"default":"x","enum":["x","y"],"enumNames":["X","Y"],"type":"string"}},"type":"object"}}`},
		{"several choices", elicit, form1(`{"type":"array","maxItems":2,"default":["x"],"items":{"anyOf":[{"const":"x","title":"X","x":1}]}}`),
			`{` + asks + `,"requestedSchema":{"properties":{"a":{"default":["x"],"items":{"anyOf":[{"const":"x","title":"X"}]},"maxItems":2,"type":"array"}},"type":"object"}}`},
		{"a value that can't be shown", elicit, form1(`{"type":"string","enum":["x\u202ey"]}`), "requestedSchema: properties: enum: it is no text of at most 200 printable bytes"},
		{"a name that can't be shown", elicit, form(`{"properties":{"a\u001b":{}}}`), "requestedSchema: properties: it is no text of at most 200 printable bytes"},
		{"no value", elicit, form1(`{"enum":[null]}`), "requestedSchema: properties: enum: one is null"},
		{"an input that is none", elicit, form1(`true`), "requestedSchema: properties: it is no object"},
		{"too many choices", elicit, form1(`{"enum":[1` + strings.Repeat(",1", maxChoices) + `]}`), "requestedSchema: properties: enum: it is no list of at most 200"},
		{"a long form", elicit, form1(`{"oneOf":[{}` + strings.Repeat(`,{"description":"`+strings.Repeat("x", maxHelp)+`"}`, 50) + `]}`), "requestedSchema: it is longer than 32768 bytes"},
		{"another mode", elicit, `{"mode":"FORM","message":"m"}`, "its mode is neither form nor url"},

		{"a page", elicit, page("https://example.org/a?b=c#d"), `{"elicitationId":"7",` + asks + `,"mode":"url","url":"https://example.org/a?b=c#d"}`},
		{"a page that isn't encrypted", elicit, page("http://example.org/"), "its url is none of https"},
		{"a script", elicit, page("javascript:alert(1)"), "its url is none of https"},
		{"a file", elicit, page("file:///etc/passwd"), "its url is none of https"},
		{"a page without a host", elicit, page("https:///x"), "its url is none of https"},
		{"a user that looks like a host", elicit, page("https://bank.example@evil.example/"), "its url has a user in it, which looks like a host"},
		{"letters that look like others", elicit, page("https://ex\u0430mple.org/"), "its url has other characters than those of URLs, or more than 2000"},

		{"a model", sample, `{"messages":[{"role":"user","content":{"type":"text","text":"hi\u001b","x":1},"x":1}],"systemPrompt":"Be brief.","includeContext":"allServers",` +
			`"include\u0043ontext":"allServers","temperature":0.50,"maxTokens":5,"metadata":{"x":1},"sy\u017ftemPrompt":"x","modelPreferences":{"hints":[{"name":"m","x":1}],"costPriority":1}}`,
			`{"maxTokens":5,"messages":[{"content":{"text":"hi","type":"text"},"role":"user"}],"modelPreferences":{"costPriority":1,"hints":[{"name":"m"}]},"systemPrompt":"` + prompt + `\n\nBe brief.","temperature":0.50}`},
		{"blocks", sample, `{"messages":[{"role":"user","content":[{"type":"image","data":"QUJD","mimeType":"image/png"},{"type":"text","text":"x"}]}]}`,
			`{"messages":[{"content":[{"data":"QUJD","mimeType":"image/png","type":"image"},{"text":"x","type":"text"}],"role":"user"}],"systemPrompt":"` + prompt + `"}`},
		{"another block", sample, `{"messages":[{"role":"user","content":{"type":"tool_use","name":"x"}}]}`, "messages: content: it is no text, image or audio"},
		{"a model with tools", sample, `{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"1","name":"t","input":{"q":"a\u001b"},"x":1}},` +
			`{"role":"user","content":[{"type":"tool_result","toolUseId":"1","isError":false,"structuredContent":{"n":9007199254740993},"content":[{"type":"text","text":"r","x":1}]}]}],` +
			`"tools":[{"name":"t","title":"T\n\nx","description":"d\u202e","inputSchema":{"type":"object","properties":{"q":{"description":"\u202eq","maximum":1.50}}},"outputSchema":{},"annotations":{},"_meta":{}}],` +
			`"toolChoice":{"mode":"auto","x":1}}`,
			`{"messages":[{"content":{"id":"1","input":{"q":"a"},"name":"t","type":"tool_use"},"role":"assistant"},` +
				`{"content":[{"content":[{"text":"r","type":"text"}],"isError":false,"structuredContent":{"n":9007199254740993},"toolUseId":"1","type":"tool_result"}],"role":"user"}],` +
				`"systemPrompt":"` + prompt + `","toolChoice":{"mode":"auto"},` +
				`"tools":[{"description":"d","inputSchema":{"properties":{"q":{"description":"q","maximum":1.50}},"type":"object"},"name":"t","title":"T x"}]}`},
		{"a tool's name that can't be shown", sample, `{"messages":[],"tools":[{"name":"t\u202e"}]}`, "tools: name: it is no text of at most 200 printable bytes"},
		{"a parameter that can't be shown", sample, `{"messages":[],"tools":[{"name":"t","inputSchema":{"properties":{"a\u202e":{}}}}]}`, "tools: inputSchema: a name in it can't be shown"},
		{"a schema that is none", sample, `{"messages":[],"tools":[{"name":"t","inputSchema":true}]}`, "tools: inputSchema: it is no object"},
		{"a deep schema", sample, `{"messages":[],"tools":[{"name":"t","inputSchema":` + strings.Repeat(`{"a":`, maxPlainDepth+1) + `1` + strings.Repeat(`}`, maxPlainDepth+1) + `}]}`,
			"tools: inputSchema: there are more than 100 lists and objects in each other"},
		{"a long number", sample, `{"messages":[],"tools":[{"name":"t","inputSchema":{"n":1` + strings.Repeat("0", maxLabel) + `}}]}`, "tools: inputSchema: a number in it has more than 200 digits"},
		{"too many tools", sample, `{"messages":[],"tools":[{}` + strings.Repeat(",{}", maxModelTools) + `]}`, "tools: it is no list of at most 200"},
		{"a result that is neither", sample, `{"messages":[{"role":"user","content":{"type":"tool_result","isError":"no"}}],"tools":[]}`, "messages: content: isError: it is neither true nor false"},
		{"an odd number", sample, `{"messages":[],"maxTokens":"5"}`, "maxTokens: it is no number"},
		{"no messages", sample, `{"maxTokens":5}`, "it has no messages"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, err := question("github", tc.method, json.RawMessage(tc.params))
			if err != nil {
				if got := err.Error(); got != tc.want+" (code -32602)" {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				return
			}
			if string(asked["_meta"]) != `{"mcp-bridge/server":"github"}` {
				t.Errorf("_meta is %s", asked["_meta"])
			}
			delete(asked, "_meta")
			if got := string(encode(asked)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
