package sandbox

import (
	"fmt"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// TestSlots: each server that the run may call has its own, the runtime's helpers too, and names that nobody has share theirs.
func TestSlots(t *testing.T) {
	s := &Sandbox{cfg: Config{Concurrency: 3}}
	n := newSession(s, Request{Providers: []entrypoint.Provider{{Name: "a"}, {Name: "b"}}}, nil, machine{})
	a, b, runtime, nobody := n.slotsOf("a"), n.slotsOf("b"), n.slotsOf(entrypoint.RuntimeProvider), n.slotsOf("x")
	distinct := map[chan struct{}]bool{a: true, b: true, runtime: true, nobody: true}
	if len(distinct) != 4 || cap(a) != 3 || n.slotsOf("a") != a || n.slotsOf("y") != nobody || n.slotsOf("") != nobody {
		t.Errorf("got %d distinct ones of %d, the same again: %v, %v", len(distinct), cap(a), n.slotsOf("a") == a, n.slotsOf("y") == nobody)
	}
}

// TestServersThatAreNotCalledCostNothing to begin a run.
func TestServersThatAreNotCalledCostNothing(t *testing.T) {
	s := &Sandbox{cfg: Config{Concurrency: 64}}
	made := func(providers int) float64 {
		r := Request{}
		for i := range providers {
			r.Providers = append(r.Providers, entrypoint.Provider{Name: fmt.Sprint(i)})
		}
		return testing.AllocsPerRun(100, func() { newSession(s, r, nil, machine{}) })
	}
	if none, many := made(0), made(300); many > none {
		t.Errorf("a session makes %v things for 300 servers and %v for none", many, none)
	}
}
