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
func (h *Handler) post(w http.ResponseWriter, r *http.Request, principal string) {
	body, ok := h.read(w, r)
	if !ok {
		return
	}
	m := jsonrpc.Decode(body)
	request := m.Method != "" && m.ID != nil
	initialize := m.Method == string(mcp.MethodInitialize)
	version := metaVersion(&m)
	era := modern(version) || modern(r.Header.Get(headerVersion)) || r.Header.Get(headerSession) == "" &&
		(m.Method == string(mcp.MethodServerDiscover) || m.Method == string(mcp.MethodSubscriptionsListen))
	if (request || m.Err != nil) && h.isDraining() {
		ending(w, &m)
		return
	}
	var s *session
	began := false
	switch {
	case era && m.Err == nil:
		if wrong := mismatched(r.Header, &m, version); request && wrong != nil {
			refuseWith(w, http.StatusBadRequest, wrong.Code, m.ID, wrong.Message)
			return
		}
		s = h.share(principal)
	case initialize && request && r.Header.Get(headerSession) == "":
		s, began = h.open(principal), true
	case m.Err != nil && r.Header.Get(headerSession) == "":
		e := client.Malformed(m.Err)
		refuseWith(w, http.StatusBadRequest, e.Code, m.ID, e.Message)
		return
	default:
		if s = h.sessionOf(w, r, principal); s == nil {
			return
		}
	}
	if s == nil {
		w.Header().Set("Retry-After", "60")
		refuseWith(w, http.StatusServiceUnavailable, jsonrpc.CodeBusy, m.ID,
			"there is no room for another session: end one that isn't used")
		return
	}
	x := &exchange{h: h, s: s, m: &m, stream: s.newStream(), began: began}
	x.run(w, r, body)
}

// read returns the body of a POST, or answers the request.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	switch {
	case !isJSON(r):
		refuse(w, http.StatusUnsupportedMediaType, "the Content-Type of a message is "+typeJSON)
		return nil, false
	case !accepts(r, typeJSON, typeEvents):
		refuse(w, http.StatusNotAcceptable, "the header Accept must have "+typeJSON+" and "+typeEvents)
		return nil, false
	case r.ContentLength > client.MaxMessage:
		tooLarge(w)
		return nil, false
	}
	var whole bytes.Buffer
	if r.ContentLength > 0 {
		whole.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := whole.ReadFrom(http.MaxBytesReader(w, r.Body, client.MaxMessage))
	var long *http.MaxBytesError
	switch {
	case err == nil:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // that the client goes is still seen
		return whole.Bytes(), true
	case errors.As(err, &long):
		tooLarge(w)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %v", bodyTimeout))
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		refuse(w, http.StatusBadRequest, "the body can't be read")
	}
	return nil, false
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

// run answers the request. The session is released when the calls are over.
func (x *exchange) run(w http.ResponseWriter, r *http.Request, body []byte) {
	p := &response{w: w, r: r, stream: x.stream, status: alwaysOK, barred: x.h.barred(r, x.s.principal)}
	ctx := x.h.ctx
	if x.s.id == "" {
		ctx, p.status = r.Context(), statusOf // a client without a session that goes ends its call
	} else {
		p.ids, p.primed = true, x.s.primes()
		p.begins = func() { x.s.hold(x.stream) }
		if x.m.Err != nil {
			p.status = func(int) int { return http.StatusBadRequest }
		}
	}
	if x.began {
		w.Header().Set(headerSession, x.s.id)
		p.answers = func(e event) { x.introduce(w, e) }
	}
	p.attach(-1)
	if !x.deliver(ctx, body) {
		ending(w, x.m)
		return
	}
	err := p.run()
	switch {
	case errors.Is(err, errEmpty) && x.s.conn.Gone():
		refuseWith(w, http.StatusNotFound, codeNoSession, x.m.ID, "the session has ended")
	case errors.Is(err, errEmpty):
		w.WriteHeader(http.StatusAccepted)
	case err != nil:
		x.h.cfg.Log.Debug("a response was not read", "principal", x.s.principal, "err", err)
	}
	if x.began && !x.s.hasVersion() {
		x.h.drop(x.s, errRefused)
	}
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
func (x *exchange) deliver(ctx context.Context, body []byte) bool {
	counted := x.m.Method != "" && x.m.ID != nil && x.m.Method != string(mcp.MethodSubscriptionsListen)
	if counted && !x.h.begin() {
		x.s.release()
		return false
	}
	over := x.s.conn.Deliver(ctx, body, x.stream)
	go func() {
		<-over
		x.stream.finish()
		x.s.outlive(x.stream)
		if counted {
			x.h.finish()
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
