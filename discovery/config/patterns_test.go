package config

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestOwnFilters: what a filter hides and shows is what its lists in the bridge's own file do, or
// they are refused.
func TestOwnFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	some := func(most int, make func() string) (all []string) {
		for range r.IntN(most + 1) {
			all = append(all, make())
		}
		return all
	}
	part := func() string { return pick("a", "b", "_", "a_b", "read", "A", ".", "[", `\`, "-", "é") }
	name := func() string { return strings.Join(some(3, part), "") + pick("a", "_", ".", "B") }
	pattern := func() string {
		return strings.Join(some(4, func() string { return pick("*", "?", part(), "m__s__") }), "")
	}
	refused, hiding := 0, 0
	for range 20_000 {
		f := Filter{Globs: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			f.Allow = append([]string{}, some(3, name)...)
		}
		f.Deny = some(2, name)
		for range r.IntN(3) {
			l := RuleList{Prefix: pick("m__s__", "s_"), AnyCase: r.IntN(4) == 0}
			for range r.IntN(4) {
				l.Rules = append(l.Rules, ToolRule{Pattern: pick(l.Prefix, "") + pattern(), Deny: r.IntN(3) > 0})
			}
			f.Rules = append(f.Rules, l)
		}
		allow, deny, bad := f.Own()
		if bad.Refused() {
			refused++
			continue
		}
		own := Filter{Allow: allow, Deny: deny, Globs: true}
		for range 10 {
			tool := name()
			if f.Allows(tool) != own.Allows(tool) {
				t.Fatalf("%q: %v by %+v, %v by allow %q (nil: %v), deny %q", tool, f.Allows(tool), f, own.Allows(tool),
					allow, allow == nil, deny)
			}
			if !own.Allows(tool) {
				hiding++
			}
		}
	}
	if refused == 0 || refused > 6_000 || hiding < 20_000 {
		t.Errorf("refused: %d, hidden: %d", refused, hiding)
	}
}
