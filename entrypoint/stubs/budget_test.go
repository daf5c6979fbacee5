package stubs

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// repeated is text n times, with the number of each for its "%d", and commas between.
func repeated(n int, text string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// TestSteps: schemas that lead into themselves, or are long lists, cost what their size says, and
// lose nothing.
func TestSteps(t *testing.T) {
	for _, tc := range []struct{ name, schema, want string }{
		{"a hundred of itself", `{"properties":{"a":{"type":"string"}},"required":["a"],"allOf":[` +
			repeated(100, `{"$ref":"#"}`) + `]}`, `f(a: str) -> Any`},
		{"two in each other", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{}},` +
			`"allOf":[{"$ref":"#/$defs/b"}]},"b":{"properties":{"y":{}},"allOf":[{"$ref":"#/$defs/a"}]}}}`,
			`f(x: Any = None, y: Any = None) -> Any`},
		{"4000 alternatives", `{"anyOf":[` + repeated(4000, `{"properties":{"a":{"const":%d}}}`) + `]}`, ``},
		{"4000 required", `{"properties":{` + repeated(4000, `"p%d":{}`) + `},"required":[` +
			repeated(4000, `"p%d"`) + `]}`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := parse(json.RawMessage(tc.schema)).(*object)
			d := newDocument(root)
			d.alternatives(d.effective(root))
			if spent := maxSteps - d.left; spent > maxSteps/2 {
				t.Errorf("%d steps for %d bytes", spent, len(tc.schema))
			}
			if got := Signature("f", entrypoint.Tool{InputSchema: json.RawMessage(tc.schema)}); tc.want != "" &&
				got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestSpent: what is beyond the budget makes a schema say less, never that it takes no more than
// what was read.
func TestSpent(t *testing.T) {
	names := repeated(maxSteps, `"x"`)
	input := `{"anyOf":[{"properties":{"a":{"const":1}}},{"required":[` + names + `]},{"properties":{"c":{}}}]}`
	got := Signature("f", entrypoint.Tool{InputSchema: json.RawMessage(input)})
	if want := `f(a: Any = None, **kwargs: Any) -> Any`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// hostileSchemas cost, or are answered with, far more than their own size where each part is read
// as often as it is named.
var hostileSchemas = map[string]string{
	"references to itself, spelled in many ways": `{"allOf":[` +
		repeated(300, `{"$ref":"#/x%d/.."},{"$ref":"#/allOf/%d"},{"$ref":"#/%61llOf/%d"},{"$ref":"#"}`) + `]}`,
	"folded twice at each level": `{"$ref":"#/$defs/d0","$defs":{` +
		repeated(20, `"d%d":{"allOf":[{"$ref":"#/$defs/e%d"},{"$ref":"#/%24defs/e%d"},{"$ref":"#/$%64efs/e%d"}]}`) +
		`,` + nextLevels(20) + `}}`,
	"alternatives that are one long schema": `{"anyOf":[` + repeated(4000, `{"$ref":"#/$defs/a"}`) +
		`],"$defs":{"a":{"properties":{"p":{"description":"` + long + `"}}}}}`,
	"a long literal that all have": allHave(`{"enum":["` + long + `"]}`),
	"a long note that all have":    allHave(`{"description":"` + strings.Repeat("x y ", 200_000) + `"}`),
	"a long default that all have": allHave(`{"default":{"x":"` + long + `"}}`),
	"a type in a list":             allHave(`{"type":[` + repeated(100_000, `"object"`) + `]}`),
	"a long name of all":           allHave(`{"properties":{"` + long + `":{"properties":{"z":{}}}}}`),
	"a record of records by many names": `{"properties":{` +
		repeated(500, `"p%d":{"items":{"$ref":"#/$defs/a%d"}}`) +
		`},"$defs":{` + repeated(500, `"a%d":{"$ref":"#/$defs/r","allOf":[{"properties":{"p%d":{}}}]}`) +
		`,"r":{"properties":{` + repeated(500, `"q%d":{"description":"note","properties":{"z":{}}}`) + `}}}}`,
	"many records": `{"properties":{"a":{"anyOf":[` +
		repeated(1500, `{"properties":{"a%d":{"properties":{"b":{}}}}}`) + `]}}}`,
	"many literals": `{"properties":{"a":{"anyOf":[` +
		repeated(900, `{"enum":[`+repeated(90, `"`+"%d"+`x"`)+`,"%d"]}`) + `]}}}`,
	"one name in all": `{"properties":{` +
		repeated(500, `"-%d-":{"properties":{"-":{"properties":{"a":{}}},"--":{"properties":{"a":{}}}}}`) + `}}`,
	"nested and then big": `{"properties":{"a":{"default":` + strings.Repeat(`[`, 400) + `"` +
		strings.Repeat("x", 900_000) + `"` + strings.Repeat(`]`, 400) + `}}}`,
	"all required": `{"required":[` + repeated(60_000, `"p%d"`) + `],"properties":{` +
		repeated(30_000, `"p%d":{}`) + `}}`,
}

var long = strings.Repeat("x", 500_000)

// allHave returns the schema of 500 parameters that are all of one other schema.
func allHave(schema string) string {
	return `{"properties":{` + repeated(500, `"p%d":{"$ref":"#/$defs/a"}`) + `},"$defs":{"a":` + schema + `}}`
}

// nextLevels make each e of the schema's levels lead to the next d.
func nextLevels(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"e%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/%%24defs/d%[2]d"}]}`, i, i+1)
	}
	return strings.Join(all, ",")
}

// TestHostileSchemas: no schema takes long or gives a long text, alone or in each of a server's
// tools. Allocations stand for the time: all work on a schema makes some. In short mode the server
// has one tool.
func TestHostileSchemas(t *testing.T) {
	tools, most := 8, uint64(100_000_000) // allocations, seven times what the worst one takes
	if testing.Short() {
		tools, most = 1, most/4
	}
	for name, schema := range hostileSchemas {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(schema)) {
				t.Fatal("the test's own schema is no JSON")
			}
			tool := entrypoint.Tool{
				InputSchema:  json.RawMessage(schema),
				OutputSchema: json.RawMessage(schema),
			}
			p := entrypoint.Provider{Name: "x", Alias: "x", Tools: map[string]entrypoint.Tool{}}
			for i := range tools {
				p.Tools["x"+strings.Repeat("_", i)] = tool
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			signature, text := Signature("x", tool), Module(p)
			runtime.ReadMemStats(&after)
			if n := after.Mallocs - before.Mallocs; n > most {
				t.Errorf("%d allocations", n)
			}
			if len(signature) > maxModule || len(text) > 3*maxModule {
				t.Errorf("a signature of %d bytes, a module of %d", len(signature), len(text))
			}
		})
	}
}

// TestLongUnion: a type of very many alternatives is Any, as it is for the guest, whose Python
// takes long to join them.
func TestLongUnion(t *testing.T) {
	for n, want := range map[int]string{maxUnion: `f(a: FA | FA_2 | `, maxUnion + 1: `f(a: Any = None) -> Any`} {
		input := `{"properties":{"a":{"anyOf":[` + repeated(n, `{"properties":{"x":{}}}`) + `]}}}`
		if got := Signature("f", entrypoint.Tool{InputSchema: json.RawMessage(input)}); !strings.HasPrefix(
			got,
			want,
		) {
			t.Errorf("%d alternatives: %s", n, got)
		}
	}
}
