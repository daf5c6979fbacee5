package bridge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// visitor is one call in TestAdmissionProperty: when it comes, how long it stays and when it is cancelled, all counted from the
// beginning, and what became of it.
type visitor struct {
	comes, stays time.Duration
	prepares     time.Duration // before that
	cancelled    time.Duration // 0 for never

	let    time.Duration // when it was let in, or turned away
	waited time.Duration // what enter says of that
	err    error
}

// TestAdmissionProperty: whatever comes, goes and is cancelled when, there are never more runs than the limit nor more in the queue than
// it has room for, a free place never waits while a call does, calls are let in in the order in which they came, nobody
// waits longer than may be, the time not counted in which others prepare, or past its cancel, and at the end no place is lost.
func TestAdmissionProperty(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { admissionProperty(t, rand.New(rand.NewPCG(seed, 8))) })
		})
	}
}

func admissionProperty(t *testing.T, r *rand.Rand) {
	// All is in whole milliseconds, so that ends, cancels and time-outs often fall on one instant, but for arrivals: which of two
	// comes first would be chance.
	millis := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	a := &admission{limit: 1 + r.IntN(4), room: r.IntN(8), patience: millis(1 + r.IntN(50))}
	visitors := make([]*visitor, 60)
	pause := 1 + r.IntN(20) // the longest between two
	var at time.Duration
	for i := range visitors {
		at += millis(1 + r.IntN(pause))
		visitors[i] = &visitor{comes: at, stays: millis(r.IntN(40))}
		if r.IntN(8) == 0 {
			visitors[i].prepares = millis(1 + r.IntN(80))
		}
		if r.IntN(3) == 0 {
			visitors[i].cancelled = max(millis(1), at+millis(r.IntN(40)-5))
		}
	}
	began := time.Now()
	inside := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, v := range visitors {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if v.cancelled > 0 {
				time.AfterFunc(v.cancelled, cancel)
			}
			time.Sleep(v.comes)
			v.waited, v.err = a.enter(ctx, func(int) {})
			v.let = time.Since(began)
			if v.err != nil {
				return
			}
			mu.Lock()
			inside++
			if inside > a.limit {
				t.Errorf("%d runs at a time; the limit is %d", inside, a.limit)
			}
			mu.Unlock()
			_ = a.prepare(func() error { time.Sleep(v.prepares); return nil })
			time.Sleep(v.stays)
			mu.Lock()
			inside--
			mu.Unlock()
			a.leave()
		})
	}
	watched := make(chan struct{})
	go func() { // between any two events
		defer close(watched)
		for time.Since(began) < at+200*time.Millisecond {
			time.Sleep(997 * time.Microsecond)
			synctest.Wait()
			a.mu.Lock()
			if len(a.waiting) > a.room || len(a.waiting) > 0 && a.running < a.limit {
				t.Errorf("%d run and %d wait; there are %d places and room for %d", a.running, len(a.waiting), a.limit, a.room)
			}
			a.mu.Unlock()
		}
	}()
	all.Wait()
	<-watched
	if a.running != 0 || len(a.waiting) != 0 {
		t.Errorf("at the end %d run and %d wait", a.running, len(a.waiting))
	}
	var latest time.Duration // when one was let in
	for i, v := range visitors {
		checkVisitor(t, a, i, v, v.let-v.comes-prepared(visitors, v.comes, v.let))
		if v.err == nil && v.let < latest {
			t.Errorf("call %d was let in at %v, before one that came earlier", i, v.let)
		} else if v.err == nil {
			latest = v.let
		}
	}
}

// TestPlaceOfACancelledCall: a place that is handed to a call in the moment of its cancel is handed on.
func TestPlaceOfACancelledCall(t *testing.T) {
	a := &admission{limit: 1, room: 1, patience: time.Hour}
	for i := range 1000 {
		if _, err := a.enter(t.Context(), func(int) {}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waits, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			if _, err := a.enter(ctx, func(int) { close(waits) }); err == nil {
				a.leave()
			}
		}()
		<-waits
		if i%2 == 0 {
			a.leave()
			cancel()
		} else {
			cancel()
			a.leave()
		}
		<-ended
		if a.running != 0 || len(a.waiting) != 0 {
			t.Fatalf("after %d rounds %d run and %d wait", i, a.running, len(a.waiting))
		}
	}
}

// prepared is for how long, between two times, any of the visitors did.
func prepared(visitors []*visitor, from, to time.Duration) (all time.Duration) {
	for at := from; at < to; at += time.Millisecond { // all begins and ends are whole milliseconds
		if slices.ContainsFunc(visitors, func(v *visitor) bool { return v.err == nil && v.let <= at && at < v.let+v.prepares }) {
			all += time.Millisecond
		}
	}
	return all
}

// checkVisitor compares what became of a call with what it was promised; counted is what there is of its wait when others didn't prepare.
func checkVisitor(t *testing.T, a *admission, i int, v *visitor, counted time.Duration) {
	t.Helper()
	wait := v.let - v.comes
	var turned *queueError
	switch {
	case v.waited != wait:
		t.Errorf("call %d is told that it waited %v and did %v", i, v.waited, wait)
	case v.err == nil && counted > a.patience:
		t.Errorf("call %d was let in after %v of %v; the longest wait is %v", i, counted, wait, a.patience)
	case v.cancelled > 0 && v.let > max(v.cancelled, v.comes):
		t.Errorf("call %d was cancelled at %v and heard of at %v", i, v.cancelled, v.let)
	case errors.As(v.err, &turned) && turned.full && (wait != 0 || turned.waiting != a.room || turned.running != a.limit):
		t.Errorf("call %d was refused after %v: %v", i, wait, v.err)
	case errors.As(v.err, &turned) && !turned.full && counted != a.patience:
		t.Errorf("call %d gave up after %v of %v: %v", i, counted, wait, v.err)
	case v.err != nil && turned == nil && (v.cancelled == 0 || v.let < v.cancelled):
		t.Errorf("call %d: %v", i, v.err)
	}
}

// holding is a bridge of one place and room for one, whose runs last for an hour or until they are cancelled.
func holding(t *testing.T, change func(*Config)) *Bridge {
	return build(t, func(c *Config) {
		c.MaxConcurrent, c.Queue, c.QueueTimeout = 1, 1, 30*time.Second
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return printed(r.Code), nil
		}}
		if change != nil {
			change(c)
		}
	})
}

// TestQueueIsNamed: who is turned away is told by what, how many run and wait, and what to do.
func TestQueueIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, holding(t, nil))
		for i := range 3 {
			p.run(i, `{"code":"x"}`, "")
			synctest.Wait()
		}
		for _, want := range []struct{ id, text string }{
			{"2", "status: busy — the queue is full, so the code was not run: 1 calls are under way (MCP_BRIDGE_MAX_CONCURRENT) and 1 more wait for one of " +
				"them to end, the most that may (MCP_BRIDGE_QUEUE). Next: call again when some of the calls have ended, and do more work in each run"},
			{"1", "status: busy — the code was not run, since the call has waited in the queue for 30s, the longest that one may (MCP_BRIDGE_QUEUE_TIMEOUT): " +
				"1 calls are under way (MCP_BRIDGE_MAX_CONCURRENT) and 0 more wait for one of them to end. Next: call again when some of the calls have ended, " +
				"and do more work in each run"},
		} {
			time.Sleep(29 * time.Second) // the second is answered during the next of these
			f := receive(p)
			if r := f.tool(t); string(f.ID) != want.id || !r.IsError || r.Content[0].Text != want.text {
				t.Errorf("got  %s: %s\nwant %s: %s", f.ID, r.Content[0].Text, want.id, want.text)
			}
		}
	})
}

// receive waits for a message in a bubble, where next would let its own time-out come first.
func receive(p *peer) frame { return <-p.frames }

// TestCancelFreesThePlaceInTheQueue at once.
func TestCancelFreesThePlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := holding(t, nil)
		p := connect(t, b)
		for i := range 2 {
			p.run(i, `{"code":"x"}`, "")
			synctest.Wait()
		}
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait() // the place is given up by the cancelled call itself
		p.run(2, `{"code":"third"}`, "")
		synctest.Wait()
		if len(p.frames) != 0 {
			t.Errorf("got %s: the call behind the cancelled one was answered, and should wait in its place", receive(p).Result)
		}
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
		if r := receive(p).tool(t); r.Content[0].Text != "third" {
			t.Errorf("got %s", r.Content[0].Text)
		}
	})
}

// TestTimesAreToldApart: queue, start and run in the structured result and in the log, and a wait worth knowing in the text.
func TestTimesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		b := holding(t, func(c *Config) {
			c.OutputMode, c.Log = OutputStructured, log.logger()
			c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
				time.Sleep(3 * time.Second)
				res := printed(r.Code)
				res.Took = sandbox.Took{Start: time.Second, Run: 2 * time.Second, Total: 3 * time.Second}
				return res, nil
			}}
		})
		p := connect(t, b)
		for i, code := range []string{"first", "second"} {
			p.run(i, `{"code":"`+code+`"}`, "")
			synctest.Wait()
		}
		for i, want := range []struct{ text, times, log string }{
			{"first", `"durations":{"queueMs":0,"startMs":1000,"runMs":2000,"totalMs":3000}`, `"queued":0,"started":1000000000,"ran":2000000000,"took":3000000000`},
			{"second\n[the call waited 3.0 s for other calls to end before its own began]",
				`"durations":{"queueMs":3000,"startMs":1000,"runMs":2000,"totalMs":6000}`, `"queued":3000000000,"started":1000000000,"ran":2000000000,"took":6000000000`},
		} {
			r := receive(p).tool(t)
			if r.Content[0].Text != want.text || !strings.Contains(string(r.Struct), want.times) {
				t.Errorf("got  %q\n%s\nwant %q\n%s", r.Content[0].Text, r.Struct, want.text, want.times)
			}
			synctest.Wait() // the line is written when the call is answered
			log.mu.Lock()
			if logged := strings.Split(log.text.String(), "\n"); !strings.Contains(logged[i], want.log) {
				t.Errorf("logged %s, want %s", logged[i], want.log)
			}
			log.mu.Unlock()
		}
	})
}

// TestRoomCountsAsQueue: what the sandbox waits for containers of other runs is told as the wait that it is.
func TestRoomCountsAsQueue(t *testing.T) {
	b := build(t, func(c *Config) {
		c.OutputMode = OutputStructured
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
			res := printed(r.Code)
			res.Took = sandbox.Took{Room: 25 * time.Second, Start: time.Second, Run: 2 * time.Second}
			return res, nil
		}}
	})
	p := connect(t, b)
	p.run(1, `{"code":"x"}`, "")
	f := p.next()
	if r := f.tool(t); r.Content[0].Text != "x\n[the call waited 25.0 s for other calls to end before its own began]" ||
		!strings.Contains(string(r.Struct), `"durations":{"queueMs":25000,"startMs":1000,"runMs":2000,`) {
		t.Errorf("got %q\n%s", r.Content[0].Text, r.Struct)
	}
}

func TestAdmission(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	started := make(chan string, 100)
	b := build(t, func(c *Config) {
		c.MaxConcurrent = 2
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			started <- r.Code
			<-release
			return printed(r.Code), nil
		}}
	})
	p := connect(t, b)
	for i := range 4 {
		p.run(i, `{"code":"x"}`, `{"progressToken":"p"}`)
	}
	<-started
	<-started
	for { // one of those who wait says so
		if f := p.next(); strings.Contains(f.Params.Message, "waiting for one of 2 runs to end") {
			break
		}
	}
	p.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	for f := p.next(); string(f.ID) != "9"; f = p.next() {
	}
	close(release)
	for answers := 0; answers < 4; {
		if f := p.next(); f.Method == "" {
			answers++
		}
	}
	if most.Load() != 2 {
		t.Errorf("%d runs at a time, want 2", most.Load())
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	started, ended := make(chan string, 10), make(chan string, 10)
	b := build(t, func(c *Config) {
		c.MaxConcurrent = 1
		c.Runner = fakeRunner{run: untilCancelled(started, ended)}
	})
	p := connect(t, b)
	p.run(1, `{"code":"first"}`, "")
	<-started
	p.run(2, `{"code":"second"}`, "")
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	p.run(3, `{"code":"third"}`, "")
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got := <-started; got != "third" {
		t.Errorf("%s ran after the first, want third", got)
	}
}
