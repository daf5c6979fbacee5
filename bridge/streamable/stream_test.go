package streamable

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// newTestSession returns a session of a principal without a connection.
func newTestSession(all *memory) *session {
	return &session{id: "s", budget: newBudget(all), streams: map[string]*stream{}, hungUp: make(chan struct{})}
}

func news(text string) *jsonrpc.Message {
	return &jsonrpc.Message{Method: "m", Params: []byte(`{}`), Raw: []byte(text)}
}

func answerOf(size int) *jsonrpc.Message {
	return &jsonrpc.Message{ID: []byte("7"), Raw: bytes.Repeat([]byte("x"), size)}
}

// TestSettle: a stream whose call was over before its POST has begun it can be gone on with, for a
// while.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all memory
		s, r := newTestSession(&all), &response{}
		x := s.newStream()
		x.attach(r, -1)
		x.Post(news("progress"))
		x.Post(answerOf(10))
		x.finish()
		s.settle(x) // the call
		s.save(x)
		x.done(r, 1)
		x.detach(r)
		s.settle(x) // the POST
		later := &response{}
		if s.streamOf(x.name) != x {
			t.Fatal("it isn't there any more")
		}
		if _, ok := x.attach(later, 1); !ok {
			t.Fatal("what came after the first event isn't there any more")
		}
		if e, n, _, _ := x.read(later); n != 2 || len(e.raw) != 10 {
			t.Errorf("event %d is %q", n, e.raw)
		}
		x.detach(later)
		time.Sleep(keepTime + time.Second) // of the bubble
		synctest.Wait()
		if s.streamOf(x.name) != nil || all.count() != 0 {
			t.Errorf("it is still there, with %d bytes", all.count())
		}
	})
}

// TestGap: who asks for what comes after an event isn't given later ones where that isn't kept.
func TestGap(t *testing.T) {
	s := newTestSession(&memory{})
	x := newStream(standing, s, true)
	for range maxEvents + 2 {
		x.Post(news("x"))
	}
	for after, want := range map[int]bool{0: false, 1: false, 2: true, 100: true} {
		if _, ok := x.attach(&response{}, after); ok != want {
			t.Errorf("after %d: %v", after, ok)
		}
	}
}

// TestSameNews: a notification that says nothing but its method isn't kept twice unread.
func TestSameNews(t *testing.T) {
	s := newTestSession(&memory{})
	x := newStream(standing, s, true)
	for range 3 {
		for _, text := range []string{"tools", "resources"} {
			x.Post(&jsonrpc.Message{Method: text, Raw: []byte(text)})
		}
	}
	if len(x.events) != 2 {
		t.Errorf("%d events", len(x.events))
	}
	r := &response{}
	x.attach(r, -1)
	x.done(r, 1)
	if x.Post(&jsonrpc.Message{Method: "tools", Raw: []byte("tools")}); len(x.events) != 3 {
		t.Errorf("%d events once it was read", len(x.events))
	}
	x.read(r) // and is about to write it
	for range 2 {
		x.Post(&jsonrpc.Message{Method: "resources", Raw: []byte("resources")})
	}
	if len(x.events) != 4 {
		t.Errorf("%d events once it may have been written", len(x.events))
	}
}

// TestRoom: what a principal doesn't read is bounded, of all its streams together, and what is kept
// of one leaves room for others.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all memory
		greedy := newTestSession(&all)
		var streams []*stream
		var readers []*response
		sent := make(chan error, 100)
		const size = 8 << 20
		for range 20 {
			x, r := newStream("", greedy, false), &response{}
			x.attach(r, -1)
			streams, readers = append(streams, x), append(readers, r)
			go func() { sent <- x.Send(t.Context(), answerOf(size)) }()
		}
		synctest.Wait()
		if len(sent) != roomToSend/size || all.count() != roomToSend {
			t.Errorf("%d answers were taken, %d bytes", len(sent), all.count())
		}
		if freed := greedy.budget.take(1, roomToRead); freed == nil {
			t.Error("there is room for bodies")
		}
		other := newTestSession(&all)
		x := newStream("1", other, true)
		if x.Post(answerOf(100)); string(x.events[0].raw[:1]) != "x" {
			t.Errorf("another principal's answer became %s", x.events[0].raw)
		}
		other.streams[x.name] = x
		for i, x := range streams { // which are read, or lost
			if _, n, _, _ := x.read(readers[i]); n > 0 && i%2 == 0 {
				x.done(readers[i], n)
			} else {
				x.detach(readers[i])
			}
		}
		synctest.Wait()
		if len(sent) != len(streams) {
			t.Errorf("%d of %d senders go on", len(sent), len(streams))
		}
		for i, x := range streams {
			x.detach(readers[i])
		}
		x.forget()
		if all.count() != 0 {
			t.Errorf("%d bytes are never given back", all.count())
		}
	})
}

// TestHungUp: a sender that waits for room doesn't hold up the end of its session.
func TestHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSession(&memory{})
		s.hold(roomToSend)
		x := newStream("", s, false)
		x.attach(&response{}, -1)
		sent := make(chan error, 1)
		go func() { sent <- x.Send(context.WithoutCancel(t.Context()), answerOf(1)) }()
		synctest.Wait()
		close(s.hungUp)
		if err := <-sent; !errors.Is(err, jsonrpc.ErrHungUp) {
			t.Error(err)
		}
	})
}

// TestLostAnswer: of an answer that is too long to be kept for a client whose connection was lost,
// it is told; a shorter one is kept.
func TestLostAnswer(t *testing.T) {
	var all memory
	s := newTestSession(&all)
	for _, size := range []int{100, maxKeptOwned + 1} {
		x, r := s.newStream(), &response{}
		x.attach(r, -1)
		x.Post(answerOf(size))
		x.detach(r)
		kept := string(x.events[0].raw)
		if long := size > 100; long != strings.Contains(kept, `"id":7`) || all.count() > 1000 {
			t.Errorf("of %d bytes %.200s is kept, and %d bytes are counted", size, kept, all.count())
		}
	}
}

// TestLongestIdle: room for a session is made by the principal with most of them.
func TestLongestIdle(t *testing.T) {
	all := newSessions(Config{})
	began := time.Now()
	for i, who := range []string{"alice", "bob", "bob", "bob", "carol", "carol"} {
		id := string(rune('a' + i))
		all.byID[id] = &session{id: id, principal: who, since: began.Add(time.Duration(i) * time.Second)}
		all.owner(who).sessions++
	}
	all.byID["b"].active = 1
	if got := all.longestIdle(""); got.id != "c" {
		t.Errorf("room is made by %s, of %s", got.id, got.principal)
	}
	if got := all.longestIdle("carol"); got.id != "e" {
		t.Errorf("carol makes room by %s, of %s", got.id, got.principal)
	}
}

// TestEnter: calls that aren't answered leave room for streams, and both for the end of a session.
func TestEnter(t *testing.T) {
	all := newSessions(Config{})
	for range maxInFlight {
		if all.enter("p", http.MethodPost) == nil {
			t.Fatal("a call was refused")
		}
	}
	if all.enter("p", http.MethodPost) != nil {
		t.Error("one more was not")
	}
	for range maxStreams {
		if all.enter("p", http.MethodGet) == nil {
			t.Fatal("a stream was refused")
		}
	}
	if all.enter("p", http.MethodGet) != nil {
		t.Error("one more was not")
	}
	if all.enter("p", http.MethodDelete) == nil {
		t.Error("DELETE was refused")
	}
	if all.enter("q", http.MethodPost) == nil {
		t.Error("another principal was refused")
	}
}
