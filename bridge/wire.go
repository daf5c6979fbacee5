package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

var (
	errHungUp     = errors.New("the client doesn't take messages any more")
	errNotReading = errors.New("the client has stopped reading")
)

// wire is the only writer to the client: one goroutine that writes whole lines in the order in which send took them. So what
// a call reports reaches the client before what it answers, and a client that stops reading blocks senders, not the shutdown.
type wire struct {
	out    io.Writer
	frames chan []byte
	quit   chan struct{} // closed by hangUp: nothing is taken any more
	ended  chan struct{} // closed when the goroutine has ended
	err    error         // why it ended early; read after ended
	since  atomic.Int64  // when the write under way began, in Unix nanoseconds; 0 when none is
}

// newWire starts the goroutine. Exactly one call of hangUp ends it.
func newWire(out io.Writer) *wire {
	w := &wire{out: out, frames: make(chan []byte), quit: make(chan struct{}), ended: make(chan struct{})}
	go w.write()
	return w
}

func (w *wire) write() {
	defer close(w.ended)
	for {
		select {
		case f := <-w.frames:
			if len(f) == 0 {
				continue
			}
			w.since.Store(time.Now().UnixNano())
			_, err := w.out.Write(f)
			w.since.Store(0)
			if err != nil {
				w.err = fmt.Errorf("writing to the client: %w", err)
				return
			}
		case <-w.quit:
			return
		}
	}
}

// send hands one message over to be written as a line. It waits while the client doesn't read, until stop is closed (which may
// be nil) or nothing can be sent any more. Messages of one goroutine stay in order. Safe for concurrent use.
func (w *wire) send(stop <-chan struct{}, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	select {
	case w.frames <- append(b, '\n'):
		return nil
	case <-w.ended:
	case <-w.quit:
	case <-stop:
	}
	return errHungUp
}

// written returns when what was sent before is written, or nothing can be any more.
func (w *wire) written() {
	select {
	case w.frames <- nil: // it is taken when the write before it has ended
	case <-w.ended:
	case <-w.quit:
	}
}

// stuck says whether the client has not taken a message for so long.
func (w *wire) stuck(d time.Duration) bool {
	since := w.since.Load()
	return since != 0 && time.Since(time.Unix(0, since)) >= d
}

// hangUp takes no more messages and waits for the write under way until the client has not taken it for as long as grace. Then it
// is given up: no one can interrupt a write but by a deadline, where out knows one. hangUp says how the writing went.
func (w *wire) hangUp(grace time.Duration) error {
	close(w.quit)
	for {
		t := time.NewTimer(grace / 4)
		select {
		case <-w.ended:
			t.Stop()
			return w.err
		case <-t.C:
		}
		if w.stuck(grace) {
			break
		}
	}
	if d, ok := w.out.(interface{ SetWriteDeadline(time.Time) error }); ok && d.SetWriteDeadline(time.Now()) == nil {
		<-w.ended
	}
	return errNotReading
}
