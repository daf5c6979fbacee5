package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/install"
)

// TestHostTokens compares what adopt said of hosts' definitions with what the hosts sent to their
// models before and after, which test/hosts has recorded.
func TestHostTokens(t *testing.T) {
	dir := os.Getenv("MCP_BRIDGE_TEST_TOKENS")
	if dir == "" {
		t.Skip("test/hosts/run sets MCP_BRIDGE_TEST_TOKENS")
	}
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding("o200k_base")
	must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	must(t, err)
	if len(files) == 0 {
		t.Error("no host was driven")
	}
	for _, file := range files {
		var sent struct {
			Said          [2]int
			Before, After []string
		}
		text, err := os.ReadFile(file)
		must(t, err)
		must(t, json.Unmarshal(text, &sent))
		host := strings.TrimSuffix(filepath.Base(file), ".json")
		for i, definitions := range [][]string{sent.Before, sent.After} {
			is := 0
			for _, d := range definitions {
				is += len(enc.EncodeOrdinary(d))
			}
			off := 100 * (float64(sent.Said[i])/float64(is) - 1)
			t.Logf("%-12s %5d tokens, said %5d, %+.1f %%", host, is, sent.Said[i], off)
			if math.Abs(off) > 5 {
				t.Errorf("%s: the host sends %d tokens, adopt said %d", host, is, sent.Said[i])
			}
		}
	}
}

// TestSentDefinitions: what a host adds to definitions, and leaves out of them, is counted.
func TestSentDefinitions(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	store, s := openTools(), discovery.Server{Name: "a", Command: "a"}
	must(t, store.Save(s.Identity(), catalog.List{Tools: []upstream.Tool{
		{Name: "x", InputSchema: []byte(`{"$schema": "http://json-schema.org/draft-07/schema#", "type": ` +
			`"object"}`)},
		{Name: "y", InputSchema: []byte(`{"type": "object"}`)},
	}}))
	plain, _ := definitionTokens(store, s, install.Sent{})
	more, _ := definitionTokens(store, s, install.Sent{PerTool: 5})
	less, _ := definitionTokens(store, s, install.Sent{Without: "$schema"})
	names, _ := definitionTokens(store, s, install.SentBy("Claude Code"))
	if names >= plain || names < 10 {
		t.Errorf("announced: %d of %d", names, plain)
	}
	if more != plain+10 || less >= plain-5 || less == 0 {
		t.Errorf("%d, %d, %d", plain, more, less)
	}
}
