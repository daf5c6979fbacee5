package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// chunk is how much is written at a time. A slow reader is given writeTimeout for each.
const chunk = 64 << 10

// response is one HTTP response that reads a stream.
type response struct {
	w       http.ResponseWriter
	r       *http.Request
	stream  *stream
	at      int                // the number of the last event that the client had
	begun   bool               // as a stream of events
	ids     bool               // events have ids, to go on after
	primed  bool               // the stream begins with an event that has nothing but its id
	begins  func()             // is called before it begins; may be nil
	answers func(e event)      // is called before the answer is written; may be nil
	status  func(code int) int // of an answer that is an error
	barred  func() error       // why the client isn't let in any more; nil for one that always is
	asked   time.Time          // when it was called last
}

// errEmpty says that a stream was over before anything was sent on it.
var errEmpty = errors.New("nothing was sent")

// attach has p read the stream from the event after the one of a number on, or from the first that
// isn't read if after is negative. It reports whether what comes after that one is still there.
func (p *response) attach(after int) (ok bool) {
	p.at, ok = p.stream.attach(p, after)
	return ok
}

// run writes what comes, until the answer is written, there will be none, or the peer is gone.
// It returns errEmpty if there was nothing to write.
func (p *response) run() error {
	defer p.stream.detach(p)
	if p.begun {
		if err := p.begin(); err != nil {
			return err
		}
	}
	wait := time.NewTimer(p.patience())
	defer wait.Stop()
	p.asked = time.Now()
	for {
		if p.barred != nil && time.Since(p.asked) >= ping {
			p.asked = time.Now()
			if err := p.barred(); err != nil {
				return err
			}
		}
		e, n, over, news := p.stream.read(p)
		switch {
		case n > 0:
			whole, err := p.event(e, n)
			if err != nil {
				return err
			}
			p.stream.done(p, n)
			if whole {
				return nil
			}
			wait.Reset(p.patience())
			continue
		case over && p.begun:
			return nil
		case over:
			return errEmpty
		}
		select {
		case <-news:
		case <-p.r.Context().Done():
			return context.Cause(p.r.Context())
		case <-wait.C:
			err := p.beat()
			if err != nil {
				return err
			}
			wait.Reset(p.patience())
		}
	}
}

// patience returns how long a quiet stream waits.
func (p *response) patience() time.Duration {
	if p.begun {
		return ping
	}
	return quiet
}

// beat begins a stream that has nothing to say yet, or shows that it is alive.
func (p *response) beat() error {
	if !p.begun {
		return p.begin()
	}
	return p.write([]byte(": ping\n\n"))
}

// begin begins a stream of events. The first one that has an id may be one without a message, so
// that a client knows what to go on after.
func (p *response) begin() error {
	if p.begins != nil {
		p.begins()
	}
	p.begun = true
	header := p.w.Header()
	header.Set("Content-Type", typeEvents)
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no") // nginx would wait for more
	p.w.WriteHeader(http.StatusOK)
	if p.primed {
		return p.write([]byte("id: " + eventID(p.stream.name, p.at) + "\nretry: 1000\ndata: \n\n"))
	}
	return p.write([]byte(": ok\n\n"))
}

// event writes one message, and reports whether it is the answer, after which there is nothing.
func (p *response) event(e event, n int) (whole bool, err error) {
	if e.answer && p.answers != nil {
		p.answers(e)
	}
	if !p.begun && e.answer {
		return true, p.answer(e)
	}
	if !p.begun {
		if err := p.begin(); err != nil {
			return false, err
		}
	}
	text := make([]byte, 0, len(e.raw)+40)
	if p.ids {
		text = append(text, "id: "+eventID(p.stream.name, n)+"\n"...)
	}
	text = append(append(append(text, "data: "...), e.raw...), "\n\n"...)
	return e.answer, p.write(text)
}

// answer writes the whole response as one message.
func (p *response) answer(e event) error {
	status := http.StatusOK
	var failed struct {
		Code int
		Data struct{ Replica string }
	}
	header := p.w.Header()
	if e.err != nil {
		_ = json.Unmarshal(e.err, &failed) // it is our own, and Data has many forms
		status = p.status(failed.Code)
	}
	if status == http.StatusMisdirectedRequest {
		header.Set(headerReplica, failed.Data.Replica)
	}
	header.Set("Content-Type", typeJSON)
	header.Set("Content-Length", strconv.Itoa(len(e.raw)))
	p.w.WriteHeader(status)
	return p.write(e.raw)
}

// write writes and flushes, in chunks that each have their time, as has the whole.
func (p *response) write(text []byte) error {
	control := http.NewResponseController(p.w)
	if p.r.ProtoMajor > 1 { // whose deadlines end a stream that is quiet, too
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	}
	end := time.Now().Add(writeTimeout + time.Duration(len(text))*time.Second/slowest)
	for len(text) > 0 {
		part := text[:min(chunk, len(text))]
		deadline := time.Now().Add(writeTimeout)
		if end.Before(deadline) {
			deadline = end
		}
		if err := control.SetWriteDeadline(deadline); err != nil {
			return fmt.Errorf("bounding a write: %w", err)
		}
		if _, err := p.w.Write(part); err != nil {
			return err
		}
		text = text[len(part):]
	}
	return control.Flush()
}

// eventID returns the id of an event, which is that of a stream and its number in it.
func eventID(stream string, n int) string { return stream + "-" + strconv.Itoa(n) }

// parseEventID is the reverse.
func parseEventID(id string) (stream string, n int, ok bool) {
	stream, number, ok := strings.Cut(id, "-")
	n, err := strconv.Atoi(number)
	return stream, n, ok && err == nil && n >= 0
}

// alwaysOK is the status of answers of protocols with sessions.
func alwaysOK(int) int { return http.StatusOK }

var _ jsonrpc.Carrier = (*stream)(nil)
