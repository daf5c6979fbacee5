package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

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
	name string // in its session
	// of the POST's request in the log; set before the message is delivered
	request string
	of      *session
	kept    bool        // or it ends with its reader
	open    int         // of its call and its POST, how many aren't over; guarded by of.mu
	later   *time.Timer // forgets it, once it is over and its session keeps it; guarded by of.mu

	mu     sync.Mutex
	events []event
	first  int           // the number of events[0]; they count from 1
	next   int           // the number of the first that isn't read
	begun  int           // the number of the last that the reader may have begun to write
	reader *response     // nil for none
	over   bool          // nothing more is sent
	spent  bool          // no one will read it again
	news   chan struct{} // closed when any of this has changed
}

// An event is one message.
type event struct {
	raw    []byte
	id     json.RawMessage // of an answer
	err    json.RawMessage // of an answer that is an error
	answer bool
}

func newStream(name string, of *session, kept bool) *stream {
	return &stream{name: name, of: of, kept: kept, open: 2, first: 1, next: 1, news: make(chan struct{})}
}

// LogName returns what the log names the request by whose answer the stream carries.
func (s *stream) LogName() string { return s.request }

// changed wakes those who wait. It is called with mu held.
func (s *stream) changed() {
	close(s.news)
	s.news = make(chan struct{})
}

// Send implements jsonrpc.Carrier. It waits while the reader has much to read, or the principal.
func (s *stream) Send(ctx context.Context, m *jsonrpc.Message) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		taken, gone, news, freed := s.take(m, maxUnread)
		switch {
		case gone:
			return jsonrpc.ErrHungUp
		case taken:
			return nil
		}
		select {
		case <-news:
		case <-freed:
		case <-s.of.hungUp:
			return jsonrpc.ErrHungUp
		case <-ctx.Done():
		}
	}
}

// Post implements jsonrpc.Carrier.
func (s *stream) Post(m *jsonrpc.Message) bool {
	taken, gone, _, _ := s.take(m, maxPosted)
	return taken || gone // then there is nothing to wait for
}

// take appends a message if fewer than limit are unread and the principal has room. The answer,
// after which there is nothing, needs room alone. A stream that no one reads keeps the last ones.
// Where nothing is taken, news or freed is closed when it may be.
func (s *stream) take(m *jsonrpc.Message, limit int) (taken, gone bool, news, freed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := event{raw: m.Raw, err: m.Error, answer: m.Method == ""}
	if e.answer {
		e.id = m.ID
	}
	switch {
	case s.over, s.reader == nil && !s.kept:
		return false, true, nil, nil
	case s.reader != nil && s.first+len(s.events)-s.next >= limit && !e.answer:
		return false, false, s.news, nil
	case m.ID == nil && m.Params == nil && !e.answer && s.waits(m.Raw):
		return true, false, nil, nil // a change of what it is about to hear of anyway
	case s.reader == nil:
		for len(s.events) >= maxEvents {
			s.drop()
		}
		for !s.of.keep(len(e.raw)) {
			if len(s.events) == 0 {
				e = tooLong(e)
				s.of.hold(len(e.raw))
				break
			}
			s.drop()
		}
	default:
		if freed := s.of.send(len(e.raw)); freed != nil {
			return false, false, s.news, freed
		}
		s.trim(maxEvents)
	}
	s.events = append(s.events, e)
	s.changed()
	return true, false, nil, nil
}

// waits reports whether a message of the same text is still to be written. One that is being
// written doesn't count: the client may have it, and have looked before the change that raw tells
// of. It is called with mu held, as are trim and drop.
func (s *stream) waits(raw []byte) bool {
	from := max(s.next, s.begun+1) - s.first
	return slices.ContainsFunc(s.events[min(from, len(s.events)):],
		func(e event) bool { return bytes.Equal(e.raw, raw) })
}

// trim drops what was read while there are most events or more is held than is kept.
func (s *stream) trim(most int) {
	for s.first < s.next && (len(s.events) >= most || !s.kept || s.of.crowded()) {
		s.drop()
	}
}

// tooLong returns what stands for a message that no one reads and that is too long to be kept.
func tooLong(e event) event {
	why := &jsonrpc.Error{Code: jsonrpc.CodeBusy, Message: fmt.Sprintf(
		"the connection was lost, and the message of %d bytes is too long to be kept for another", len(e.raw))}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": e.id, "error": why})
	if err != nil || !e.answer {
		return event{raw: []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":` +
			`{"level":"warning","data":"a message was lost"}}`)}
	}
	return event{raw: raw, id: e.id, answer: true}
}

// drop forgets the oldest event.
func (s *stream) drop() {
	size := len(s.events[0].raw)
	s.events[0] = event{}
	s.events = s.events[1:]
	s.first++
	s.next = max(s.next, s.first)
	s.of.give(size)
}

// abandon drops what can't be kept of a stream whose reader has gone. For the answer there is an
// error then.
func (s *stream) abandon() {
	for s.of.crowded() && len(s.events) > 1 {
		s.drop()
	}
	if len(s.events) == 0 || !s.of.crowded() {
		return
	}
	if e := tooLong(s.events[0]); len(e.raw) < len(s.events[0].raw) {
		s.of.give(len(s.events[0].raw))
		s.of.hold(len(e.raw))
		s.events[0] = e
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
// number of the last event that r doesn't read, or false if there were others after it, which
// aren't kept any more.
func (s *stream) attach(r *response, after int) (last int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= 0 && after+1 < s.first {
		return 0, false
	}
	s.reader = r
	if after >= 0 {
		s.next = min(after+1, s.first+len(s.events))
	}
	s.begun = s.next - 1
	s.changed()
	return s.next - 1, true
}

// detach is attach's counterpart. A stream that isn't kept takes no more then.
func (s *stream) detach(r *response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != r {
		return
	}
	s.reader = nil
	if s.spent || !s.kept {
		s.clear()
	} else {
		s.abandon()
	}
	s.changed()
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
		s.begun = s.next
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
	s.trim(maxEvents)
	s.changed()
}
