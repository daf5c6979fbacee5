package stubs

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// server is the provider of a recorded tools/list.
func server(tb testing.TB, path string) entrypoint.Provider {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var list struct {
		Tools []struct {
			Name, Description         string
			InputSchema, OutputSchema json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		tb.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	p := entrypoint.Provider{Name: name, Alias: name, Tools: map[string]entrypoint.Tool{}}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	aliases := entrypoint.Aliases(names)
	for _, t := range list.Tools {
		alias := aliases[t.Name]
		p.Tools[alias] = entrypoint.Tool{SafeName: alias, OriginalName: t.Name, Description: t.Description,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
	}
	return p
}

// servers are the recorded ones; without them the tests over them would pass for nothing.
func servers(tb testing.TB) []entrypoint.Provider {
	tb.Helper()
	paths, err := filepath.Glob("testdata/servers/*.json")
	if err != nil || len(paths) < 8 {
		tb.Fatalf("%d recorded servers, %v; testdata/README.md names them", len(paths), err)
	}
	var all []entrypoint.Provider
	for _, path := range paths {
		all = append(all, server(tb, path))
	}
	return all
}

func TestGoldens(t *testing.T) {
	for _, p := range append(servers(t), server(t, "testdata/odd.json")) {
		t.Run(p.Name, func(t *testing.T) {
			path := filepath.Join("testdata/stubs", p.Alias+".py")
			got := Module(p)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := Module(p); again != got {
				t.Error("the same tools gave another text")
			}
		})
	}
}

// TestDeclare: what a guest is told of a tool beside its declaration.
func TestDeclare(t *testing.T) {
	for _, tc := range []struct {
		name, input, output string
		keys                map[string]string
		wrapped             bool
	}{
		{"nothing", ``, ``, nil, false},
		{"names as they are", `{"properties":{"a":{},"b_2":{}}}`, `{"type":"object"}`, nil, false},
		{"other names", `{"properties":{"class":{},"a-b":{},"a.b":{},"x":{}}}`, ``,
			map[string]string{"class_": "class", "a_b": "a-b", "a_b__2": "a.b"}, false},
		{"a wrapped value", ``, `{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}`,
			nil, true},
		{"wrapped, and no more", ``, `{"properties":{"result":true},"additionalProperties":false}`, nil, true},
		{"more than that", ``, `{"type":"object","properties":{"result":{}},"additionalProperties":true}`, nil,
			false},
		{"others of a type", ``, `{"properties":{"result":{}},"additionalProperties":{"type":"string"}}`, nil,
			false},
		{"two members", ``, `{"type":"object","properties":{"result":{},"next":{}}}`, nil, false},
		{"another name", ``, `{"type":"object","properties":{"value":{}}}`, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := entrypoint.Provider{Name: "s", Alias: "s", Tools: map[string]entrypoint.Tool{
				"f": {InputSchema: json.RawMessage(tc.input), OutputSchema: json.RawMessage(tc.output)},
			}}
			Declare(&p)
			got := p.Tools["f"]
			if diff := cmp.Diff(tc.keys, got.Keys); diff != "" || got.Wrapped != tc.wrapped ||
				!strings.Contains(got.Stub, "\ndef f(") {
				t.Errorf("wrapped: %t, keys (-want +got):\n%s", got.Wrapped, diff)
			}
		})
	}
}
