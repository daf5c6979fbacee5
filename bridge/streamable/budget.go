package streamable

import (
	"math"
	"sync"
)

// How many bytes are held for a principal at a time, and four times as many for all of them. What
// can be lost gives way first, and bodies leave room for answers. The last one that fits may exceed
// the bound.
const (
	roomToKeep = 32 << 20 // below it messages are kept that were read, or that have no reader now
	roomToRead = 48 << 20 // below it bodies are read
	roomToSend = 64 << 20 // below it messages are taken for a reader; then senders wait
	anyRoom    = math.MaxInt / shares

	shares = 4 // of a principal's room make that of all

	maxEncoding = 4 // answers to a principal that are encoded and not taken yet
)

// memory counts the bytes that are held for all principals.
type memory struct {
	mu    sync.Mutex
	held  int
	freed chan struct{} // closed when some are given back; nil while none wait
}

// A budget counts the bytes that are held for a principal: the bodies of calls that aren't over,
// the messages that aren't read, and those that are kept.
type budget struct {
	all      *memory
	held     int           // guarded by all.mu
	encoding chan struct{} // one for each answer that is encoded and not taken yet
}

func newBudget(all *memory) *budget {
	return &budget{all: all, encoding: make(chan struct{}, maxEncoding)}
}

// take counts n bytes if fewer than room are held. Otherwise it returns a channel that is closed
// when there may be room.
func (b *budget) take(n, room int) (freed <-chan struct{}) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if b.held < room && b.all.held < shares*room {
		b.held += n
		b.all.held += n
		return nil
	}
	if b.all.freed == nil {
		b.all.freed = make(chan struct{})
	}
	return b.all.freed
}

// give is take's counterpart.
func (b *budget) give(n int) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.held -= n
	b.all.held -= n
	if b.all.freed != nil {
		close(b.all.freed)
		b.all.freed = nil
	}
}

// within reports whether fewer bytes than room are held, for the principal and for all.
func (b *budget) within(room int) (own, all bool) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	return b.held < room, b.all.held < shares*room
}

// count returns how many bytes are held.
func (m *memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// keep counts bytes of an event without a reader, unless there is no room for it.
func (s *session) keep(bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+bytes > maxKeptOwned || s.budget.take(bytes, roomToKeep) != nil {
		return false
	}
	s.held += bytes
	return true
}

// send counts bytes of an event for a reader, or returns what is closed when there may be room.
func (s *session) send(bytes int) (freed <-chan struct{}) {
	if freed := s.budget.take(bytes, roomToSend); freed != nil {
		return freed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += bytes
	return nil
}

// hold counts bytes of an event in any case, and give takes back what was counted.
func (s *session) hold(bytes int) {
	s.budget.take(bytes, anyRoom)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += bytes
}

func (s *session) give(bytes int) {
	s.budget.give(bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= bytes
}

// crowded reports whether more is held than is kept.
func (s *session) crowded() bool {
	if own, all := s.budget.within(roomToKeep); !own || !all {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held > maxKeptOwned
}
