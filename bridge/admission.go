package bridge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// prepareMax is how long a call in the queue puts up with others that prepare, in all: a preparation of the sandbox is given up
// sooner, but one that fails is begun anew by the next call.
const prepareMax = 20 * time.Minute

// admission lets a bounded number of runs take place at a time. Further calls wait in a bounded queue, in the order in which
// they came to it: a bridge serves one client over stdio, so nobody can be passed over by somebody else's calls. A place that
// becomes free is handed to whoever waits longest, never put up for grabs. It is safe for concurrent use.
//
// A call that holds a place may still have to prepare: to wait for the engine or the image. While any does, the patience of those
// in the queue is not used up: with a place they would wait for the same thing.
type admission struct {
	limit    int           // runs at a time; at least 1
	room     int           // calls that may wait; 0 for none
	patience time.Duration // the longest that one waits

	mu        sync.Mutex
	running   int
	waiting   []chan struct{} // oldest first, and only while running is limit; closing one hands a place to it
	preparing int             // of those that run
	since     time.Time       // when preparing was last 0
	prepared  time.Duration   // for how long it was not, but for what is since then
	settled   chan struct{}   // closed when preparing is 0 again; nil while nobody asks for that
}

// A queueError says why a call was not let in. Its text is one sentence, and Hint the next step.
type queueError struct {
	running, waiting int // when the call gave up, itself not counted
	preparing        int // of those that run
	waited           time.Duration
	extended         bool // waited is longer than the patience, since others prepared meanwhile
	full             bool // it found no room to wait in; else it has waited as long as it may
}

func (e *queueError) Error() string {
	preparing := ""
	if e.preparing > 0 {
		preparing = fmt.Sprintf(", %d of them still waiting for the engine or the image,", e.preparing)
	}
	state := fmt.Sprintf("%d calls are under way (MCP_BRIDGE_MAX_CONCURRENT)%s and %d more wait for one of them to end", e.running, preparing, e.waiting)
	if e.full {
		return "the queue is full, so the code was not run: " + state + ", the most that may (MCP_BRIDGE_QUEUE)"
	}
	most := "the longest that one may (MCP_BRIDGE_QUEUE_TIMEOUT)"
	if e.extended {
		most = fmt.Sprintf("longer than one may (MCP_BRIDGE_QUEUE_TIMEOUT, not counting up to %v in which others wait for the engine or the image)", prepareMax)
	}
	return fmt.Sprintf("the code was not run, since the call has waited in the queue for %v, %s: %s", e.waited, most, state)
}

// Hint names the next step.
func (e *queueError) Hint() string {
	if e.preparing > 0 {
		return "call again in a few minutes, since an image may take that long to come; `mcp-bridge doctor` says what is missing"
	}
	return "call again when some of the calls have ended, and do more work in each run"
}

// enter waits for a place until ctx ends, and says for how long: 0 where one was free. With an error, which is a *queueError
// or says that ctx has ended, there is no place; else leave gives it back. waits is called before the wait, if there is one, and
// again when it should say something else: of the calls that have a place so many prepare.
func (a *admission) enter(ctx context.Context, waits func(preparing int)) (time.Duration, error) {
	gaveUp := fmt.Errorf("the call was cancelled while it waited in the queue for one of %d runs to end", a.limit)
	if ctx.Err() != nil { // a free place is not for a call that was cancelled already
		return 0, gaveUp
	}
	place, err := a.join()
	if place == nil {
		return 0, err
	}
	began := time.Now()
	a.wait(ctx, place, waits)
	waited := time.Since(began)
	e, holds := a.quit(place)
	switch {
	case ctx.Err() != nil:
		if holds { // both were there
			a.leave()
		}
		return waited, gaveUp
	case !holds:
		e.waited, e.extended = waited.Round(time.Second/10), waited > a.patience+time.Second/2
		return waited, e
	}
	return waited, nil
}

// wait returns when the place is there, ctx has ended or the patience is used up.
func (a *admission) wait(ctx context.Context, place <-chan struct{}, waits func(preparing int)) {
	began, last := time.Now(), time.After(a.patience+prepareMax)
	before, preparing, settled := a.preparation()
	for now := before; ; {
		left := a.patience - time.Since(began) + now - before
		if left <= 0 && settled == nil {
			return
		}
		waits(preparing)
		var late <-chan time.Time // never, while others prepare
		if settled == nil {
			late = time.After(left)
		}
		select {
		case <-place:
			return
		case <-ctx.Done():
			return
		case <-last:
			return
		case <-late:
		case <-settled:
		}
		now, preparing, settled = a.preparation()
	}
}

// waitingFor is what a call in the queue waits for, for its progress.
func (a *admission) waitingFor(preparing int) string {
	if preparing > 0 {
		return fmt.Sprintf("waiting for one of %d calls to end, %d of which wait for the engine or the image", a.limit, preparing)
	}
	return fmt.Sprintf("waiting for one of %d runs to end", a.limit)
}

// preparation says for how long calls with a place were preparing, ever, how many do now, and, if any, what is closed when none does.
func (a *admission) preparation() (ever time.Duration, preparing int, settled <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.preparing == 0 {
		return a.prepared, 0, nil
	}
	if a.settled == nil {
		a.settled = make(chan struct{})
	}
	return a.prepared + time.Since(a.since), a.preparing, a.settled
}

// prepare does what a call with a place has to wait for before its run can begin.
func (a *admission) prepare(do func() error) error {
	a.mu.Lock()
	if a.preparing++; a.preparing == 1 {
		a.since = time.Now()
	}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.preparing--; a.preparing > 0 {
			return
		}
		a.prepared += time.Since(a.since)
		if a.settled != nil {
			close(a.settled)
			a.settled = nil
		}
	}()
	return do()
}

// join takes a free place, for which it gives nil, or goes to the end of the queue, where there is room.
func (a *admission) join() (chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.running < a.limit:
		a.running++
		return nil, nil
	case len(a.waiting) >= a.room:
		return nil, &queueError{running: a.running, waiting: len(a.waiting), preparing: a.preparing, full: true}
	}
	place := make(chan struct{})
	a.waiting = append(a.waiting, place)
	return place, nil
}

// quit leaves the queue, says how things are then, and whether it held a place by then.
func (a *admission) quit(place chan struct{}) (now *queueError, holds bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, place)
	if i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
	return &queueError{running: a.running, waiting: len(a.waiting), preparing: a.preparing}, i < 0
}

// leave gives a place back, or to whoever waits longest.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		a.running--
		return
	}
	close(a.waiting[0])
	a.waiting = slices.Delete(a.waiting, 0, 1)
}
