package streamable

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

// sessions are those of all principals, with what is counted of each. It is safe for concurrent
// use. No other lock of this package is taken under mu, nor mu under another one.
type sessions struct {
	clients *client.Clients
	replica client.Replica
	log     *slog.Logger
	ctx     context.Context // of all clients
	cancel  context.CancelCauseFunc
	memory  memory
	ends    sync.WaitGroup // one for each session that isn't gone

	mu     sync.Mutex // also of the last fields of each session
	closed bool       // no more are begun
	begun  int64
	byID   map[string]*session
	owners map[string]*owner // by principal
}

func newSessions(cfg Config) *sessions {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &sessions{
		clients: cfg.Clients, replica: cfg.Replica, log: cfg.Log, ctx: ctx, cancel: cancel,
		byID: map[string]*session{}, owners: map[string]*owner{},
	}
}

// An owner is what there is of a principal now.
type owner struct {
	sessions int
	inFlight int
	deletes  int
	streams  int
	shared   *session // of its clients that have no sessions; nil for none
	budget   *budget
}

// open returns a new session, in use, or nil if there are too many.
func (t *sessions) open(principal string) *session {
	t.mu.Lock()
	o := t.owner(principal)
	var room *session
	switch {
	case t.closed:
	case o.sessions >= maxOwned:
		room = t.longestIdle(principal)
	case len(t.byID) >= maxSessions:
		room = t.longestIdle("")
	}
	if room != nil {
		t.remove(room)
	}
	if t.closed || o.sessions >= maxOwned || len(t.byID) >= maxSessions {
		t.mu.Unlock()
		return nil
	}
	s := t.add(rand.Text()+t.replica.Suffix(), principal)
	s.standing = newStream(standing, s, true)
	s.streams[standing] = s.standing
	s.conn = t.clients.Open(t.ctx, principal, shown(s.id), s.standing, s.budget.encoding)
	t.byID[s.id] = s
	o.sessions++
	t.begun++
	t.mu.Unlock()
	if room != nil {
		t.end(room, errRoom)
	}
	t.log.Info("a session has begun", "session", shown(s.id), "principal", principal)
	return s
}

// add returns a session of a principal, in use. It is called with mu held.
func (t *sessions) add(id, principal string) *session {
	s := &session{in: t, id: id, principal: principal, budget: t.owner(principal).budget,
		streams: map[string]*stream{}, hungUp: make(chan struct{}), active: 1}
	s.idle = time.AfterFunc(idleTimeout, func() { t.expire(s) })
	s.idle.Stop()
	t.ends.Add(1)
	return s
}

// find returns a principal's session, in use, or nil.
func (t *sessions) find(id, principal string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.principal != principal {
		return nil
	}
	s.use()
	return s
}

// share returns the one session of a principal's clients without sessions, in use, or nil when
// none is served any more.
func (t *sessions) share(principal string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owner(principal)
	if o.shared != nil {
		o.shared.use()
		return o.shared
	}
	if t.closed {
		return nil
	}
	s := t.add("", principal)
	s.conn = t.clients.OpenShared(t.ctx, principal, s.budget.encoding)
	o.shared = s
	return s
}

// use is called with mu held.
func (s *session) use() {
	s.active++
	s.idle.Stop()
}

// release is use's counterpart.
func (s *session) release() {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.active--; s.active == 0 && !s.ended {
		s.since = time.Now()
		s.idle.Reset(idleTimeout)
	}
}

// expire ends a session that isn't used.
func (t *sessions) expire(s *session) {
	t.mu.Lock()
	if s.active > 0 || s.ended {
		t.mu.Unlock()
		return
	}
	t.remove(s)
	t.mu.Unlock()
	t.end(s, errIdle)
}

// longestIdle returns the session of a principal that was not in use for longest, or nil. For no
// principal, it is of the one with most sessions that has such a session. It is called with mu
// held, as is remove.
func (t *sessions) longestIdle(principal string) (longest *session) {
	for _, s := range t.byID {
		if principal != "" && s.principal != principal || s.active > 0 {
			continue
		}
		if longest != nil {
			more := t.owner(s.principal).sessions - t.owner(longest.principal).sessions
			if more < 0 || more == 0 && !s.since.Before(longest.since) {
				continue
			}
		}
		longest = s
	}
	return longest
}

// remove has a session found no more. The caller ends it, once.
func (t *sessions) remove(s *session) {
	s.ended = true
	s.idle.Stop()
	o := t.owner(s.principal)
	if s.id == "" {
		o.shared = nil
	} else {
		delete(t.byID, s.id)
		o.sessions--
	}
	t.forget(s.principal)
}

// end ends the calls of a session that was removed, and forgets what was kept for its client.
// Answers that aren't taken in hangUpTime are lost. It doesn't block.
func (t *sessions) end(s *session, why error) {
	if s.id != "" {
		t.log.Info("a session has ended", "session", shown(s.id), "principal", s.principal, "reason", why)
		s.standing.finish()
	}
	go func() {
		defer t.ends.Done()
		late := time.AfterFunc(hangUpTime, func() { close(s.hungUp) })
		s.conn.Close(why)
		if late.Stop() {
			close(s.hungUp)
		}
		s.mu.Lock()
		streams := s.streams
		s.streams = nil
		for _, stream := range s.over {
			stream.later.Stop()
		}
		s.mu.Unlock()
		for _, stream := range streams {
			stream.finish()
			stream.forget()
		}
	}()
}

// drop ends a session, unless it has ended.
func (t *sessions) drop(s *session, why error) {
	t.mu.Lock()
	first := !s.ended
	if first {
		t.remove(s)
	}
	t.mu.Unlock()
	if first {
		t.end(s, why)
	}
}

// refuseNew has no more sessions begin.
func (t *sessions) refuseNew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// close ends all sessions, and waits for them. No more are begun.
func (t *sessions) close() {
	t.mu.Lock()
	t.closed = true
	var all []*session
	for _, s := range t.byID {
		all = append(all, s)
	}
	for _, o := range t.owners {
		if o.shared != nil {
			all = append(all, o.shared)
		}
	}
	for _, s := range all {
		t.remove(s)
	}
	t.mu.Unlock()
	for _, s := range all {
		t.end(s, errEnding)
	}
	t.ends.Wait()
	t.cancel(errEnding)
}

// count returns how many sessions there are, how many have begun so far, and of how many principals
// there is a session or a request.
func (t *sessions) count() (open, begun, principals int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.byID)), t.begun, int64(len(t.owners))
}

// enter counts one more request of a principal and returns the latter, or nil if it has too many.
func (t *sessions) enter(principal, method string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owner(principal)
	count, most := o.count(method)
	if *count >= most {
		return nil
	}
	*count++
	return o
}

func (t *sessions) leave(principal, method string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count, _ := t.owner(principal).count(method)
	*count--
	t.forget(principal)
}

// count returns where requests of a method are counted, and how many there may be. Streams, of
// which each session has one, leave room for calls, and both for the end of sessions.
func (o *owner) count(method string) (count *int, most int) {
	switch method {
	case http.MethodGet:
		return &o.streams, maxStreams
	case http.MethodDelete:
		return &o.deletes, maxInFlight
	}
	return &o.inFlight, maxInFlight
}

// owner returns what there is of a principal. It is called with mu held, as is forget.
func (t *sessions) owner(principal string) *owner {
	o := t.owners[principal]
	if o == nil {
		o = &owner{budget: newBudget(&t.memory)}
		t.owners[principal] = o
	}
	return o
}

func (t *sessions) forget(principal string) {
	o := t.owners[principal]
	if o != nil && o.sessions+o.inFlight+o.deletes+o.streams == 0 && o.shared == nil {
		delete(t.owners, principal)
	}
}
