package upstream

import (
	"context"
	"fmt"
	"io"
	"time"
)

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
