package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chunk is how much is written at a time. A slow reader is given the stall time for each.
	chunk = 16 << 10

	// maxGraces is how many times the grace of HangUp a peer that reads slowly is given.
	maxGraces = 10

	// maxPosts bounds the messages that wait to be written and that no sender waits for.
	maxPosts = 256
)

var (
	// ErrHungUp says that no more messages are taken.
	ErrHungUp = errors.New("the connection takes no more messages")

	// ErrNotReading says that the peer has stopped reading.
	ErrNotReading = errors.New("the peer has stopped reading")
)

// Lines is a Carrier that writes each message as a line. One goroutine writes, in the order in
// which Send took the messages, so that a peer that stops reading blocks senders and nothing else.
type Lines struct {
	out     io.Writer
	stall   time.Duration
	stalled func()

	frames chan []byte
	posts  chan []byte
	quit   chan struct{} // closed by HangUp: no message is taken any more
	ended  chan struct{} // closed when the goroutine has ended
	err    error         // why it ended early; read after ended

	since   atomic.Pointer[time.Time] // when the write under way began; nil for none
	dropped atomic.Bool               // by HangUp: what isn't written yet
}

// NewLines starts the goroutine, which exactly one call of HangUp ends. A stall of more than 0 is
// how long the peer may leave what is written unread until stalled is called, for each chunk.
func NewLines(out io.Writer, stall time.Duration, stalled func()) *Lines {
	l := &Lines{
		out: out, stall: stall, stalled: stalled,
		frames: make(chan []byte), posts: make(chan []byte, maxPosts),
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	go l.run()
	return l
}

func (l *Lines) run() {
	defer close(l.ended)
	for {
		var frame []byte
		select {
		case frame = <-l.frames:
		case frame = <-l.posts:
		case <-l.quit:
			select {
			case frame = <-l.posts: // those that were taken before are still written
			default:
				return
			}
		}
		if err := l.write(frame); err != nil {
			l.err = fmt.Errorf("writing a message: %w", err)
			return
		}
	}
}

func (l *Lines) write(frame []byte) error {
	defer l.since.Store(nil)
	for len(frame) > 0 && !l.dropped.Load() {
		part := frame[:min(chunk, len(frame))]
		now := time.Now() // with its monotonic clock
		l.since.Store(&now)
		stop := func() bool { return true }
		if l.stall > 0 {
			stop = time.AfterFunc(l.stall, l.stalled).Stop
		}
		n, err := l.out.Write(part)
		stop()
		if err != nil {
			return err
		}
		frame = frame[n:]
	}
	return nil
}

// Send hands a message over to be written. It blocks while the peer doesn't read, until ctx ends.
func (l *Lines) Send(ctx context.Context, m *Message) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.frames <- append(m.Raw, '\n'):
		return nil
	case <-l.ended:
		return ErrHungUp
	case <-l.quit:
		return ErrHungUp
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Post hands a message over without blocking. It reports false when too many wait already.
func (l *Lines) Post(m *Message) bool {
	select {
	case l.posts <- append(m.Raw, '\n'):
		return true
	default:
		return false
	}
}

// Flush blocks until what Send took before is written, or nothing can be any more.
func (l *Lines) Flush() {
	select {
	case l.frames <- nil: // taken when the write before it has ended
	case <-l.ended:
	case <-l.quit:
	}
}

// Ended returns a channel that is closed when writing has failed or ended.
func (l *Lines) Ended() <-chan struct{} { return l.ended }

// stuck reports whether the peer hasn't taken a chunk for d.
func (l *Lines) stuck(d time.Duration) bool {
	since := l.since.Load()
	return since != nil && time.Since(*since) >= d
}

// HangUp takes messages until worked is closed, and returns how the writing ended once they are
// written. When the peer is stuck for as long as grace, or hasn't read all within ten times that,
// senders are let go and the write under way is given up: only a deadline could interrupt it, where
// the writer has one. HangUp is called once.
func (l *Lines) HangUp(worked <-chan struct{}, grace time.Duration) error {
	tick := time.NewTicker(max(grace/4, time.Millisecond))
	defer tick.Stop()
	late := time.NewTimer(maxGraces * grace)
	defer late.Stop()
	quit := sync.OnceFunc(func() { close(l.quit) })
	defer quit()
	for slow := false; !slow && !l.stuck(grace); {
		select {
		case <-worked:
			quit()
			worked = nil
		case <-l.ended:
			return l.err
		case <-late.C:
			slow = true
		case <-tick.C:
		}
	}
	quit()
	l.dropped.Store(true)
	if d, ok := l.out.(interface{ SetWriteDeadline(time.Time) error }); ok &&
		d.SetWriteDeadline(time.Now()) == nil {
		<-l.ended
	}
	return ErrNotReading
}
