package policy

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLimits(t *testing.T) {
	p := parse(t, `
[[limit]]
tools = ["*.*"]
calls = 6

[[limit]]
tools = ["*.*"]
except = ["free.*"]
per = "server"
calls = 3

[[limit]]
tools = ["*.*"]
per = "tool"
calls = 2
argument_bytes = 10

[[limit]]
tools = ["big.*"]
argument_bytes = 0
`)
	run := p.Run()
	for i, step := range []struct {
		server, tool string
		bytes        int
		want         string // part of the error
	}{
		{"a", "x", 10, ""},
		{"a", "x", 11, `the arguments are 11 bytes of JSON, and 10 are allowed, by the limit on "*.*" ` +
			`(policy.toml, line 12)`},
		{"a", "x", 2, ""},
		{"a", "x", 2, `this run has made all of the 2 calls that it may make, by the limit on "*.*" ` +
			`(policy.toml, line 12)`},
		{"a", "y", 2, ""},
		{"a", "z", 2, `all of the 3 calls that it may make, by the limit on "*.*" (policy.toml, line 6)`},
		{"big", "x", 1, "1 bytes of JSON, and 0 are allowed"},
		{"free", "x", 2, ""},
		{"free", "y", 2, ""},
		{"free", "x", 2, ""},
		{"b", "x", 2, `all of the 6 calls that it may make`},
	} {
		err := run.Count(Tool{Server: step.server, Name: step.tool}, step.bytes)
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("step %d, %s.%s: %v, want %q", i, step.server, step.tool, err, step.want)
		}
	}
	if err := p.Run().Count(Tool{Server: "a", Name: "x"}, 2); err != nil {
		t.Errorf("another run: %v", err)
	}
}

func TestLimitsConcurrently(t *testing.T) {
	run := parse(t, "[[limit]]\ntools=[\"*.*\"]\ncalls=50").Run()
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if run.Count(Tool{Server: "a", Name: "x"}, 0) == nil {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	if granted.Load() != 50 {
		t.Errorf("%d calls were let through, not 50", granted.Load())
	}
}
