package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// prepareMax bounds how long runs that prepare the engine may extend a queued run's wait.
const prepareMax = 20 * time.Minute

// admission is the one queue of runs. It bounds how many runs take place and how many containers
// are alive, and owns the warm guests, since a run that gets one needs no new container. A run is
// admitted with a warm guest or with room for a container, in the order of arrival. It is safe for
// concurrent use.
//
// Where there are several principals, the next run is one of the principal that has the fewest, and
// no named one has more than half of them, rounded up. In a full queue a newcomer takes the last
// place of the principal that has the most, if that has more than the newcomer's then.
//
// An admitted run may have to wait for the engine or its image. While one does, the patience of
// those in the queue is not used up: once admitted, they would wait for the same thing.
type admission struct {
	maxRuns, maxContainers int
	standby                int           // warm guests that are kept, of all classes together
	room                   int           // runs that may wait
	patience               time.Duration // the longest that one waits

	mu         sync.Mutex
	runs       int                // admitted
	running    map[string]int     // of these, by principal
	containers int                // alive, on their way to their end, or about to be started
	warm       map[class][]*guest // ready and idle, oldest first
	waiting    []*ticket          // oldest first
	closed     bool               // no guest is kept warm
	rejoined   int                // of waiting: admitted before, and first in the queue
	preparing  int                // of runs
	kept       int                // of containers: those that last
}

// A ticket is a run's place in the queue, and then what the run was admitted with.
type ticket struct {
	principal string        // whose run it is; empty for who has no share but all
	class     class         // of the guest that the run could use
	again     bool          // it was admitted before, and needs another container
	own       bool          // it has a container, and needs none
	granted   chan struct{} // closed when the run may go on, or is refused
	guest     *guest        // nil: the run may start a container
	refused   *QueueError   // another has taken the place
}

// A QueueError says why a run was not admitted. Its text is one sentence, and Hint the next step.
type QueueError struct {
	Running, Waiting int // when the run gave up, itself not counted
	Preparing        int // of those that run
	Share            int // of those that run, where they are as many as the caller may have; else 0
	Kept             int // guests that last, where they have containers that the run could have; else 0
	Waited           time.Duration
	Full             bool // there was no room to wait in

	extended bool // Waited is longer than the patience, since others prepared meanwhile
}

func (e *QueueError) Error() string {
	preparing := ""
	if e.Preparing > 0 {
		preparing = fmt.Sprintf(", %d of them still waiting for the engine or the image", e.Preparing)
	}
	if e.Share > 0 {
		preparing += fmt.Sprintf(", %d of them yours, which is the most that one user may have", e.Share)
	}
	if e.Kept > 0 {
		preparing += fmt.Sprintf(", %d of the containers held by sandboxes that last", e.Kept)
	}
	state := fmt.Sprintf("%d under way (MCP_BRIDGE_MAX_CONCURRENT)%s, %d waiting", e.Running,
		preparing, e.Waiting)
	switch {
	case e.Full:
		return "the queue is full (MCP_BRIDGE_QUEUE), so the code was not run: " + state
	case e.extended:
		return fmt.Sprintf("the code was not run: it waited in the queue for %v, which is longer than "+
			"MCP_BRIDGE_QUEUE_TIMEOUT and the %v for which others may prepare: %s", e.Waited, prepareMax, state)
	}
	return fmt.Sprintf("the code was not run: it waited in the queue for %v (MCP_BRIDGE_QUEUE_TIMEOUT): %s",
		e.Waited, state)
}

// Hint names the next step for a person.
func (e *QueueError) Hint() string {
	if e.Preparing > 0 {
		return "call again in a few minutes, since an image may take that long to come; `mcp-bridge doctor` " +
			"says what is missing"
	}
	return "call again when some of the calls have ended, and do more work in each run"
}

// enter admits a run, or waits until it can be admitted. The error is a *QueueError, or ctx's.
// After nil, leave must be called, and the ticket used up: by its guest, a container or giveBack.
// queued is called once the run has its place, and waits whenever there is something new to say of
// the wait.
func (a *admission) enter(ctx context.Context, t *ticket, queued func(), waits func(string)) error {
	if ctx.Err() != nil {
		queued()
		return context.Cause(ctx)
	}
	full := a.join(t)
	queued()
	if full != nil {
		return full
	}
	began := time.Now()
	select {
	case <-t.granted:
	default:
		a.wait(ctx, t, waits)
	}
	gaveUp := a.quit(t)
	switch {
	case ctx.Err() != nil:
		if gaveUp == nil { // admitted in the same moment
			a.giveBack(t)
			a.leave(t)
		}
		return context.Cause(ctx)
	case gaveUp != nil:
		waited := time.Since(began)
		gaveUp.Waited, gaveUp.extended = waited.Round(time.Second/10), waited > a.patience+time.Second/2
		return gaveUp
	}
	return nil
}

// join puts a ticket into the queue, where there is room.
func (a *admission) join(t *ticket) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.granted = make(chan struct{})
	if len(a.waiting)-a.rejoined >= a.room && !a.free(t) && !a.displace(t) {
		full := a.queueError(t)
		full.Full = true
		return full
	}
	a.waiting = append(a.waiting, t)
	a.grant()
	return nil
}

// rejoin waits for another container, before all runs that have none yet. The error is ctx's.
func (a *admission) rejoin(ctx context.Context, t *ticket) error {
	a.mu.Lock()
	t.again, t.guest, t.granted = true, nil, make(chan struct{})
	a.waiting = slices.Insert(a.waiting, a.rejoined, t)
	a.rejoined++
	a.grant()
	a.mu.Unlock()
	select {
	case <-t.granted:
		if ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	}
	if a.quit(t) == nil {
		a.giveBack(t)
	}
	return context.Cause(ctx)
}

// free reports whether a run could be admitted at once. It is called with mu held.
func (a *admission) free(t *ticket) bool {
	return a.mayRun(t.principal) && (t.own || a.next(false) < 0 && (len(a.warm[t.class]) > 0 ||
		a.containers < a.maxContainers))
}

// share returns how many runs a principal may have.
func (a *admission) share(principal string) int {
	if principal == "" {
		return a.maxRuns
	}
	return (a.maxRuns + 1) / 2
}

// mayRun reports whether a principal may have another run. It is called with mu held.
func (a *admission) mayRun(principal string) bool {
	return a.runs < a.maxRuns && a.running[principal] < a.share(principal)
}

// next returns the place in the queue of the run that is to be admitted next; -1 if none may be.
// Where no container can be had, it is one that has its own. It is called with mu held.
func (a *admission) next(full bool) int {
	found := -1
	for i, t := range a.waiting {
		switch {
		case full && !t.own:
		case t.again:
			return i
		case a.mayRun(t.principal) && (found < 0 || a.running[t.principal] < a.running[a.waiting[found].principal]):
			found = i
		}
	}
	return found
}

// displace gives the place of another principal's last run in the queue to a newcomer, where that
// principal would still have as many as the newcomer's. It is called with mu held.
func (a *admission) displace(newcomer *ticket) bool {
	waiting, last := map[string]int{}, map[string]int{}
	for i, t := range a.waiting {
		if !t.again {
			waiting[t.principal]++
			last[t.principal] = i
		}
	}
	most := newcomer.principal
	for principal, n := range waiting {
		if n > waiting[most] || n == waiting[most] && last[principal] > last[most] {
			most = principal
		}
	}
	if most == newcomer.principal || waiting[most] <= waiting[newcomer.principal]+1 {
		return false
	}
	t := a.waiting[last[most]]
	t.refused = a.queueError(t)
	t.refused.Full = true
	a.waiting = slices.Delete(a.waiting, last[most], last[most]+1)
	close(t.granted)
	return true
}

// queueError returns how things are, for a run that isn't admitted. It is called with mu held.
func (a *admission) queueError(t *ticket) *QueueError {
	e := &QueueError{Running: a.runs, Waiting: len(a.waiting) - a.rejoined, Preparing: a.preparing}
	if a.runs < a.maxRuns && a.containers >= a.maxContainers && !t.own {
		e.Kept = a.kept
	}
	if own := a.running[t.principal]; t.principal != "" && own >= a.share(t.principal) {
		e.Share = own
	}
	return e
}

// grant admits those who are next in the queue while there is room. One that has a container
// doesn't wait for those that have none. It is called with mu held, after every change that may
// have made room.
func (a *admission) grant() {
	for full := false; ; {
		i := a.next(full)
		if i < 0 {
			return
		}
		t := a.waiting[i]
		if !t.own && !a.acquire(t) {
			full = true
			continue
		}
		if t.again {
			a.rejoined--
		} else {
			a.runs++
			if a.running == nil {
				a.running = map[string]int{}
			}
			a.running[t.principal]++
		}
		a.waiting = slices.Delete(a.waiting, i, i+1)
		close(t.granted)
	}
}

// acquire gives a ticket a warm guest, or room for a container, and reports whether there was one.
// It is called with mu held.
func (a *admission) acquire(t *ticket) bool {
	if t.guest = a.pop(t.class); t.guest != nil {
		return true
	}
	if a.containers >= a.maxContainers {
		return false
	}
	a.containers++
	return true
}

// keeps counts guests that last, for what is said of the queue.
func (a *admission) keeps(more int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept += more
}

// wait returns when the run is admitted, ctx has ended or the patience is used up.
func (a *admission) wait(ctx context.Context, t *ticket, waits func(string)) {
	step := min(max(a.patience/100, time.Millisecond), time.Second)
	tick := time.NewTicker(step)
	defer tick.Stop()
	told := -1
	for left, most := a.patience, a.patience+prepareMax; left > 0 && most > 0; most -= step {
		a.mu.Lock()
		preparing := a.preparing
		a.mu.Unlock()
		if preparing != told {
			waits(a.waitingFor(preparing))
			told = preparing
		}
		select {
		case <-t.granted:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if preparing == 0 {
			left -= step
		}
	}
}

// waitingFor returns what a run in the queue waits for.
func (a *admission) waitingFor(preparing int) string {
	if preparing > 0 {
		return fmt.Sprintf("waiting for a call to end (%d at a time, %d of them waiting for the engine or the "+
			"image)", a.maxRuns, preparing)
	}
	return fmt.Sprintf("waiting for a run to end (%d at a time)", a.maxRuns)
}

// prepare marks the run as waiting for the engine or the image until done is called.
func (a *admission) prepare() (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.preparing++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.preparing--
	}
}

// quit takes a ticket out of the queue and returns how things are then, or why the ticket was
// refused, or nil where it was granted already.
func (a *admission) quit(t *ticket) *QueueError {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.waiting, t)
	if i < 0 {
		return t.refused
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if t.again {
		a.rejoined--
	}
	a.grant() // those behind it may want another class
	return a.queueError(t)
}

// leave ends the admitted run of a ticket.
func (a *admission) leave(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs--
	if a.running[t.principal]--; a.running[t.principal] == 0 {
		delete(a.running, t.principal)
	}
	a.grant()
}

// giveBack returns what a granted ticket holds, unused.
func (a *admission) giveBack(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch g := t.guest; {
	case t.own:
	case g == nil:
		a.containers--
	case a.closed:
		g.discard()
	default:
		a.warm[g.class] = slices.Insert(a.warm[g.class], 0, g)
		a.keep(g)
		return
	}
	a.grant()
}

// containerGone makes room for another container.
func (a *admission) containerGone() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.containers--
	a.grant()
}
