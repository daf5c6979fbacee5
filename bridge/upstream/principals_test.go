//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// isolated is a server that each principal has for itself.
func isolated(name string, args ...string) discovery.Server {
	s := named(name, "normal", args...)
	s.Isolate = true
	return s
}

func as(ctx context.Context, principal string) context.Context { return WithPrincipal(ctx, principal) }

// TestApart: of a server that keeps state each principal has its own, also after an update that
// leaves it as it is. Others are shared by all.
func TestApart(t *testing.T) {
	p := open(t, nil, isolated("apart"), named("shared", "normal"))
	alice, bob := as(t.Context(), "alice"), as(t.Context(), "bob")
	if p.Running(alice, "apart") {
		t.Error("a server runs that was not started")
	}
	a, b, own := pid(alice, t, p, "apart"), pid(bob, t, p, "apart"), pid(t.Context(), t, p, "apart")
	if a == b || a == own || b == own || pid(alice, t, p, "apart") != a {
		t.Errorf("alice's is process %d, bob's %d, that of who is no principal %d", a, b, own)
	}
	if !p.Running(alice, "apart") || p.Running(as(t.Context(), "carol"), "apart") {
		t.Error("it isn't known whose servers run")
	}
	if pid(alice, t, p, "shared") != pid(bob, t, p, "shared") {
		t.Error("a server that keeps nothing is started for each principal")
	}

	pinned, release := p.Pin(alice)
	p.Update([]discovery.Server{isolated("apart"), named("new", "normal")})
	for name, ctx := range map[string]context.Context{"without": alice, "with": pinned} {
		if got := pid(ctx, t, p, "apart"); got != a {
			t.Errorf("after an update, %s a pin from before, alice's is process %d and was %d", name, got, a)
		}
	}
	if pid(bob, t, p, "apart") != b {
		t.Error("bob's was started again by an update of others")
	}
	carol := as(pinned, "carol") // who first uses it by the old configuration
	c := pid(carol, t, p, "apart")
	if pid(as(t.Context(), "carol"), t, p, "apart") != c {
		t.Error("carol has two")
	}
	p.Update([]discovery.Server{isolated("apart", "more")})
	if pid(alice, t, p, "apart") == a || pid(pinned, t, p, "apart") != a {
		t.Error("the pin doesn't keep the server of before, or nothing else has another one")
	}
	release()
	for _, was := range []int{a, b, c, own} {
		vanished(t, was)
	}
	p.Update([]discovery.Server{named("apart", "normal", "more")})
	if pid(alice, t, p, "apart") != pid(bob, t, p, "apart") {
		t.Error("a server that isn't isolated any more is not shared")
	}
}

// TestCrowded: no more principals have a server for themselves than are allowed, and one that has
// ended makes room.
func TestCrowded(t *testing.T) {
	p := open(t, nil, isolated("apart"))
	p.mu.Lock()
	for i := range maxIsolated {
		e := p.find(as(t.Context(), fmt.Sprint(i)), "apart")
		e.live = &session{ending: ending{gone: make(chan struct{})}}
		if got := p.find(as(t.Context(), fmt.Sprint(i)), "apart"); got != e {
			t.Error("a principal has two")
		}
	}
	one := p.find(as(t.Context(), "1"), "apart")
	p.mu.Unlock()
	_, err := p.Tools(as(t.Context(), "alice"), "apart")
	var failed *ServerError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "64 others have it for themselves now") {
		t.Errorf("one more has it: %v", err)
	}
	p.mu.Lock()
	close(one.live.gone)
	p.mu.Unlock()
	if _, err := p.Tools(as(t.Context(), "alice"), "apart"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	p.mu.Lock()
	for i := range 3 * maxIsolatedKnown { // who comes and goes leaves nothing
		p.find(as(t.Context(), fmt.Sprint("guest", i)), "apart")
	}
	apart, known := len(p.current.isolated), len(p.known)
	for e := range p.known { // they are none that Close could end
		if e.live != nil && e.live.conn == nil {
			e.live = nil
		}
	}
	p.mu.Unlock()
	if apart > maxIsolatedKnown || known > maxIsolatedKnown+2 {
		t.Errorf("%d entries are kept, and %d are known", apart, known)
	}
}
