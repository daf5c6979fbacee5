package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
)

// backlog counts the bytes of results that wait for the guest to take them, of one run. While there are many it has calls wait
// that would bring more. Those under way may still bring theirs, up to a bound: how much that will be nobody can tell before.
type backlog struct {
	limit int64         // from which on no call begins
	most  int64         // that there are
	held  *atomic.Int64 // by all runs
	total int64         // that those are at most, but for share
	share int64         // that a run may hold whatever others do

	mu    sync.Mutex
	bytes int64
	room  chan struct{} // closed while calls may begin
}

func newBacklog(limit, most, total int64, held *atomic.Int64) *backlog {
	b := &backlog{limit: limit, most: most, held: held, total: total, share: limit / 4, room: make(chan struct{})}
	close(b.room)
	return b
}

// hold counts n more bytes until they are released. False says that there are too many already; then they are not counted. Runs that
// take nothing leave every other one its share: a result as long as can be sent.
func (b *backlog) hold(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes+n > b.most {
		return false
	}
	if b.held.Add(n) > b.total && b.bytes+n > b.share {
		b.held.Add(-n)
		return false
	}
	before := b.bytes < b.limit
	b.bytes += n
	if before && b.bytes >= b.limit {
		b.room = make(chan struct{})
	}
	return true
}

func (b *backlog) release(n int64) {
	b.held.Add(-n)
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.bytes < b.limit
	b.bytes -= n
	if !before && b.bytes < b.limit {
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
