package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// visitor is one call in TestAdmissionProperty: when it comes, how long it stays and when it is
// cancelled, all counted from the beginning, and what became of it.
type visitor struct {
	comes, stays time.Duration
	prepares     time.Duration // before that
	cancelled    time.Duration // 0 for never

	let time.Duration // when it was let in, or turned away
	err error
}

// TestAdmissionProperty holds, over random histories, that there are never more runs, containers or
// waiting calls than may be, that no place is free while a call waits, that calls are let in in the
// order in which they came, that none waits longer than may be, without the time in which others
// prepare, or past its cancel, and that no place is lost at the end.
func TestAdmissionProperty(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { admissionProperty(t, rand.New(rand.NewPCG(seed, 8))) })
		})
	}
}

func admissionProperty(t *testing.T, r *rand.Rand) {
	// All is in whole milliseconds, so that ends, cancels and time-outs often fall on one instant,
	// except arrivals: which of two comes first would be chance.
	millis := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	a := &admission{maxRuns: 1 + r.IntN(4), room: r.IntN(8), patience: millis(1 + r.IntN(50)),
		warm: map[class][]*guest{}}
	a.maxContainers = a.maxRuns + r.IntN(3)
	dies := millis(r.IntN(30)) // what a container takes to go after its run
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
	inside, alive := 0, 0
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
			v.err = a.enter(ctx, &ticket{}, func() {}, func(string) {})
			v.let = time.Since(began)
			if v.err != nil {
				return
			}
			mu.Lock()
			inside++
			alive++
			if inside > a.maxRuns || alive > a.maxContainers {
				t.Errorf("%d runs and %d containers at a time; want at most %d and %d", inside, alive, a.maxRuns,
					a.maxContainers)
			}
			mu.Unlock()
			done := a.prepare()
			time.Sleep(v.prepares)
			done()
			time.Sleep(v.stays)
			mu.Lock()
			inside--
			mu.Unlock()
			a.leave(&ticket{})
			time.Sleep(dies)
			mu.Lock()
			alive--
			mu.Unlock()
			a.containerGone()
		})
	}
	watched := make(chan struct{})
	go func() { // between any two events
		defer close(watched)
		for time.Since(began) < at+200*time.Millisecond {
			time.Sleep(997 * time.Microsecond)
			synctest.Wait()
			a.mu.Lock()
			if len(a.waiting) > a.room || len(a.waiting) > 0 && a.runs < a.maxRuns && a.containers < a.maxContainers {
				t.Errorf("%d run in %d containers and %d wait: %+v", a.runs, a.containers, len(a.waiting), a)
			}
			a.mu.Unlock()
		}
	}()
	all.Wait()
	<-watched
	if a.runs != 0 || a.containers != 0 || len(a.waiting) != 0 {
		t.Errorf("at the end %d run in %d containers and %d wait", a.runs, a.containers, len(a.waiting))
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

// TestPlaceOfACancelledCall: a place that is handed to a call in the moment of its cancel is handed
// on.
func TestPlaceOfACancelledCall(t *testing.T) {
	a := &admission{maxRuns: 1, maxContainers: 1, room: 1, patience: time.Hour, warm: map[class][]*guest{}}
	out := func() {
		a.leave(&ticket{})
		a.containerGone()
	}
	for i := range 1000 {
		if err := a.enter(t.Context(), &ticket{}, func() {}, func(string) {}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waits, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			if err := a.enter(ctx, &ticket{}, func() {}, func(string) { close(waits) }); err == nil {
				out()
			}
		}()
		<-waits
		if i%2 == 0 {
			out()
			cancel()
		} else {
			cancel()
			out()
		}
		<-ended
		if a.runs != 0 || a.containers != 0 || len(a.waiting) != 0 {
			t.Fatalf("after %d rounds %d run in %d containers and %d wait", i, a.runs, a.containers, len(a.waiting))
		}
	}
}

// prepared is for how long, between two times, any of the visitors did.
func prepared(visitors []*visitor, from, to time.Duration) (all time.Duration) {
	for at := from; at < to; at += time.Millisecond { // all begins and ends are whole milliseconds
		if slices.ContainsFunc(visitors, func(v *visitor) bool {
			return v.err == nil && v.let <= at &&
				at < v.let+v.prepares
		}) {
			all += time.Millisecond
		}
	}
	return all
}

// checkVisitor compares what became of a call with what it was promised; counted is what there is
// of its wait when others didn't prepare.
func checkVisitor(t *testing.T, a *admission, i int, v *visitor, counted time.Duration) {
	t.Helper()
	wait := v.let - v.comes
	const slack = 5 * time.Millisecond // preparing is looked at once a millisecond here
	var turned *QueueError
	switch {
	case v.err == nil && counted > a.patience+slack:
		t.Errorf("call %d was let in after %v of %v; the longest wait is %v", i, counted, wait, a.patience)
	case v.cancelled > 0 && v.let > max(v.cancelled, v.comes):
		t.Errorf("call %d was cancelled at %v and heard of at %v", i, v.cancelled, v.let)
	case errors.As(v.err, &turned) && turned.Full && (wait != 0 || turned.Waiting != a.room):
		t.Errorf("call %d was refused after %v: %v", i, wait, v.err)
	case errors.As(v.err, &turned) && !turned.Full && (counted < a.patience-slack || counted > a.patience+slack):
		t.Errorf("call %d gave up after %v of %v: %v", i, counted, wait, v.err)
	case v.err != nil && turned == nil && (v.cancelled == 0 || v.let < v.cancelled):
		t.Errorf("call %d: %v", i, v.err)
	}
}

// TestAnotherContainer holds that a run that needs another container comes before those that have
// none yet, takes a guest that has become warm meanwhile, and leaves nothing behind when it gives
// up.
func TestAnotherContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{maxRuns: 2, maxContainers: 1, room: 1, patience: time.Hour, warm: map[class][]*guest{}}
		first, second := &ticket{}, &ticket{}
		nothing := func() {}
		if err := a.enter(t.Context(), first, nothing, func(string) {}); err != nil {
			t.Fatal(err)
		}
		var order []string
		var mu sync.Mutex
		had := func(who string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, who)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if err := a.enter(t.Context(), second, nothing, func(string) {}); err != nil {
				t.Error(err)
			}
			had("second")
		})
		synctest.Wait()
		all.Go(func() {
			if err := a.rejoin(t.Context(), first); err != nil {
				t.Error(err)
			}
			had("first")
		})
		synctest.Wait()
		warm := &guest{begun: time.Now(), quiet: make(chan struct{}), life: t.Context()}
		a.add(warm) // the first run's container, as it were, which has a place already
		synctest.Wait()
		if first.guest != warm {
			t.Errorf("the first run has %v, want the guest that became warm", first.guest)
		}
		a.containerGone()
		all.Wait()
		if !slices.Equal(order, []string{"first", "second"}) {
			t.Errorf("they had containers in the order %v", order)
		}

		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := a.rejoin(ctx, first); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		if a.rejoined != 0 || len(a.waiting) != 0 || a.containers != 1 {
			t.Errorf("%d and %d wait for %d containers", a.rejoined, len(a.waiting), a.containers)
		}
	})
}

// shared is an admission of a number of runs at a time, in which the test's calls wait.
type shared struct {
	*admission
	t *testing.T
}

func newShared(t *testing.T, runs, room int) shared {
	return shared{&admission{maxRuns: runs, maxContainers: runs, room: room, patience: time.Hour,
		warm: map[class][]*guest{}}, t}
}

// call has a principal ask for a run. It returns the ticket once that waits or is admitted, and
// what enter returns later.
func (s shared) call(principal string) (*ticket, <-chan error) {
	t, queued, done := &ticket{principal: principal}, make(chan struct{}), make(chan error, 1)
	go func() { done <- s.enter(s.t.Context(), t, func() { close(queued) }, func(string) {}) }()
	<-queued
	return t, done
}

// end ends an admitted run.
func (s shared) end(t *ticket) {
	s.giveBack(t)
	s.leave(t)
}

// admitted returns how many of a principal's runs take place.
func (s shared) admitted(principal string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[principal]
}

// TestFairTurns has one principal fill the machine and the queue, and another one come later.
func TestFairTurns(t *testing.T) {
	s := newShared(t, 4, 100)
	var alice []*ticket
	for range 20 {
		ticket, _ := s.call("alice")
		alice = append(alice, ticket)
	}
	if n := s.admitted("alice"); n != 2 {
		t.Fatalf("alice has %d of 4 runs", n)
	}
	bob, done := s.call("bob")
	if err := <-done; err != nil || s.admitted("bob") != 1 {
		t.Fatalf("bob waits: %v", err)
	}
	carol, done := s.call("carol")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_, later := s.call("bob") // there is no room for it
	s.end(carol)
	if err := <-later; err != nil || s.admitted("alice") != 2 || s.admitted("bob") != 2 {
		t.Errorf("after carol's run alice has %d, bob %d: %v", s.admitted("alice"), s.admitted("bob"), err)
	}
	_, _ = s.call("bob")
	dave, done := s.call("dave")
	s.end(bob) // alice has her share, bob one left, dave none
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.end(dave)
	if n := s.admitted("bob"); n != 2 {
		t.Errorf("bob has %d runs", n)
	}
	s.end(alice[0])
	if n := s.admitted("alice"); n != 2 {
		t.Errorf("alice has %d runs, and is the only one who waits", n)
	}
}

// TestLocalHasAll: who is no named principal has no share but all.
func TestLocalHasAll(t *testing.T) {
	s := newShared(t, 3, 10)
	for range 3 {
		if _, done := s.call(""); <-done != nil {
			t.Fatal("it isn't admitted")
		}
	}
	one := newShared(t, 1, 10)
	if _, done := one.call("alice"); <-done != nil {
		t.Error("the only run wasn't let in")
	}
}

// TestPlacesInAFullQueue has others than the one that has filled the queue find a place in it.
func TestPlacesInAFullQueue(t *testing.T) {
	s := newShared(t, 2, 4)
	var full *QueueError
	var waits []<-chan error
	running, _ := s.call("")
	_, _ = s.call("")
	for range 4 {
		_, done := s.call("alice")
		waits = append(waits, done)
	}
	if _, done := s.call("alice"); !errors.As(<-done, &full) || !full.Full {
		t.Fatal("there is room for a fifth")
	}
	_, bob := s.call("bob")
	if err := <-waits[3]; !errors.As(err, &full) || !full.Full || full.Share != 0 {
		t.Errorf("the last of alice's is refused with %v", err)
	}
	_, bob2 := s.call("bob")
	if err := <-waits[2]; !errors.As(err, &full) {
		t.Errorf("the third of alice's is refused with %v", err)
	}
	if _, done := s.call("bob"); !errors.As(<-done, &full) {
		t.Error("bob has more places than alice")
	}
	s.end(running)
	if err := <-waits[0]; err != nil {
		t.Error(err)
	}
	_, again := s.call("alice") // the place that is free now
	for _, done := range []<-chan error{bob, bob2, waits[1], again} {
		select {
		case err := <-done:
			t.Errorf("it is over: %v", err)
		default:
		}
	}
}

// TestShareIsNamed has a call wait that has its principal's share.
func TestShareIsNamed(t *testing.T) {
	s := newShared(t, 4, 0)
	_, _ = s.call("alice")
	_, _ = s.call("alice")
	_, done := s.call("alice")
	var full *QueueError
	if err := <-done; !errors.As(err, &full) || full.Share != 2 ||
		!strings.Contains(err.Error(), "2 under way (MCP_BRIDGE_MAX_CONCURRENT), 2 of them yours") {
		t.Errorf("got %v", err)
	}
}
