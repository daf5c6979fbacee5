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

// BenchmarkModule is the stub of GitHub's 26 tools; the bridge makes it once for a list of tools.
func BenchmarkModule(b *testing.B) {
	p := server(b, "testdata/servers/github.json")
	for b.Loop() {
		Module(p)
	}
}
