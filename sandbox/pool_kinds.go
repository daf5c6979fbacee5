package sandbox

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of what the pool knows of environments.
const (
	recentRuns  = 4  // that decide which environments have guests if there are fewer guests
	maxKinds    = 16 // environments
	learnedRuns = 8  // of each, that decide what is imported ahead
	maxAhead    = 16 // modules
	barePause   = 10 * time.Minute
)

// A kind is what the pool knows of an environment, or of the configured image alone.
type kind struct {
	env      *Environment // nil for the image alone
	used     time.Time
	recent   int        // of the last runs
	imported [][]string // by its last runs, oldest first
	bare     time.Time  // nothing is imported ahead until then, since a guest that did has ended
}

// newKind returns the kind of an environment, or of none. Its Ahead counts like the imports of two
// runs.
func newKind(e *Environment) *kind {
	k := &kind{env: e}
	if e != nil && len(e.Ahead) > 0 {
		k.imported = [][]string{e.modules(e.Ahead), e.modules(e.Ahead)}
	}
	return k
}

// of reports whether k is that of an environment, or of none.
func (k *kind) of(e *Environment) bool {
	if k.env == nil || e == nil {
		return k.env == e
	}
	return k.env.Image.ID == e.Image.ID
}

// ahead returns the modules that a guest imports while it waits: those that at least a quarter of
// the last runs imported.
func (k *kind) ahead() []string {
	if k.env == nil || time.Now().Before(k.bare) {
		return nil
	}
	times := map[string]int{}
	var names []string
	for _, run := range k.imported {
		for _, name := range run {
			if times[name]++; times[name] == 1 {
				names = append(names, name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return 4*times[name] < len(k.imported) })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(times[b], times[a]) })
	return names[:min(len(names), maxAhead)]
}

// use records a run. It is called with mu held.
func (p *pool) use(e *Environment) {
	i := slices.IndexFunc(p.kinds, func(k *kind) bool { return k.of(e) })
	if i < 0 {
		if i = len(p.kinds); i == maxKinds {
			i--
			p.kinds = p.kinds[:i]
		}
		p.kinds = append(p.kinds, newKind(e))
	}
	k := p.kinds[i]
	k.env, k.used = e, time.Now()
	if p.recent = append(p.recent, k); len(p.recent) > recentRuns {
		p.recent = p.recent[1:]
	}
	for _, k := range p.kinds {
		k.recent = 0
	}
	for _, k := range p.recent {
		k.recent++
	}
	// Stable: two that take turns don't replace each other's guests at every run.
	slices.SortStableFunc(p.kinds, func(a, b *kind) int { return cmp.Compare(b.recent, a.recent) })
}

// learn records what a run in an environment has imported, as its code says.
func (p *pool) learn(e *Environment, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		if k.of(e) {
			if k.imported = append(k.imported, e.modules(names)); len(k.imported) > learnedRuns {
				k.imported = k.imported[1:]
			}
			p.nudge()
		}
	}
}

// A want says how many guests of one kind are missing.
type want struct {
	kind    *kind
	machine machine
	ahead   []string // modules that they import while they wait
	missing int
}

type wants []*want

// wants returns which guests are to be warm, in the order in which they are started.
func (p *pool) wants(m *machine) wants {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.sandbox.cfg.Standby
	var all wants
	for _, k := range p.kinds {
		if left > 0 && time.Since(k.used) < p.sandbox.cfg.StandbyIdle {
			all = append(all, &want{kind: k, machine: m.in(k.env), ahead: k.ahead(), missing: 1})
			left--
		}
	}
	if len(all) > 0 {
		all[0].missing += left
	}
	return all
}

// take counts a warm guest for those that are wanted, and reports whether it is one of them.
func (all wants) take(g *guest) bool {
	for _, w := range all {
		if w.missing > 0 && g.class == w.machine.class() &&
			!slices.ContainsFunc(w.ahead, func(name string) bool { return !slices.Contains(g.ahead, name) }) {
			w.missing--
			return true
		}
	}
	return false
}

// failed returns those names that the guest was asked to import ahead.
func (w *want) failed(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(w.ahead, name) })
}

// notStarted records that a guest could not be started. It returns whether to try again at once, or
// the pause until the next try. A guest with imports ahead is tried without them. An environment
// whose guests can't be started gets none until its next run, so it holds up no others.
func (p *pool) notStarted(w *want) (again bool, pause time.Duration) {
	if w.machine.env == nil {
		return false, p.failed()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(w.ahead) > 0 {
		w.kind.bare = time.Now().Add(barePause)
	} else {
		w.kind.used = time.Time{}
	}
	return true, 0
}

// died records that a guest ended, or stopped answering, while it waited. If it had imported
// modules ahead, they may be why.
func (p *pool) died(g *guest) {
	if len(g.ahead) == 0 {
		p.failed()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		if k.of(g.machine.env) {
			k.bare = time.Now().Add(barePause)
		}
	}
}
