package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// model is a Registry without timers, lines or guests: what is due is found out by looking.
type model struct {
	most  int
	boxes []*modelBox // in the order in which they were begun, the ended ones too
}

type modelBox struct {
	owner, id     string
	settings      Settings
	created, used time.Time
	paused        bool
	since         time.Time
	active        time.Duration
	running       bool
	calls         int
	reason        string // why it has ended
}

// settle ends what was due until now.
func (m *model) settle() {
	for _, b := range m.boxes {
		if b.reason != "" || b.running {
			continue
		}
		type end struct {
			at  time.Time
			why string
		}
		ends := []end{{b.created.Add(8 * time.Hour), "it was 8 h old, which is the most"}}
		if b.paused && b.settings.AutoDelete > 0 {
			ends = append(ends, end{b.since.Add(b.settings.AutoDelete), "it was paused for " +
				age(b.settings.AutoDelete) + ", its auto_delete_seconds"})
		}
		if !b.paused {
			ends = append(ends, end{b.used.Add(30 * time.Minute), "it was not used for 30 min"})
			if b.settings.Timeout > 0 {
				ends = append(ends, end{b.since.Add(b.settings.Timeout - b.active), "it was active for " +
					age(b.settings.Timeout) + ", its timeout_seconds"})
			}
		}
		first := slices.MinFunc(ends, func(x, y end) int { return x.at.Compare(y.at) })
		if !first.at.After(time.Now()) {
			b.reason = first.why
		}
	}
}

func (m *model) live(owner string) (all []*modelBox) {
	for _, b := range m.boxes {
		if b.reason == "" && (owner == "" || b.owner == owner) {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b *modelBox) int { return a.used.Compare(b.used) })
	return all
}

// list is what the registry's list must say.
func (m *model) list(owner string) string {
	var all []string
	for _, b := range slices.Backward(m.live(owner)) {
		all = append(all, fmt.Sprintf("%s %d %v %v", b.id, b.calls, b.paused, b.running))
	}
	return strings.Join(all, "\n")
}

// begin returns false if there is no room.
func (m *model) begin(owner string, s Settings) (*modelBox, bool) {
	if own := m.live(owner); len(own) >= PerOwner || len(m.live("")) >= m.most {
		at := slices.IndexFunc(own, func(b *modelBox) bool { return !b.running })
		if at < 0 {
			return nil, false
		}
		own[at].reason = "another one was begun, and no more than 12 sandboxes in all are kept"
		if len(own) >= PerOwner {
			own[at].reason = "another one was begun, and no more than 8 sandboxes of a caller are kept"
		}
	}
	now := time.Now()
	b := &modelBox{owner: owner, settings: s, created: now, used: now, since: now, calls: 1}
	m.boxes = append(m.boxes, b)
	return b, true
}

func (b *modelBox) resume() {
	if b.paused {
		b.paused, b.since, b.used = false, time.Now(), time.Now()
	}
}

// pair is a Registry and its model, which see the same.
type pair struct {
	*house
	model   model
	random  *rand.Rand
	running map[*modelBox]chan struct{} // closed to end the call
}

// TestModel does at random what callers, guests and time can do, and compares what callers see with
// a model that has neither timers nor lines.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		within(t, func(t *testing.T, h *house) {
			p := &pair{house: h, model: model{most: 12}, random: rand.New(rand.NewPCG(seed, 17)),
				running: map[*modelBox]chan struct{}{}}
			h.run = func(ctx context.Context, r sandbox.Request) (sandbox.Result, error) {
				if end, ok := ctx.Value(p).(chan struct{}); ok {
					<-end
				}
				return sandbox.Result{}, nil
			}
			for step := range 400 {
				time.Sleep(time.Duration(1 + p.random.Int64N(int64(4*time.Minute)))) // no two things at the same time
				p.model.settle()
				what := p.step()
				synctest.Wait()
				for _, owner := range []string{"a", "b", "c"} {
					if got, want := p.listed(owner), p.model.list(owner); got != want {
						t.Fatalf("seed %d, step %d, %s: %s has\n%s\nwant\n%s", seed, step, what, owner, got, want)
					}
				}
				if n, want := int(h.open.Load()), len(p.model.live("")); n != want {
					t.Fatalf("seed %d, step %d, %s: %d guests, want %d", seed, step, what, n, want)
				}
			}
			for _, end := range p.running {
				close(end)
			}
			synctest.Wait()
		})
		if t.Failed() {
			return
		}
	}
}

// listed is the registry's list.
func (p *pair) listed(owner string) string {
	var all []string
	for _, i := range p.List(owner) {
		all = append(all, fmt.Sprintf("%s %d %v %v", i.ID, i.Calls, i.Paused, i.Busy))
	}
	return strings.Join(all, "\n")
}

// step does one thing to both.
func (p *pair) step() string {
	owner := []string{"a", "b", "c"}[p.random.IntN(3)]
	var b *modelBox // any that was ever begun
	if n := len(p.model.boxes); n > 0 {
		b = p.model.boxes[p.random.IntN(n)]
		if own := p.model.live(owner); len(own) > 0 && p.random.IntN(4) > 0 {
			b = own[p.random.IntN(len(own))]
		}
	}
	what := p.random.IntN(12)
	if b == nil || what < 3 {
		return "begin for " + owner + p.begin(owner)
	}
	mine := b.owner == owner && b.reason == ""
	switch what {
	case 3, 4, 5:
		p.use(owner, b, mine)
		return "a call of " + owner + " in " + b.id
	case 6:
		p.useLong(owner, b, mine)
		return "a long call of " + owner + " in " + b.id
	case 7:
		for other, end := range p.running {
			now := time.Now()
			close(end)
			delete(p.running, other)
			if other.reason == "" {
				other.running, other.used = false, now
				other.calls++
				p.model.settle()
			}
			break
		}
		return "the end of a long call"
	case 8:
		_, err := p.Pause(owner, b.id)
		p.same(err, owner, b, mine && !b.running)
		if mine && !b.running && !b.paused {
			b.active += time.Since(b.since)
			b.paused, b.since = true, time.Now()
		}
		return "pause " + b.id
	case 9:
		_, err := p.Resume(owner, b.id)
		p.same(err, owner, b, mine)
		if mine {
			b.resume()
		}
		return "resume " + b.id
	case 10:
		if p.End(owner, b.id, "ended by its caller") != mine {
			p.t.Fatalf("whether there was one to end: not %v", mine)
		}
		if mine {
			b.reason = "ended by its caller"
		}
		return "end " + b.id
	default:
		if b.reason == "" && p.random.IntN(3) == 0 {
			i := slices.Index(p.model.boxes, b)
			p.made[i].dies("it died")
			b.reason = "it died"
		}
		return "the death of " + b.id
	}
}

// begin returns what is to be said of it.
func (p *pair) begin(owner string) string {
	s := Settings{}
	if p.random.IntN(3) == 0 {
		s.Timeout = time.Duration(1+p.random.IntN(90)) * time.Minute
	}
	if p.random.IntN(3) == 0 {
		s.AutoDelete = time.Duration(1+p.random.IntN(90)) * time.Minute
	}
	b, room := p.model.begin(owner, s)
	c, err := p.Begin(owner, s)
	if !room || err != nil {
		if room || !errors.As(err, new(*FullError)) {
			p.t.Fatalf("room %v, %v", room, err)
		}
		return ", which is full"
	}
	defer c.Leave()
	b.id = c.ID()
	if _, err := c.Run(p.t.Context(), sandbox.Request{}, nil); err != nil {
		p.t.Fatal(err)
	}
	return ": " + b.id
}

// use makes a short call.
func (p *pair) use(owner string, b *modelBox, mine bool) {
	if b.running {
		return // it would wait
	}
	_, err := p.call(owner, b.id)
	p.same(err, owner, b, mine)
	if mine {
		b.resume()
		b.used = time.Now()
		b.calls++
	}
}

// useLong begins a call that ends at another step.
func (p *pair) useLong(owner string, b *modelBox, mine bool) {
	if b.running {
		return
	}
	c, err := p.Enter(p.t.Context(), owner, b.id, nil)
	p.same(err, owner, b, mine)
	if !mine {
		return
	}
	b.resume()
	b.running, b.used = true, time.Now()
	end := make(chan struct{})
	p.running[b] = end
	go func() {
		defer c.Leave()
		_, _ = c.Run(context.WithValue(context.Background(), p, end), sandbox.Request{}, nil)
	}()
}

// same checks an error.
func (p *pair) same(err error, owner string, b *modelBox, there bool) {
	p.t.Helper()
	var gone *GoneError
	var inUse *InUseError
	switch {
	case there && err != nil:
		p.t.Fatalf("%s in %s: %v", owner, b.id, err)
	case there, errors.As(err, &inUse) && b.running:
	case !errors.As(err, &gone):
		p.t.Fatalf("%s in %s, which has ended for %q or is another's: %v", owner, b.id, b.reason, err)
	case b.owner == owner && gone.Reason != b.reason:
		p.t.Fatalf("%s in %s: %q, want %q", owner, b.id, gone.Reason, b.reason)
	case b.owner != owner && gone.Reason != "":
		p.t.Fatalf("%s hears of %s: %q", owner, b.id, gone.Reason)
	}
}
