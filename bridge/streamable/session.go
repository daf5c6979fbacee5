package streamable

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

// standing is the name of the stream of what belongs to no request.
const standing = "0"

// firstPrimed is the first version in which a stream may begin with an event that has no message.
const firstPrimed = "2025-11-25"

// session is one client of a protocol with sessions, or all those of a principal without.
type session struct {
	h         *Handler
	id        string // empty for the latter
	principal string
	budget    *budget
	conn      *client.Conn
	standing  *stream
	hungUp    chan struct{} // closed when it has ended, and what waits for readers should no more

	mu      sync.Mutex
	version string // of the protocol, once initialize is answered
	streams map[string]*stream
	last    int       // number of streams so far
	over    []*stream // those of them on which nothing more is sent, oldest first
	held    int       // bytes of their events

	// What follows is guarded by h.mu.
	active int // requests that aren't over
	idle   *time.Timer
	since  time.Time // when active became none
	ended  bool
}

// open returns a new session, in use, or nil if there are too many.
func (h *Handler) open(principal string) *session {
	h.mu.Lock()
	o := h.owner(principal)
	var room *session
	switch {
	case h.draining:
	case o.sessions >= maxOwned:
		room = h.longestIdle(principal)
	case len(h.sessions) >= maxSessions:
		room = h.longestIdle("")
	}
	if room != nil {
		h.remove(room)
	}
	if h.draining || o.sessions >= maxOwned || len(h.sessions) >= maxSessions {
		h.mu.Unlock()
		return nil
	}
	s := h.newSession(rand.Text()+h.cfg.Replica.Suffix(), principal)
	s.standing = newStream(standing, s, true)
	s.streams[standing] = s.standing
	s.conn = h.cfg.Clients.Open(h.ctx, principal, shown(s.id), s.standing, s.budget.encoding)
	h.sessions[s.id] = s
	o.sessions++
	h.counts.begun.Add(1)
	h.mu.Unlock()
	if room != nil {
		h.end(room, errRoom)
	}
	h.cfg.Log.Info("a session has begun", "session", shown(s.id), "principal", principal)
	return s
}

// newSession is called with mu held.
func (h *Handler) newSession(id, principal string) *session {
	s := &session{h: h, id: id, principal: principal, budget: h.owner(principal).budget,
		streams: map[string]*stream{}, hungUp: make(chan struct{}), active: 1}
	s.idle = time.AfterFunc(idleTimeout, func() { h.expire(s) })
	s.idle.Stop()
	h.ends.Add(1)
	return s
}

// shown returns what the log names a session by. Its whole id would let a reader of the log use it.
func shown(id string) string { return id[:6] }

// idLength is how long the id of a session is at least.
const idLength = 26

// find returns a principal's session, in use, or nil.
func (h *Handler) find(id, principal string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil || s.principal != principal {
		return nil
	}
	s.use()
	return s
}

// share returns the one session of a principal's clients without sessions, in use, or nil when
// none is served any more.
func (h *Handler) share(principal string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owner(principal)
	if o.shared != nil {
		o.shared.use()
		return o.shared
	}
	if h.draining {
		return nil
	}
	s := h.newSession("", principal)
	s.conn = h.cfg.Clients.OpenShared(h.ctx, principal, s.budget.encoding)
	o.shared = s
	return s
}

// use is called with h.mu held.
func (s *session) use() {
	s.active++
	s.idle.Stop()
}

// release is use's counterpart.
func (s *session) release() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.active--; s.active == 0 && !s.ended {
		s.since = time.Now()
		s.idle.Reset(idleTimeout)
	}
}

// expire ends a session that isn't used.
func (h *Handler) expire(s *session) {
	h.mu.Lock()
	if s.active > 0 || s.ended {
		h.mu.Unlock()
		return
	}
	h.remove(s)
	h.mu.Unlock()
	h.end(s, errIdle)
}

// longestIdle returns the session of a principal that was not in use for longest, or nil. For no
// principal, it is of the one with most sessions that has such a session. It is called with mu
// held, as is remove.
func (h *Handler) longestIdle(principal string) (longest *session) {
	for _, s := range h.sessions {
		if principal != "" && s.principal != principal || s.active > 0 {
			continue
		}
		if longest != nil {
			more := h.owner(s.principal).sessions - h.owner(longest.principal).sessions
			if more < 0 || more == 0 && !s.since.Before(longest.since) {
				continue
			}
		}
		longest = s
	}
	return longest
}

// remove has a session found no more. The caller ends it, once.
func (h *Handler) remove(s *session) {
	s.ended = true
	s.idle.Stop()
	o := h.owner(s.principal)
	if s.id == "" {
		o.shared = nil
	} else {
		delete(h.sessions, s.id)
		o.sessions--
	}
	h.forget(s.principal)
}

// end ends the calls of a session that was removed, and forgets what was kept for its client.
// Answers that aren't taken in hangUpTime are lost. It doesn't block.
func (h *Handler) end(s *session, why error) {
	if s.id != "" {
		h.cfg.Log.Info("a session has ended", "session", shown(s.id), "principal", s.principal, "reason", why)
		s.standing.finish()
	}
	go func() {
		defer h.ends.Done()
		late := time.AfterFunc(hangUpTime, func() { close(s.hungUp) })
		s.conn.Close(why)
		if late.Stop() {
			close(s.hungUp)
		}
		s.mu.Lock()
		streams := s.streams
		s.streams = nil
		for _, t := range s.over {
			t.later.Stop()
		}
		s.mu.Unlock()
		for _, stream := range streams {
			stream.finish()
			stream.forget()
		}
	}()
}

// delete ends a session for its client.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, principal string) {
	s := h.sessionOf(w, r, principal)
	if s == nil {
		return
	}
	defer s.release()
	h.drop(s, errDeleted)
	w.WriteHeader(http.StatusNoContent)
}

// drop ends a session, unless it has ended.
func (h *Handler) drop(s *session, why error) {
	h.mu.Lock()
	first := !s.ended
	if first {
		h.remove(s)
	}
	h.mu.Unlock()
	if first {
		h.end(s, why)
	}
}

// get serves the stream of what belongs to no request, or goes on with one that was lost.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, principal string) {
	if !accepts(r, typeEvents) {
		refuse(w, http.StatusNotAcceptable, "the header Accept must have "+typeEvents)
		return
	}
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, "a GET has no body")
		return
	}
	s := h.sessionOf(w, r, principal)
	if s == nil {
		return
	}
	defer s.release()
	t, after := s.standing, -1
	if id := r.Header.Get(headerEvent); id != "" {
		name, n, ok := parseEventID(id)
		if t = s.streamOf(name); !ok || t == nil {
			notKept(w, id)
			return
		}
		after = n
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it may last
	p := &response{w: w, r: r, stream: t, begun: true, ids: true, primed: s.primes(), status: alwaysOK,
		barred: h.barred(r, principal)}
	if !p.attach(after) {
		notKept(w, r.Header.Get(headerEvent))
		return
	}
	h.counts.streams.Add(1)
	defer h.counts.streams.Add(-1)
	_ = p.run() // why it ends is the client's affair
}

func notKept(w http.ResponseWriter, event string) {
	refuse(w, http.StatusBadRequest, fmt.Sprintf("what came after the event %.40q is not kept any more", event))
}

// sessionOf returns the session that a request names, in use, or answers it.
func (h *Handler) sessionOf(w http.ResponseWriter, r *http.Request, principal string) *session {
	if version := r.Header.Get(headerVersion); version != "" && !mcp.IsValidProtocolVersion(version) {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("the protocol %.40q is not served", version))
		return nil
	}
	id := r.Header.Get(headerSession)
	if id == "" {
		refuse(w, http.StatusBadRequest, "the header "+headerSession+" is missing: initialize gives it")
		return nil
	}
	s := h.find(id, principal)
	if other := h.cfg.Replica.Other(id); s == nil && other != "" {
		w.Header().Set(headerReplica, string(other))
		refuseWith(w, http.StatusMisdirectedRequest, client.CodeMisdirected, nil,
			"the session is of the replica "+string(other)+": have that one answer, or begin another with initialize")
		return nil
	}
	if s == nil {
		refuseWith(w, http.StatusNotFound, codeNoSession, nil,
			"there is no such session: begin another with initialize")
	}
	return s
}

// codeNoSession is the code with which the SDKs' servers tell that a session isn't there.
const codeNoSession = -32001

// newStream returns the stream of a POST. Once a client knows the ids of its events, it is kept.
func (s *session) newStream() *stream {
	if s.id == "" {
		return newStream("", s, false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return newStream(strconv.Itoa(s.last), s, true)
}

// save keeps a stream for later readers.
func (s *session) save(t *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams != nil {
		s.streams[t.name] = t
	}
}

// settle notes that the call of a stream is over, or its POST. When both are, the stream is
// forgotten: later, if a client may go on with it.
func (s *session) settle(t *stream) {
	s.mu.Lock()
	if t.open--; t.open > 0 {
		s.mu.Unlock()
		return
	}
	if s.streams[t.name] != t {
		s.mu.Unlock()
		t.forget()
		return
	}
	s.over = append(s.over, t)
	t.later = time.AfterFunc(keepTime, func() { s.letGo(t) })
	first := s.over[0]
	many := len(s.over) > maxOver || s.held > maxKeptOwned/2
	s.mu.Unlock()
	if many && first != t {
		s.letGo(first)
	}
}

// letGo forgets a stream.
func (s *session) letGo(t *stream) {
	s.mu.Lock()
	s.over = slices.DeleteFunc(s.over, func(other *stream) bool { return other == t })
	delete(s.streams, t.name)
	s.mu.Unlock()
	t.forget()
}

// streamOf returns the stream of a name, or nil.
func (s *session) streamOf(name string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[name]
}

// introduced notes what initialize was answered with.
func (s *session) introduced(answer []byte) {
	var said struct {
		Result struct{ ProtocolVersion string }
	}
	_ = json.Unmarshal(answer, &said) // it is our own
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = said.Result.ProtocolVersion
}

// hasVersion reports whether initialize was answered well.
func (s *session) hasVersion() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version != ""
}

// primes reports whether the client takes events without a message.
func (s *session) primes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version >= firstPrimed
}
