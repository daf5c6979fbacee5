package bridge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// admission lets a bounded number of runs take place at a time. Further calls wait in a bounded queue, in the order in which
// they came to it: a bridge serves one client over stdio, so nobody can be passed over by somebody else's calls. A place that
// becomes free is handed to whoever waits longest, never put up for grabs. It is safe for concurrent use.
type admission struct {
	limit    int           // runs at a time; at least 1
	room     int           // calls that may wait; 0 for none
	patience time.Duration // the longest that one waits

	mu      sync.Mutex
	running int
	waiting []chan struct{} // oldest first, and only while running is limit; closing one hands a place to it
}

// A queueError says why a call was not let in. Its text is one sentence, and Hint the next step.
type queueError struct {
	running, waiting int // when the call gave up, itself not counted
	waited           time.Duration
	full             bool // it found no room to wait in; else it has waited as long as it may
}

func (e *queueError) Error() string {
	state := fmt.Sprintf("%d runs are under way (MCP_BRIDGE_MAX_CONCURRENT) and %d calls wait for one of them to end", e.running, e.waiting)
	if e.full {
		return "the queue is full, so the code was not run: " + state + ", the most that may (MCP_BRIDGE_QUEUE)"
	}
	return fmt.Sprintf("the code was not run, since the call has waited in the queue for %v, the longest that one may (MCP_BRIDGE_QUEUE_TIMEOUT): %s",
		e.waited, state)
}

// Hint names the next step.
func (e *queueError) Hint() string {
	return "call again when some of the runs have ended, and do more work in each run"
}

// enter waits for a place until ctx ends, and says for how long: 0 where one was free. With an error, which is a *queueError
// or says that ctx has ended, there is no place; else leave gives it back. waits is called before the wait, if there is one.
func (a *admission) enter(ctx context.Context, waits func()) (time.Duration, error) {
	gaveUp := fmt.Errorf("the call was cancelled while it waited in the queue for one of %d runs to end", a.limit)
	if ctx.Err() != nil { // a free place is not for a call that was cancelled already
		return 0, gaveUp
	}
	place, err := a.join()
	if place == nil {
		return 0, err
	}
	began := time.Now()
	waits()
	late := time.NewTimer(a.patience)
	defer late.Stop()
	select {
	case <-place:
	case <-ctx.Done():
	case <-late.C:
	}
	waited := time.Since(began)
	running, waiting, holds := a.quit(place)
	switch {
	case ctx.Err() != nil:
		if holds { // both were there
			a.leave()
		}
		return waited, gaveUp
	case !holds:
		return waited, &queueError{running: running, waiting: waiting, waited: a.patience}
	}
	return waited, nil
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
		return nil, &queueError{running: a.running, waiting: len(a.waiting), full: true}
	}
	place := make(chan struct{})
	a.waiting = append(a.waiting, place)
	return place, nil
}

// quit leaves the queue and says how many run and wait then, and whether it held a place by then.
func (a *admission) quit(place chan struct{}) (running, waiting int, holds bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, place)
	if i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
	return a.running, len(a.waiting), i < 0
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
