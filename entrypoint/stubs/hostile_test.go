package stubs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// nasty is text that ends strings, comments and lines, or looks like something else than it is.
var nasty = []string{
	`"""`, `""""`, `a"`, `\`, `\"""`, `"""\`, `'''`, "\n", "\r", "\r\n", "\x00", "\x0c", "\x1a", "\x85",
	"\u2028", "\u2029", "\u202e", "\ufeff",
	"\U000e0041", "x\n    raise SystemExit(1)\n", "# -*- coding: utf-16 -*-", "{}", "%s", "\xff\xfe", `\N{DASH}`,
	`\x`, `\u12`, "]: Any", "\")",
	strings.Repeat(
		`"`,
		100,
	), strings.Repeat(`\`, 99), "ſtr", "µ", "ª", "ⅷ", "print", "class", "None", "self", "__class__", "__x", "_",
	"1", "",
}

// TestHostile: every text of a tool is nasty, and the module compiles and declares every tool under
// Python's own eyes.
func TestHostile(t *testing.T) {
	c := compiler(t)
	for _, s := range nasty {
		q, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text := string(q)
		schema := `{"type":"object","title":T,"description":T,"properties":{
			T:{"type":"string","description":T,"pattern":T,"format":T,"default":T},
			"enum":{"enum":[T,1,true,null],"default":T},"const":{"const":T},
			"object":{"type":"object","description":T,"properties":{T:{"type":"integer","description":T},
			"b":{"enum":[T]}},"required":["b"]},
			"list":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"},T:{"$ref":T}}}},
			"type":{"type":T},"ref":{"$ref":"#/$defs/n"}},
			"required":["object",T],"$defs":{"n":{"type":"object","properties":{T:{"$ref":"#/$defs/n"}}}}}`
		schema = strings.ReplaceAll(schema, "T:", text+":")
		schema = strings.NewReplacer(":T", ":"+text, "[T", "["+text, ",T]", ","+text+"]").Replace(schema)
		if !json.Valid([]byte(schema)) {
			t.Fatalf("the test's own schema is no JSON: %s", schema)
		}
		names := []string{s, "tool", "tool " + s, "none", "any", "tool_text", "__getattr__", "typed_dict"}
		p := entrypoint.Provider{Name: s, Alias: "x", Description: s, Tools: map[string]entrypoint.Tool{}}
		for name, alias := range entrypoint.Aliases(names) {
			p.Tools[alias] = entrypoint.Tool{SafeName: alias, OriginalName: name, Description: s,
				InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
		}
		c.check(t, p)
	}
}

// TestOddSchemas: whatever stands for a schema, the tool is declared.
func TestOddSchemas(t *testing.T) {
	c := compiler(t)
	wide := `{"type":"object","properties":{"a0":{}`
	for i := range 5000 {
		name := strings.Repeat("x", i%50) + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		wide += `,"p` + name + `":{"type":"string"}`
	}
	wide += `}}`
	nested := strings.Repeat(`{"type":"object","properties":{"a":`, 400) + `{}` + strings.Repeat(`}}`, 400)
	p := entrypoint.Provider{Name: "odd", Alias: "odd", Tools: map[string]entrypoint.Tool{}}
	for i, schema := range []string{
		``, `null`, `true`, `false`, `5`, `"x"`, `[]`, `{}`, `{"type":5}`, `{"type":["object",3,"nonsense"]}`,
		`{"properties":[]}`, `{"properties":{"a":null,"b":5,"c":[],"d":true}}`,
		`{"required":"a"}`, `{"required":[1,null,"a","a"]}`, `{"$ref":"#"}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"allOf":[{"$ref":"#"},{"$ref":"#"},{"allOf":[{"$ref":"#"}]}]}`, `{"anyOf":[],"oneOf":5,"allOf":{}}`,
		`{"enum":[]}`, `{"properties":{"a":{"enum":[[],{},1.5,1e400,-0,18446744073709551616]}}}`,
		`{"properties":{"a":{"type":"number","default":1e400},"b":{"type":"integer","default":1e2},` +
			`"c":{"type":"integer","default":-0},"d":{"default":{"x":[1]}}}}`,
		`{"properties":{"a":{"items":{"$ref":"#/properties/a"}},"b":{"items":[{"type":"string"}]},` +
			`"c":{"additionalProperties":{"$ref":"#"}}}}`,
		`{"additionalProperties":{"type":"string"},"patternProperties":{".*":{}}}`,
		`{"anyOf":[{"properties":{"a":{}},"required":["a"]},true]}`,
		`{"properties":{"a":{"const":null},"b":{"nullable":true}}}`,
		`{"properties":{"a":{"type":"integer","default":` + strings.Repeat("9", 5000) + `}}}`, `{"a":`, wide,
		nested, strings.Repeat("[", 5000),
	} {
		alias := "t" + strings.Repeat("_", i)
		p.Tools[alias] = entrypoint.Tool{
			SafeName:     alias,
			OriginalName: alias,
			InputSchema:  json.RawMessage(schema),
			OutputSchema: json.RawMessage(schema),
		}
	}
	c.check(t, p)
}

// TestLongModule: a server with more to say than a module may hold has all its tools declared.
func TestLongModule(t *testing.T) {
	p := entrypoint.Provider{Name: "long", Alias: "long", Tools: map[string]entrypoint.Tool{}}
	for _, alias := range []string{"a", "b", "c"} {
		description := strings.Repeat("word ", 2_000)
		properties := `{"description":"` + description + `"},"x":{}`
		for i := range 200 {
			name := alias + strings.Repeat("_", i)
			p.Tools[name] = entrypoint.Tool{
				SafeName:     name,
				OriginalName: name,
				Description:  description,
				InputSchema:  json.RawMessage(`{"properties":{"a":` + properties + `}}`),
			}
		}
	}
	text := Module(p)
	if n := strings.Count(text, "\ndef "); n != len(p.Tools) {
		t.Errorf("%d of %d tools are declared", n, len(p.Tools))
	}
	if len(text) > maxModule+maxModule/4 {
		t.Errorf("the module has %d bytes", len(text))
	}
	compiler(t).check(t, p)
}

func TestSignature(t *testing.T) {
	for _, tc := range []struct{ name, input, output, want string }{
		{"no schema", ``, ``, `f(**kwargs: Any) -> Any`},
		{"no parameters", `{"type":"object","properties":{}}`, ``, `f() -> Any`},
		{"order", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","default":3},` +
			`"m":{"type":"boolean"}},"required":["m","z"]}`, ``,
			`f(z: str, m: bool, a: int = 3) -> Any`},
		{"names", `{"type":"object","properties":{"from":{"type":"string"},"a-b":{},"a.b":{},"__c":{},"1":{}}}`, ``,
			`f(from_: str | None = None, a_b: Any = None, a_b__2: Any = None, _c: Any = None, _1: Any = None) -> Any`},
		{"results", `{"properties":{}}`, `{"type":"object","properties":{"n":{"type":"integer"}}}`,
			`f() -> FResult`},
		{"a result of one kind", `{"properties":{}}`, `{"type":"array","items":{"type":"string"}}`,
			`f() -> list[str]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Signature(
				"f",
				entrypoint.Tool{
					InputSchema:  json.RawMessage(tc.input),
					OutputSchema: json.RawMessage(tc.output),
				},
			)
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
