package bridge

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestConfiguredServersCostNothing to ask for a run that names none: what the guest is told of them
// is made once.
func TestConfiguredServersCostNothing(t *testing.T) {
	made := func(servers int) float64 {
		var list []discovery.Server
		for i := range servers {
			list = append(list, discovery.Server{Name: fmt.Sprintf("server%d", i)})
		}
		b := &Bridge{limits: catalog.Limits{Timeout: time.Second, MaxTimeout: time.Second}}
		c := catalog.New(catalog.Config{}, list, nil)
		return testing.AllocsPerRun(100, func() {
			a, err := b.decode(c, []byte(`{"code":"1"}`))
			if r := sandboxRequest("id", a, nil); err != nil || len(r.Providers) != servers ||
				len(r.Discovered) != servers {
				t.Errorf("got %d and %d of %d servers, %v", len(r.Providers), len(r.Discovered), servers, err)
			}
		})
	}
	if none, many := made(0), made(300); many > none {
		t.Errorf("a request makes %v things with 300 servers configured and %v with none", many, none)
	}
}
