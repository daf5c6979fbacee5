package sandbox

import (
	"context"
	"sync"
)

// backlog counts bytes that wait for somebody to take them, and has those who would add to them wait while there are too
// many. Who is through already may still add: it bounds how many begin, not what each brings.
type backlog struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	room  chan struct{} // closed while there is room
}

func newBacklog(limit int64) *backlog {
	b := &backlog{limit: limit, room: make(chan struct{})}
	close(b.room)
	return b
}

// add counts n more bytes, or less.
func (b *backlog) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.bytes < b.limit
	b.bytes += n
	switch after := b.bytes < b.limit; {
	case before && !after:
		b.room = make(chan struct{})
	case !before && after:
		close(b.room)
	}
}

// wait returns true once there is room, false if ctx ends before.
func (b *backlog) wait(ctx context.Context) bool {
	for {
		b.mu.Lock()
		room, now := b.room, b.bytes < b.limit
		b.mu.Unlock()
		if now {
			return ctx.Err() == nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}
