package environments_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
)

// TestData builds the environment that comes with the program from PyPI's wheels, twice, the second
// time from the cache, which MCP_BRIDGE_TEST_WHEELS names.
func TestData(t *testing.T) {
	dir := os.Getenv("MCP_BRIDGE_TEST_WHEELS")
	if dir == "" {
		t.Skip("downloads 58 MB into the directory that MCP_BRIDGE_TEST_WHEELS names; make wheels sets it")
	}
	b := newBench(t)
	b.cfg.CacheDir = dir
	b.Environments = environments.New(b.cfg)
	var layers []string
	for range 2 {
		last, began := "", time.Now()
		env, err := b.Build(t.Context(), environments.Data, func(s environments.Step) {
			if word := s.Text[:4]; word != last {
				t.Logf("%5.1f s: %3d %% %s", time.Since(began).Seconds(), s.Percent, s.Text)
				last = word
			}
		})
		var offline *text.HintError
		if errors.As(err, &offline) && strings.Contains(err.Error(), "can't be reached") {
			t.Skipf("PyPI isn't reachable: %v (%s)", err, offline.Next)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%5.1f s: %v, %d bytes", time.Since(began).Seconds(), env, env.Size)
		for _, d := range env.Distributions {
			if len(d.Imports) == 0 {
				t.Errorf("nothing can be imported of %s", d.Name)
			}
		}
		layers = append(layers, env.Layer)
		if err := b.Remove(t.Context(), environments.Data); err != nil {
			t.Fatal(err)
		}
	}
	if layers[0] != layers[1] {
		t.Errorf("the layer is %s, then %s", layers[0], layers[1])
	}
}
