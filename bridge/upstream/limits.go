package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// turns bounds what one server works on at a time. Further calls wait, a bounded number of them.
type turns struct {
	slots chan struct{} // one for each call under way
	queue chan struct{} // one for each that waits
}

func newTurns(calls, queue int) *turns {
	return &turns{slots: make(chan struct{}, calls), queue: make(chan struct{}, queue)}
}

// enter waits for a turn until ctx ends or over is closed, for which it says errLeft. After nil, leave must be called.
func (t *turns) enter(ctx context.Context, over <-chan struct{}) error {
	select {
	case t.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.queue <- struct{}{}:
		defer func() { <-t.queue }()
	default:
		return fmt.Errorf("%d calls of it are under way and %d wait, which is the limit; call it less at once", cap(t.slots), cap(t.queue))
	}
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-over:
		return errLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *turns) leave() { <-t.slots }

// rest ends a session that nobody has used for a while. It is safe for concurrent use.
type rest struct {
	after time.Duration // negative: never
	end   func()

	mu    sync.Mutex
	users int
	last  time.Time // when it was last used
	timer *time.Timer
	over  bool
}

// begin begins to look at a session that can be used from now on.
func (r *rest) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.after > 0 && !r.over {
		r.last = time.Now()
		r.timer = time.AfterFunc(r.after, r.look)
	}
}

// look ends the session if it has rested for long enough, or looks again.
func (r *rest) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.after - time.Since(r.last)
	switch {
	case r.over:
	case r.users == 0 && left <= 0:
		r.end()
	default:
		r.timer.Reset(max(left, r.after/10))
	}
}

// touch says that the session is about to be used.
func (r *rest) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
}

// use says that the session is used until done is called.
func (r *rest) use() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.users--
		r.last = time.Now()
	}
}

// stop ends the looking.
func (r *rest) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

const (
	firstBackoff   = time.Second // after the second failure in a row; after the first there is none
	longestBackoff = 30 * time.Second
)

// errBarren is why a session counts as a start that failed.
var errBarren = errors.New("it started, and ended before it had answered anything")

// backoff keeps a server that doesn't start from being started by each call anew. Its user guards it.
type backoff struct {
	failed int // in a row
	last   error
	until  time.Time
}

// failure notes that a start failed.
func (b *backoff) failure(err error) {
	b.failed++
	b.last = err
	if b.failed > 1 {
		b.until = time.Now().Add(min(longestBackoff, firstBackoff<<min(b.failed-2, 10)))
	}
}

// success notes that the server is of use.
func (b *backoff) success() { *b = backoff{} }

// pause is for how long the server isn't started from now on.
func (b *backoff) pause() time.Duration { return max(0, time.Until(b.until)) }

// refusal is why the server isn't started now; nil when it may be.
func (b *backoff) refusal() error {
	left := b.pause()
	if left == 0 {
		return nil
	}
	return &restError{b.failed, left, b.last}
}

// restError refuses to start a server that has failed again and again.
type restError struct {
	times int
	left  time.Duration
	last  error
}

func (e *restError) Unwrap() error { return e.last }

func (e *restError) Error() string {
	return fmt.Sprintf("it failed %d times in a row, and is started again by a call in %v or later; the last time: %s",
		e.times, e.left.Round(100*time.Millisecond), reasonOf(e.last))
}
