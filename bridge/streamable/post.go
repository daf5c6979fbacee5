package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// post takes a message, or a batch, and answers it.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, principal string, of *budget) {
	b := &body{of: of}
	if !h.read(w, r, b) || !h.take(w, r, principal, b) {
		b.give()
	}
}

// take answers a POST. It reports whether the message was delivered; then the body is given back
// when what it asks for is over.
func (h *Handler) take(w http.ResponseWriter, r *http.Request, principal string, b *body) (delivered bool) {
	m := jsonrpc.Decode(b.text)
	request := m.Method != "" && m.ID != nil
	initialize := m.Method == string(mcp.MethodInitialize)
	version := metaVersion(&m)
	era := modern(version) || modern(r.Header.Get(headerVersion)) || r.Header.Get(headerSession) == "" &&
		(m.Method == string(mcp.MethodServerDiscover) || m.Method == string(mcp.MethodSubscriptionsListen))
	_, draining := h.calls.count()
	if (request || m.Err != nil) && draining {
		ending(w, &m)
		return false
	}
	var s *session
	began := false
	switch {
	case era && m.Err == nil:
		if wrong := mismatched(r.Header, &m, version); request && wrong != nil {
			refuseWith(w, http.StatusBadRequest, wrong.Code, m.ID, wrong.Message)
			return false
		}
		s = h.sessions.share(principal)
	case initialize && request && r.Header.Get(headerSession) == "":
		s, began = h.sessions.open(principal), true
	case m.Err != nil && r.Header.Get(headerSession) == "":
		e := client.Malformed(m.Err)
		refuseWith(w, http.StatusBadRequest, e.Code, m.ID, e.Message)
		return false
	default:
		if s = h.sessionOf(w, r, principal); s == nil {
			return false
		}
	}
	if s == nil {
		w.Header().Set("Retry-After", "60")
		refuseWith(w, http.StatusServiceUnavailable, jsonrpc.CodeBusy, m.ID,
			"there is no room for another session: end one that isn't used")
		return false
	}
	x := &exchange{h: h, s: s, m: &m, stream: s.newStream(), began: began}
	return x.run(w, r, b)
}

// body is that of a POST.
type body struct {
	text []byte
	held int // bytes
	of   *budget
}

// read reads it all, which is length bytes at most. It returns errNoRoom if the principal has no
// room for it.
func (b *body) read(from io.Reader, length int64) error {
	for {
		if len(b.text) == cap(b.text) {
			n := max(2*cap(b.text), firstRead)
			if most := int(length) + 1; cap(b.text) < most && most < n {
				n = most // so that the end is seen, too
			}
			room := roomToRead
			if n <= firstRead {
				room = anyRoom
			}
			if b.of.take(n-b.held, room) != nil {
				return errNoRoom
			}
			b.held = n
			b.text = append(make([]byte, 0, n), b.text...)
		}
		n, err := from.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// give gives its room back.
func (b *body) give() { b.of.give(b.held) }

// firstRead is how many bytes of a body are made room for before any has come, and in any case, so
// that a client whose calls take all the room can cancel one, or answer a question.
const firstRead = 4 << 10

var errNoRoom = errors.New("there is no room for the body")

// read reads the body of a POST, or answers the request.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, b *body) (ok bool) {
	switch {
	case !isJSON(r):
		refuse(w, http.StatusUnsupportedMediaType, "the Content-Type of a message is "+typeJSON)
		return false
	case !accepts(r, typeJSON, typeEvents):
		refuse(w, http.StatusNotAcceptable, "the header Accept must have "+typeJSON+" and "+typeEvents)
		return false
	case r.ContentLength > client.MaxMessage:
		tooLarge(w)
		return false
	}
	length := r.ContentLength
	if length < 0 { // unknown
		length = client.MaxMessage
	}
	err := b.read(http.MaxBytesReader(w, r.Body, client.MaxMessage), length)
	switch {
	case err == nil && len(bytes.TrimSpace(b.text)) == 0:
		refuseWith(w, http.StatusBadRequest, jsonrpc.CodeParse, nil, "the body is empty: a POST brings a message")
	case err == nil:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // that the client goes is still seen
		return true
	case errors.Is(err, errNoRoom):
		noRoom(w, b.of)
	case errors.As(err, new(*http.MaxBytesError)):
		tooLarge(w)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %v", bodyTimeout))
	case !errors.Is(err, io.ErrUnexpectedEOF):
		refuse(w, http.StatusBadRequest, "the body can't be read")
	}
	return false
}

// noRoom tells that a body isn't read for those that are held.
func noRoom(w http.ResponseWriter, of *budget) {
	status, whose := http.StatusServiceUnavailable, "all"
	if own, _ := of.within(roomToRead); !own {
		status, whose = http.StatusTooManyRequests, "your"
	}
	w.Header().Set("Retry-After", "5")
	w.Header().Set("Connection", "close")
	refuse(w, status, "the messages of "+whose+
		" requests that aren't answered are too long together: send this one again when some of them have ended")
}

func tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf(
		"the message is longer than %d bytes, which is the limit; send less at a time", client.MaxMessage))
}

// exchange is a POST and what answers it.
type exchange struct {
	h      *Handler
	s      *session
	m      *jsonrpc.Message
	stream *stream
	began  bool // with it its session
}

// run answers the request. The session is released when the calls are over. It reports whether the
// message was delivered.
func (x *exchange) run(w http.ResponseWriter, r *http.Request, b *body) (delivered bool) {
	p := &response{w: w, r: r, stream: x.stream, status: alwaysOK, barred: x.h.barred(r, x.s.principal)}
	ctx := x.h.sessions.ctx
	if x.s.id == "" {
		ctx, p.status = r.Context(), statusOf // a client without a session that goes ends its call
	} else {
		p.ids, p.primed = true, x.s.primes()
		p.begins = func() { x.s.save(x.stream) }
		if x.m.Err != nil {
			p.status = func(int) int { return http.StatusBadRequest }
		}
	}
	if x.began {
		w.Header().Set(headerSession, x.s.id)
		p.answers = func(e event) { x.introduce(w, e) }
	}
	p.attach(-1)
	x.stream.request = w.Header().Get(headerRequest)
	if !x.deliver(ctx, b) {
		ending(w, x.m)
		return false
	}
	err := p.run()
	x.s.settle(x.stream)
	switch {
	case errors.Is(err, errEmpty) && x.s.conn.Gone():
		refuseWith(w, http.StatusNotFound, codeNoSession, x.m.ID, "the session has ended")
	case errors.Is(err, errEmpty):
		w.WriteHeader(http.StatusAccepted)
	case err != nil:
		x.h.cfg.Log.Debug("a response was not read", "principal", x.s.principal, "err", err)
	}
	if x.began && !x.s.hasVersion() {
		x.h.sessions.drop(x.s, errRefused)
	}
	return true
}

// introduce takes the answer to initialize: a session begins unless that is an error.
func (x *exchange) introduce(w http.ResponseWriter, e event) {
	if e.err != nil {
		w.Header().Del(headerSession)
		return
	}
	x.s.introduced(e.raw)
}

// deliver hands the message over, and releases the session when all that it asks for has ended. It
// returns false if no calls are taken any more.
func (x *exchange) deliver(ctx context.Context, b *body) bool {
	request := x.m.Method != "" && x.m.ID != nil
	counted := request && x.m.Method != string(mcp.MethodSubscriptionsListen) || x.m.Err != nil // a batch
	if counted && !x.h.calls.begin() {
		x.s.release()
		return false
	}
	over := x.s.conn.Deliver(ctx, b.text, x.stream)
	go func() {
		<-over
		x.stream.finish()
		x.s.settle(x.stream)
		b.give()
		if counted {
			x.h.calls.finish()
		}
		x.s.release()
	}()
	return true
}

// ending tells that the bridge takes no more calls.
func ending(w http.ResponseWriter, m *jsonrpc.Message) {
	w.Header().Set("Retry-After", "5")
	refuseWith(w, http.StatusServiceUnavailable, jsonrpc.CodeBusy, m.ID,
		"the bridge is ending and takes no new calls: send this one again in a few seconds")
}
