package catalog

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// TestDefinitionTokens compares the estimate with what a vocabulary takes, for each recorded
// server.
func TestDefinitionTokens(t *testing.T) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../entrypoint/stubs/testdata/servers/*.json")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d recorded servers, %v", len(files), err)
	}
	sum, estimated, names, announced := 0, 0, 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []upstream.Tool }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		is := 0
		for _, tool := range list.Tools {
			var schema bytes.Buffer
			if err := json.Compact(&schema, tool.InputSchema); err != nil {
				t.Fatal(err)
			}
			described, err := json.Marshal(tool.Description)
			if err != nil {
				t.Fatal(err)
			}
			plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(described))
			is += len(enc.EncodeOrdinary(`{"name":"mcp__` + name + "__" + tool.Name + `","description":` + plain +
				`,"inputSchema":` + schema.String() + "}"))
		}
		for _, tool := range list.Tools {
			names += len(enc.EncodeOrdinary("mcp__" + name + "__" + tool.Name + "\n"))
		}
		announced += AnnouncedTokens(name, list.Tools)
		got := DefinitionTokens(name, list.Tools)
		sum, estimated = sum+is, estimated+got
		off := 100 * (float64(got)/float64(is) - 1)
		t.Logf("%-20s %6d tokens, estimated %6d, %+.1f %%", name, is, got, off)
		if math.Abs(off) > 5 && max(got-is, is-got) > 40 {
			t.Errorf("%s: %d tokens, estimated %d", name, is, got)
		}
	}
	t.Logf("all: %d tokens, estimated %d", sum, estimated)
	t.Logf("their names: %d tokens, estimated %d", names, announced)
	if off := 100 * (float64(announced)/float64(names) - 1); math.Abs(off) > 5 {
		t.Errorf("the names: %d tokens, estimated %d", names, announced)
	}
}
