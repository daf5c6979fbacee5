package upstream

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// chunk is how much is written at a time. Each chunk gets the whole stall timeout: a server that reads slowly is not ended.
const chunk = 16 << 10

// outbox is a server's stdin as mcp-go sees it: writes never block. A blocking write would hold mcp-go's lock against every
// other caller of the same server, and no context would end it.
type outbox struct {
	pipe  *os.File
	limit int           // bytes that may wait
	stall time.Duration // for the server to take one chunk
	fail  func(error)   // ends the session

	mu     sync.Mutex
	queue  [][]byte
	size   int // of the queue and of what is being written
	closed bool
	wake   chan struct{} // has room for one; closed with the box
}

func newOutbox(pipe *os.File, limit int, stall time.Duration, fail func(error)) *outbox {
	return &outbox{pipe: pipe, limit: limit, stall: stall, fail: fail, wake: make(chan struct{}, 1)}
}

// Write takes one message, whole. It is refused with a *backlogError when too much is waiting already. After Close it is
// dropped without an error: mcp-go would log that to the process's default logger, and callers learn of the end otherwise.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	if o.size > 0 && o.size+len(p) > o.limit {
		return 0, &backlogError{limit: o.size}
	}
	o.queue = append(o.queue, append([]byte(nil), p...))
	o.size += len(p)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// reply queues an answer to a request of the server. One that asks without end and doesn't read the answers is ended.
func (o *outbox) reply(line []byte) {
	if _, err := o.Write(line); err != nil {
		o.fail(fmt.Errorf("it sends requests and doesn't read the answers: %w", err))
	}
}

// Close closes the server's stdin; what still waits is dropped. It doesn't block and may be called more than once.
func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed, o.queue = true, nil
	close(o.wake)
	return o.pipe.Close()
}

// send writes what is queued until the box is closed or the server takes no more.
func (o *outbox) send() {
	for range o.wake {
		for {
			message, ok := o.next()
			if !ok {
				break
			}
			if !o.write(message) {
				return
			}
		}
	}
}

func (o *outbox) next() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil, false
	}
	message := o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	return message, true
}

func (o *outbox) write(message []byte) bool {
	for len(message) > 0 {
		part := message[:min(chunk, len(message))]
		watch := time.AfterFunc(o.stall, func() {
			o.fail(over("it has read nothing of its input for %v, and is ended", o.stall))
		})
		n, err := o.pipe.Write(part)
		watch.Stop()
		o.mu.Lock()
		o.size -= n
		o.mu.Unlock()
		if err != nil {
			o.fail(errInputClosed)
			return false
		}
		message = message[n:]
	}
	return true
}
