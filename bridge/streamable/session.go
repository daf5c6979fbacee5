package streamable

import (
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
	in        *sessions
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

	// What follows is guarded by in.mu.
	active int // requests that aren't over
	idle   *time.Timer
	since  time.Time // when active became none
	ended  bool
}

// shown returns what the log names a session by. Its whole id would let a reader of the log use it.
func shown(id string) string { return id[:6] }

// idLength is how long the id of a session is at least.
const idLength = 26

// delete ends a session for its client.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, principal string) {
	s := h.sessionOf(w, r, principal)
	if s == nil {
		return
	}
	defer s.release()
	h.sessions.drop(s, errDeleted)
	w.WriteHeader(http.StatusNoContent)
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
	s := h.sessions.find(id, principal)
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
