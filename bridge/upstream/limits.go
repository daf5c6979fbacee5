package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// limiter bounds what one server works on at a time. Further calls wait, a bounded number of them.
type limiter struct {
	slots chan struct{} // one for each call under way
	queue chan struct{} // one for each that waits
}

func newLimiter(calls, queue int) *limiter {
	return &limiter{slots: make(chan struct{}, calls), queue: make(chan struct{}, queue)}
}

// enter waits for a turn until ctx ends or over is closed, for which it returns errLeft. After nil,
// leave must be called.
func (l *limiter) enter(ctx context.Context, over <-chan struct{}) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.queue <- struct{}{}:
		defer func() { <-l.queue }()
	default:
		return fmt.Errorf("%d calls of it are under way and %d wait, which is the limit; call it less at once",
			cap(l.slots), cap(l.queue))
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-over:
		return errLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *limiter) leave() { <-l.slots }

// idleTimer ends a session that hasn't been used for a while. It may be used concurrently.
type idleTimer struct {
	after time.Duration
	end   func()

	mu    sync.Mutex
	users int
	used  time.Time   // when the last use ended
	timer *time.Timer // nil unless the session can be used
}

// begin starts the timer of a session that can be used from now on.
func (t *idleTimer) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = time.Now()
	t.timer = time.AfterFunc(t.after, t.look)
}

// look ends the session, or looks again later: one that has been used since the timer was set, or
// just before look got the lock, isn't ended.
func (t *idleTimer) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.after - time.Since(t.used)
	switch {
	case t.timer == nil:
	case t.users > 0:
		t.timer.Reset(t.after)
	case left > 0:
		t.timer.Reset(left)
	default:
		t.end()
	}
}

// use keeps the session from being ended until done is called.
func (t *idleTimer) use() (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.users--
		t.used = time.Now()
	}
}

// stop stops the timer for good.
func (t *idleTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

const (
	firstBackoff   = time.Second // after the second failure in a row; after the first there isn't one
	longestBackoff = 30 * time.Second
)

// errBarren is why a session counts as a start that failed.
var errBarren = errors.New("it started, and ended before it had answered anything")

// backoff keeps a server that doesn't start from being started by every call. It has no lock of its
// own.
type backoff struct {
	failed int // in a row
	until  time.Time
}

// failure notes that a start failed.
func (b *backoff) failure() {
	if b.failed++; b.failed > 1 {
		b.until = time.Now().Add(min(longestBackoff, firstBackoff<<min(b.failed-2, 10)))
	}
}

// pause returns for how long the server isn't started from now on.
func (b *backoff) pause() time.Duration { return max(0, time.Until(b.until)) }

// refusal returns why the server isn't started now, whose last failure was last; nil when it may
// be.
func (b *backoff) refusal(last *ServerError) error {
	left := b.pause()
	if left == 0 {
		return nil
	}
	return last.with(&backoffError{b.failed, left, last.Err})
}

// backoffError refuses to start a server that has failed again and again.
type backoffError struct {
	times int
	left  time.Duration
	last  error
}

func (e *backoffError) Unwrap() error { return e.last }

func (e *backoffError) Error() string {
	return fmt.Sprintf("it failed %d times in a row, and is started again by a call in %v or later; the "+
		"last time: %s",
		e.times, e.left.Round(100*time.Millisecond), reasonOf(e.last))
}

// Answers over HTTP come many at a time, and a server decides how slowly. What they hold while they
// are read is bounded by how many of them may be long. Over pipes, and over streams that stay open,
// one message of a server is read at a time.
const (
	shortAnswer     = 256 << 10 // bytes of an answer that needs no room
	longAnswers     = 8         // read at a time, of all servers
	longAnswersEach = 4         // of one
	lastWord        = 100 * time.Millisecond
)

// roomReader reads an answer, and waits for room once it is longer than shortAnswer. It is used by
// one goroutine.
type roomReader struct {
	s    *session
	ctx  context.Context // of the call
	body io.Reader
	size int
	long bool // it has room, which release gives back
}

// Read implements io.Reader.
func (r *roomReader) Read(p []byte) (int, error) {
	if r.size > shortAnswer && !r.long {
		if err := r.wait(); err != nil {
			return 0, err
		}
	}
	n, err := r.body.Read(p)
	r.size += n
	return n, err
}

// wait waits for room until shortly before the call's time ends, so that the call can say why.
func (r *roomReader) wait() error {
	ctx := r.ctx
	if end, bounded := ctx.Deadline(); bounded {
		early, cancel := context.WithDeadline(ctx, end.Add(-lastWord))
		defer cancel()
		ctx = early
	}
	select {
	case r.s.long <- struct{}{}:
	case <-ctx.Done():
		return errNoRoom
	}
	select {
	case r.s.cfg.long <- struct{}{}:
		r.long = true
		return nil
	case <-ctx.Done():
		<-r.s.long
		return errNoRoom
	}
}

// release says that what was read is held no longer.
func (r *roomReader) release() {
	if r.long {
		<-r.s.cfg.long
		<-r.s.long
	}
	r.size, r.long = 0, false
}

var errNoRoom = fmt.Errorf("its answer is longer than %d KiB, of which the bridge reads %d at a time, %d of "+
	"one server; it waited for others to end as long as the call had time. Its work was probably "+
	"done; ask for less, or for less at once", shortAnswer>>10, longAnswers, longAnswersEach)
