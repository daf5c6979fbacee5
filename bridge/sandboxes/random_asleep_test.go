package sandboxes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A sleeper is a sandbox as it must be. What was saved of it counts when it is woken.
type sleeper struct {
	owner, id, file string
	calls           int
	timeout, active time.Duration
	born, used      time.Time
	since           time.Time

	guest  *fakeGuest // nil while it is saved, or has ended
	saved  *sleeper   // nil if it never was
	woken  bool       // it was saved before this life
	lost   bool       // what came after it was saved
	ended  bool
	reason string // that its owner is told, for a day
	at     time.Time
}

// sleep is its end at a moment by which it is saved.
func (b *sleeper) sleep(at time.Time, reason string) {
	b.active += at.Sub(b.since)
	as := *b
	b.saved, b.guest, b.lost, b.reason, b.at = &as, nil, false, reason, at
}

// end is its end for good.
func (b *sleeper) end(reason string) {
	b.ended, b.guest, b.reason, b.at = true, nil, reason, time.Now()
}

// die is the end of its guest. What was saved before counts.
func (b *sleeper) die(reason string) {
	if b.guest, b.reason, b.lost, b.at = nil, reason, true, time.Now(); !b.woken {
		b.ended = true
	}
}

// wake is its next call.
func (b *sleeper) wake(g *fakeGuest) {
	now := time.Now()
	b.file, b.calls, b.timeout, b.active = b.saved.file, b.saved.calls, b.saved.timeout, b.saved.active
	b.guest, b.woken = g, true
	b.born, b.used, b.since = now, now, now
}

// due ends it if that was due until now.
func (b *sleeper) due() {
	if b.guest == nil {
		return
	}
	old, idle, over := b.born.Add(8*time.Hour), b.used.Add(30*time.Minute), b.since.Add(b.timeout-b.active)
	now := time.Now()
	switch {
	case b.timeout > 0 && !over.After(now) && !over.After(idle) && over.Before(old):
		b.end("it was active for " + age(b.timeout) + ", its timeout_seconds")
		b.at = over
	case !old.After(now) && old.Before(idle):
		b.end("it was 8 h old, which is the most")
		b.at = old
	case !idle.After(now):
		b.sleep(idle, "it was not used for 30 min")
	}
}

// A night is a Registry that saves sandboxes, and what must be true of them.
type night struct {
	*house
	random *rand.Rand
	boxes  []*sleeper
	seen   map[string]int
}

// TestModelAsleep does at random what becomes of sandboxes that are saved and woken, in one bridge
// and the next, and compares it with a model. With MCP_BRIDGE_TEST_LONG=1 one more seed is random.
func TestModelAsleep(t *testing.T) {
	seen := map[string]int{}
	seeds := append(randomSeed(t), 1, 2, 3, 4, 5, 6)
	for _, seed := range seeds {
		saving(t, storeIn(t, t.TempDir()), func(t *testing.T, h *house) {
			n := &night{house: h, random: rand.New(rand.NewPCG(seed, 17)), seen: seen}
			for step := range 200 {
				time.Sleep(time.Duration(1 + n.random.Int64N(int64(20*time.Minute))))
				for _, b := range n.boxes {
					b.due()
				}
				what := n.step()
				synctest.Wait()
				for _, owner := range []string{"a", "b"} {
					if got, want := n.listed(owner), n.want(owner); got != want {
						t.Fatalf("seed %d, step %d, %s: %s has\n%s\nwant\n%s", seed, step, what, owner, got, want)
					}
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"begin", "call", "woken", "lost", "gone", "ended", "caller gone", "removed",
		"restart",
		"update", "death"} {
		if seen[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
	t.Log(seen)
}

// listed is what an owner sees, and want what it must.
func (n *night) listed(owner string) string {
	var all []string
	for _, i := range n.List(owner) {
		all = append(all, fmt.Sprint(i.ID, i.Asleep, i.Calls))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (n *night) want(owner string) string {
	var all []string
	for _, b := range n.of(owner) {
		calls := b.calls
		if b.guest == nil {
			calls = b.saved.calls
		}
		all = append(all, fmt.Sprint(b.id, b.guest == nil, calls))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// of returns what an owner has, live and saved.
func (n *night) of(owner string) (own []*sleeper) {
	for _, b := range n.boxes {
		if b.owner == owner && !b.ended {
			own = append(own, b)
		}
	}
	return own
}

// step does one thing to both.
func (n *night) step() string {
	owner := []string{"a", "b"}[n.random.IntN(2)]
	what := n.random.IntN(24)
	if len(n.boxes) == 0 || what < 5 && len(n.of(owner)) < 6 {
		return n.begin(owner)
	}
	b := n.boxes[n.random.IntN(len(n.boxes))]
	if own := n.of(owner); len(own) > 0 && n.random.IntN(8) > 0 {
		b = own[n.random.IntN(len(own))]
	}
	mine := b.owner == owner && !b.ended
	switch {
	case what == 5:
		if got := n.End(owner, b.id, "it was killed"); got != mine {
			n.t.Fatalf("whether there was one to end: %v, want %v", got, mine)
		}
		if mine {
			b.end("it was killed")
		}
		return n.did("ended", b.id)
	case what == 6 && n.random.IntN(3) == 0:
		n.EndAll(owner)
		for _, b := range n.of(owner) {
			if b.guest != nil {
				b.sleep(time.Now(), "its caller is gone")
			}
		}
		return n.did("caller gone", owner)
	case what == 7 && n.random.IntN(3) == 0:
		return n.remove(owner)
	case what == 8 && n.random.IntN(2) == 0:
		return n.restart()
	case what < 11 && mine:
		return n.update(owner, b)
	case what < 14 && mine && b.guest != nil:
		b.guest.dies("it died")
		b.die("it died")
		return n.did("death", b.id)
	}
	return n.use(owner, b, mine)
}

func (n *night) did(what, to string) string {
	n.seen[what]++
	return what + " " + to
}

func (n *night) begin(owner string) string {
	file := fmt.Sprint("file ", len(n.boxes))
	id, now := n.filled(owner, file, nil, Settings{}), time.Now()
	n.boxes = append(
		n.boxes,
		&sleeper{owner: owner, id: id, file: file, calls: 1, born: now, used: now, since: now,
			guest: n.last()},
	)
	return n.did("begin", id)
}

// use makes a call, which may wake the sandbox, and changes its file.
func (n *night) use(owner string, b *sleeper, mine bool) string {
	c, _, err := n.woken(owner, b.id)
	if !mine {
		if time.Since(b.at) >= tombstoneAge {
			b.reason = ""
		}
		var gone *GoneError
		if !errors.As(err, &gone) || b.owner == owner && gone.Reason != b.reason ||
			b.owner != owner && gone.Reason != "" {
			n.t.Fatalf("%s in %s of %s, which has ended for %q: %v", owner, b.id, b.owner, b.reason, err)
		}
		return n.did("gone", b.id)
	}
	what := "call"
	if err != nil {
		n.t.Fatalf("a call in %s: %v", b.id, err)
	}
	if wakes := b.guest == nil; wakes {
		b.wake(n.last())
		what = "woken"
		if c.Woken != wakes || strings.Contains(c.Missing(), "is lost") != b.lost {
			n.t.Fatalf("%s: woken %v, %q, want lost %v", b.id, c.Woken, c.Missing(), b.lost)
		}
		if b.lost {
			n.seen["lost"]++
		}
	}
	if b.guest.file != b.file {
		n.t.Fatalf("%s has %q, want %q", b.id, b.guest.file, b.file)
	}
	b.calls, b.used, b.file = b.calls+1, time.Now(), b.file+"."
	n.locked(func() { b.guest.file = b.file })
	return n.did(what, b.id)
}

// update changes the time that a sandbox may be active, which may be over already.
func (n *night) update(owner string, b *sleeper) string {
	timeout := time.Duration(n.random.IntN(300)) * time.Minute
	_, err := n.Update(owner, b.id, func(s *Settings) { s.Timeout = timeout })
	if b.guest == nil {
		if !errors.As(err, new(*AsleepError)) {
			n.t.Fatalf("update of %s, which is saved: %v", b.id, err)
		}
		return "nothing"
	}
	if err != nil {
		n.t.Fatalf("update of %s: %v", b.id, err)
	}
	b.timeout = timeout
	b.due()
	return n.did("update", b.id)
}

// remove removes what an owner has who is gone for good.
func (n *night) remove(owner string) string {
	own := n.of(owner)
	got := n.RemoveOf(n.t.Context(), func(of string) bool { return of == owner }, "its token was revoked")
	if got != len(own) {
		n.t.Fatalf("%d were removed of %s, want %d", got, owner, len(own))
	}
	for _, b := range own {
		at := b.at
		if b.guest != nil {
			b.reason, at = "its token was revoked", time.Now()
		}
		b.end(b.reason)
		b.at = at
	}
	return n.did("removed", owner)
}

// restart ends the bridge, and starts another one, which knows nothing of why sandboxes have ended.
func (n *night) restart() string {
	n.Close()
	for _, b := range n.boxes {
		if b.guest != nil {
			b.sleep(time.Now(), "")
		}
		b.reason = ""
	}
	n.Registry = New(n.cfg)
	return n.did("restart", "")
}
