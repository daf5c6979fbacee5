package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// pair is a Registry and its model, which see the same.
type pair struct {
	*house
	model  model
	random *rand.Rand
	seen   map[string]int // what has happened, and how often
}

// An outcome is what a guest makes of a call, or an engine of a guest.
type outcome struct {
	res sandbox.Result
	err error
}

// A modelCall is one that is under way, or waits for its turn.
type modelCall struct {
	end    chan outcome // of its guest, or with an error alone of what makes that; nil for one that ends at once
	got    chan outcome // what its caller gets
	cancel context.CancelFunc
}

// start makes a call on a goroutine of its own.
func (p *pair) start(c *modelCall, call func(ctx context.Context) (sandbox.Result, error)) {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), p, c))
	c.cancel, c.got = cancel, make(chan outcome, 1)
	go func() {
		res, err := call(ctx)
		c.got <- outcome{res, err}
	}()
	synctest.Wait()
}

// errEngine is why a guest could not be made, or a call not take place.
var errEngine = errors.New("the engine failed")

// randomSeed returns a seed that no run had before, and logs it, where long tests are wanted.
func randomSeed(t *testing.T) []uint64 {
	if os.Getenv("MCP_BRIDGE_TEST_LONG") == "" {
		return nil
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return []uint64{seed}
}

// TestModel does at random what callers, guests and time can do, and compares what callers see with
// a model that has neither timers nor goroutines. With MCP_BRIDGE_TEST_LONG=1 one more seed is
// random.
func TestModel(t *testing.T) {
	seen := map[string]int{}
	seeds := randomSeed(t)
	for seed := range uint64(60) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		within(t, func(t *testing.T, h *house) {
			p := &pair{house: h, model: model{most: 12, shared: map[string]*modelBox{}},
				random: rand.New(rand.NewPCG(seed, 17)), seen: seen}
			h.closes = func() { time.Sleep(7 * time.Minute) }
			h.makes = func(ctx context.Context) error {
				if c, ok := ctx.Value(p).(*modelCall); ok && c.end != nil {
					return (<-c.end).err
				}
				return nil
			}
			h.run = func(ctx context.Context, _ sandbox.Request) (sandbox.Result, error) {
				if c, ok := ctx.Value(p).(*modelCall); ok && c.end != nil {
					o := <-c.end
					return o.res, o.err
				}
				return sandbox.Result{}, nil
			}
			for step := range 400 {
				time.Sleep(time.Duration(1 + p.random.Int64N(int64(4*time.Minute)))) // no two things at the same time
				for _, b := range p.model.boxes {
					b.due()
				}
				what := p.step()
				synctest.Wait()
				p.compare(fmt.Sprintf("seed %d, step %d, %s", seed, step, what))
			}
			p.close()
		})
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"begun", "full", "not made", "no place", "ended while made", "kept", "before",
		"lost",
		"failed", "gone", "ended while it ran", "ended while it waited", "given up", "busy", "killed", "died",
		"its caller is gone", "evicted", "displaced", "idle", "old", "timeout", "deleted", "closed",
		"updated", "removed", "shared", "shared again", "its session is over"} {
		if seen[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
	t.Log(seen)
}

// compare compares what callers see.
func (p *pair) compare(when string) {
	p.t.Helper()
	for _, owner := range []string{"a", "b", "c"} {
		var all []string
		for _, i := range p.List(owner) {
			all = append(all, fmt.Sprintf("%s %d %v %v", i.ID, i.Calls, i.Paused, i.Busy))
		}
		if got, want := strings.Join(all, "\n"), p.model.list(owner); got != want {
			p.t.Fatalf("%s: %s has\n%s\nwant\n%s", when, owner, got, want)
		}
	}
	for _, b := range p.model.boxes {
		if !b.ended {
			continue
		}
		if b.busy() && p.random.IntN(4) == 0 { // a while after
			p.abandon(b)
		}
		for _, c := range b.line { // it won't be their turn
			p.told(c, b, "ended while it waited")
		}
		b.line = nil
		if b.guest != nil {
			if _, over := b.guest.Ended(); !over {
				p.t.Fatalf("%s: the guest of %s lives, which has ended for %q", when, b.id, b.reason)
			}
			for of, what := range map[string]string{"it was not used": "idle", "which is the most": "old",
				"timeout_seconds": "timeout", "auto_delete_seconds": "deleted", "another one was begun": "evicted",
				"another caller": "displaced"} {
				if strings.Contains(b.reason, of) {
					p.seen[what]++
				}
			}
			b.guest = nil
		}
	}
}

// told checks that the caller of a call is told why the sandbox has ended.
func (p *pair) told(c *modelCall, b *modelBox, what string) {
	p.t.Helper()
	p.seen[what]++
	o := <-c.got
	var gone *GoneError
	switch lost := o.res.Kept; {
	case errors.As(o.err, &gone) && gone.Reason == b.reason:
	case o.err == nil && lost.State == sandbox.StateLost && lost.Reason == b.reason:
	default:
		p.t.Fatalf("%s, which has ended for %q: got %+v, %v", b.id, b.reason, lost, o.err)
	}
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
	what := p.random.IntN(44)
	if b == nil || what < 8 {
		return "begin for " + owner + p.begin(owner)
	}
	if what > 41 {
		return p.share(owner)
	}
	mine := b.owner == owner && !b.ended
	switch {
	case what < 10 && mine && b.making != nil: // its id isn't known but to it
		p.made(b)
		return "the guest of " + b.id + " is made, or isn't"
	case what < 14 && mine && b.running != nil:
		p.finish(b)
		return "the end of a call in " + b.id
	case what == 14 || what == 15:
		if got := p.End(owner, b.id, "ended by its caller"); got != mine {
			p.t.Fatalf("whether there was one to end: %v, want %v", got, mine)
		}
		if mine {
			p.seen["killed"]++
			b.end("ended by its caller")
		}
		return "end " + b.id
	case what == 16 && p.random.IntN(8) == 0:
		p.EndAll(owner)
		for _, b := range p.model.live(owner) {
			p.seen["its caller is gone"]++
			b.end("its caller is gone")
		}
		return owner + " is gone"
	case what == 16 && p.random.IntN(8) == 0:
		p.remove(owner)
		return owner + " is removed"
	case b.making != nil:
		return "nothing"
	case what > 39:
		p.update(owner, b, mine)
		return "update " + b.id
	case what == 17 && p.random.IntN(2) == 0 && !b.ended:
		p.seen["died"]++
		b.guest.dies("it died")
		b.end("it died")
		return "the death of " + b.id
	case what < 20:
		_, err := p.Pause(owner, b.id)
		p.same(err, owner, b, mine && b.running == nil)
		if mine && b.running == nil && !b.paused {
			b.active += time.Since(b.since)
			b.paused, b.since = true, time.Now()
		}
		return "pause " + b.id
	case what < 22:
		_, err := p.Resume(owner, b.id)
		p.same(err, owner, b, mine)
		if mine {
			b.resume()
			b.due() // with a time that was made shorter during the pause
		}
		return "resume " + b.id
	case what == 22 && len(b.line) > 0:
		b.line[0].cancel()
		if o := <-b.line[0].got; !errors.Is(o.err, context.Canceled) {
			p.t.Fatalf("given up: %v", o.err)
		}
		b.line = b.line[1:]
		p.seen["given up"]++
		return "one gives up to wait for " + b.id
	default:
		p.use(owner, b, mine, what < 32, func(ctx context.Context) (*Call, error) {
			return p.Enter(ctx, owner, b.id, nil)
		})
		return "a call of " + owner + " in " + b.id
	}
}

// begin begins a sandbox, whose guest is made at once or at another step. It returns what is to be
// said of it.
func (p *pair) begin(owner string) string {
	s := Settings{}
	if p.random.IntN(3) == 0 {
		s.Timeout = time.Duration(1+p.random.IntN(90)) * time.Minute
	}
	if p.random.IntN(3) == 0 {
		s.AutoDelete = time.Duration(1+p.random.IntN(90)) * time.Minute
	}
	b := p.model.begin(owner, s)
	c, err := p.Begin(owner, s)
	return p.begun(b, c, err)
}

// begun goes on with a sandbox of which the first call has come, unless there is no room for it.
func (p *pair) begun(b *modelBox, c *Call, err error) string {
	if b == nil || err != nil {
		if b != nil || !errors.As(err, new(*FullError)) {
			p.t.Fatalf("room %v, %v", b != nil, err)
		}
		p.seen["full"]++
		return ", which is full"
	}
	b.id = c.ID()
	b.making.end = make(chan outcome, 2) // for Keep, and for Run
	p.start(b.making, func(ctx context.Context) (sandbox.Result, error) {
		defer c.Leave()
		return c.Run(ctx, sandbox.Request{}, nil)
	})
	if p.random.IntN(2) == 0 {
		p.made(b)
	}
	return ": " + b.id
}

// made has the guest of a sandbox be made, or not, and its first call end.
func (p *pair) made(b *modelBox) {
	first := b.making
	if p.random.IntN(6) == 0 {
		first.end <- outcome{err: errEngine}
		if o := <-first.got; !errors.Is(o.err, errEngine) {
			p.t.Fatalf("not made: %v", o.err)
		}
		p.seen["not made"]++
	} else {
		n := len(p.house.made)
		first.end <- outcome{}
		first.end <- outcome{}
		room := p.model.made(b)
		o := <-first.got
		b.guest = p.house.made[n]
		if room != (o.err == nil) || !room && !errors.As(o.err, new(*FullError)) {
			p.t.Fatalf("room %v, got %v", room, o.err)
		}
		if room {
			p.seen["begun"]++
			b.calls++
			b.leave()
			return
		}
		p.seen["no place"]++
	}
	if b.leave(); !b.ended {
		b.end("") // as if it had never been
	}
}

// use makes a call, which ends at once or at another step, or waits for its turn.
func (p *pair) use(owner string, b *modelBox, mine, short bool, enter func(context.Context) (*Call, error)) {
	c := &modelCall{}
	if !short {
		c.end = make(chan outcome, 1)
	}
	if mine && b.running != nil {
		c.end = nil
	}
	p.start(c, func(ctx context.Context) (sandbox.Result, error) {
		call, err := enter(ctx)
		if err != nil {
			return sandbox.Result{}, err
		}
		defer call.Leave()
		return call.Run(ctx, sandbox.Request{}, nil)
	})
	switch {
	case !mine:
		p.same((<-c.got).err, owner, b, false)
	case b.running == nil:
		b.resume()
		b.running, b.used = c, time.Now()
		if c.end == nil {
			p.ends(b, outcome{})
		}
	case len(b.line) == 8:
		if o := <-c.got; !errors.As(o.err, new(*BusyError)) {
			p.t.Fatalf("a ninth that waits: %v", o.err)
		}
		p.seen["busy"]++
	default:
		b.line = append(b.line, c)
	}
}

// finish ends a call that is under way, in any way that it can end.
func (p *pair) finish(b *modelBox) {
	var o outcome
	switch p.random.IntN(12) {
	case 0, 1, 2:
		o.res.Kept = &sandbox.KeptState{State: sandbox.StateBefore, Reason: "it took too long"}
	case 3:
		o.res.Kept = &sandbox.KeptState{State: sandbox.StateLost, Reason: "no copy answered"}
	case 4:
		o.err = errEngine
	case 5:
		o.err = &sandbox.EndedError{Reason: "its container ended"}
	}
	b.running.end <- o
	p.ends(b, o)
}

// ends takes what becomes of a call, and of those that wait for its end.
func (p *pair) ends(b *modelBox, o outcome) {
	p.t.Helper()
	got, want := <-b.running.got, sandbox.StateKept
	var ended *sandbox.EndedError
	switch lost := o.res.Kept; {
	case errors.As(o.err, &ended):
		b.running = nil
		b.end(ended.Reason)
		p.seen["gone"]++
		if !errors.As(got.err, new(*GoneError)) {
			p.t.Fatalf("a call whose guest has ended: %v", got.err)
		}
		return
	case o.err != nil:
		p.seen["failed"]++
		if !errors.Is(got.err, o.err) {
			p.t.Fatalf("a call that could not take place: %v", got.err)
		}
	case lost != nil && lost.State == sandbox.StateLost:
		b.end(lost.Reason)
		fallthrough
	default:
		b.calls++
		if lost != nil {
			want = lost.State
		}
		if b.running, b.used = nil, time.Now(); !b.ended {
			if b.due(); b.ended {
				want = sandbox.StateLost
				p.seen["due as it ended"]++
			}
		}
		p.seen[string(want)]++
		if got.err != nil || got.res.Kept.State != want || got.res.Kept.Calls != b.calls {
			p.t.Fatalf("a call that is %s, the %d.: %+v, %v", want, b.calls, got.res.Kept, got.err)
		}
	}
	if b.leave(); b.ended {
		return
	}
	for _, c := range b.line { // which take no time
		if o := <-c.got; o.err != nil {
			p.t.Fatalf("a call that has waited: %v", o.err)
		}
		b.calls++
	}
	b.line = nil
}

// close closes the registry while calls are under way.
func (p *pair) close() {
	for _, b := range p.model.live("") {
		b.end("the bridge has ended")
		p.seen["closed"]++
	}
	closed := make(chan struct{})
	go func() {
		p.Close()
		close(closed)
	}()
	synctest.Wait()
	p.compare("closed")
	if _, err := p.Begin("a", Settings{}); !errors.As(err, new(*FullError)) {
		p.t.Fatalf("begun in a closed registry: %v", err)
	}
	making := 0
	for _, b := range p.model.boxes {
		if b.making != nil {
			making++
		}
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	select {
	case <-closed:
		if making > 0 {
			p.t.Fatalf("Close has returned while %d guests are made", making)
		}
	default:
		if making == 0 {
			p.t.Fatal("Close hasn't returned though nothing is made")
		}
	}
	for _, b := range p.model.boxes {
		if b.busy() {
			p.abandon(b)
		}
	}
	<-closed
}

// abandon ends the call under way in a sandbox that has ended.
func (p *pair) abandon(b *modelBox) {
	c, what := b.making, "ended while made"
	if c == nil {
		c, what = b.running, "ended while it ran"
	}
	c.end <- outcome{}
	p.told(c, b, what)
	b.making, b.running = nil, nil
}

// same checks an error.
func (p *pair) same(err error, owner string, b *modelBox, there bool) {
	p.t.Helper()
	var gone *GoneError
	var inUse *InUseError
	switch {
	case there && err != nil:
		p.t.Fatalf("%s in %s: %v", owner, b.id, err)
	case there, errors.As(err, &inUse) && b.running != nil:
	case !errors.As(err, &gone):
		p.t.Fatalf("%s in %s, which has ended for %q or is another's: %v", owner, b.id, b.reason, err)
	case b.owner == owner && gone.Reason != b.reason:
		p.t.Fatalf("%s in %s: %q, want %q", owner, b.id, gone.Reason, b.reason)
	case b.owner != owner && gone.Reason != "":
		p.t.Fatalf("%s hears of %s: %q", owner, b.id, gone.Reason)
	}
}
