package streamable

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

const (
	maxUnread = 8   // messages that a reader hasn't taken; then who sends them waits
	maxPosted = 64  // and those that no sender waits for
	maxEvents = 256 // that a stream keeps for a reader to come
)

// A stream is what is sent in answer to one POST, or apart from all of them. It is a Carrier. One
// response at a time reads it. Of a stream that is kept a later one can read again what an earlier
// one may have lost.
type stream struct {
	name string   // in its session
	kept *session // what keeps it; nil for one that ends with its reader

	mu     sync.Mutex
	events []event
	first  int           // the number of events[0]; they count from 1
	next   int           // the number of the first that isn't read
	reader *response     // nil for none
	over   bool          // nothing more is sent
	spent  bool          // no one will read it again
	news   chan struct{} // closed when any of this has changed
}

// An event is one message.
type event struct {
	raw    []byte
	err    json.RawMessage // of an answer that is an error
	answer bool
}

func newStream(name string, kept *session) *stream {
	return &stream{name: name, kept: kept, first: 1, next: 1, news: make(chan struct{})}
}

// changed wakes those who wait. It is called with mu held.
func (s *stream) changed() {
	close(s.news)
	s.news = make(chan struct{})
}

// Send implements jsonrpc.Carrier. It waits while the reader has much to read.
func (s *stream) Send(ctx context.Context, m *jsonrpc.Message) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		taken, gone, news := s.take(m, maxUnread)
		switch {
		case gone:
			return jsonrpc.ErrHungUp
		case taken:
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// Post implements jsonrpc.Carrier.
func (s *stream) Post(m *jsonrpc.Message) bool {
	taken, gone, _ := s.take(m, maxPosted)
	return taken || gone // then there is nothing to wait for
}

// take appends a message if fewer than limit are unread. A stream that no one reads keeps the last
// ones.
func (s *stream) take(m *jsonrpc.Message, limit int) (taken, gone bool, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unread := s.first + len(s.events) - s.next
	switch {
	case s.over, s.reader == nil && s.kept == nil:
		return false, true, nil
	case s.reader != nil && unread >= limit:
		return false, false, s.news
	}
	e := event{raw: m.Raw, err: m.Error, answer: m.Method == ""}
	if s.kept != nil {
		for len(s.events) >= maxEvents {
			s.drop()
		}
		for !s.kept.keep(len(e.raw)) {
			if len(s.events) > 0 && (s.reader == nil || s.first < s.next) {
				s.drop()
				continue
			}
			if s.reader == nil {
				e = tooLong(m)
			}
			s.kept.keepAnyway(len(e.raw))
			break
		}
	}
	s.events = append(s.events, e)
	s.changed()
	return true, false, nil
}

// tooLong returns what stands for a message that no one reads and that is too long to be kept.
func tooLong(m *jsonrpc.Message) event {
	why := &jsonrpc.Error{Code: jsonrpc.CodeBusy, Message: fmt.Sprintf(
		"the connection was lost, and the message of %d bytes is more than is kept for another one", len(m.Raw))}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": why})
	if err != nil || m.Method != "" {
		return event{raw: []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":` +
			`{"level":"warning","data":"a message was lost"}}`)}
	}
	return event{raw: raw, answer: true}
}

// drop forgets the oldest event. It is called with mu held.
func (s *stream) drop() {
	size := len(s.events[0].raw)
	s.events[0] = event{}
	s.events = s.events[1:]
	s.first++
	s.next = max(s.next, s.first)
	if s.kept != nil {
		s.kept.keepAnyway(-size)
	}
}

// finish notes that nothing more is sent.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.changed()
	}
}

// forget drops all events, once no one reads them any more.
func (s *stream) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent = true
	s.clear()
}

// clear is called with mu held.
func (s *stream) clear() {
	if s.reader == nil {
		for len(s.events) > 0 {
			s.drop()
		}
	}
}

// attach makes r the reader, from the event after the one of a number on, or from the first that
// isn't read if after is negative. A reader that there was before gets nothing more. It returns the
// number of the last event that r doesn't read.
func (s *stream) attach(r *response, after int) (last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = r
	if after >= 0 {
		s.next = min(max(after+1, s.first), s.first+len(s.events))
	}
	s.changed()
	return s.next - 1
}

// detach is attach's counterpart. A stream that isn't kept takes no more then.
func (s *stream) detach(r *response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == r {
		s.reader = nil
		if s.spent {
			s.clear()
		}
		s.changed()
	}
}

// read returns the next event for r with its number, which is 0 for none now. It returns whether
// there will be one: news is closed when it should be asked again.
func (s *stream) read(r *response) (e event, n int, over bool, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.reader != r:
		return e, 0, true, nil
	case s.next < s.first+len(s.events):
		return s.events[s.next-s.first], s.next, false, nil
	}
	return e, 0, s.over, s.news
}

// done notes that r has written the event of a number.
func (s *stream) done(r *response, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != r || s.next != n {
		return
	}
	s.next++
	if s.kept == nil {
		s.drop()
	}
	s.changed()
}
