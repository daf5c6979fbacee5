package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// minRetry is how soon a server may have us ask again for a stream that it ended.
const minRetry = 500 * time.Millisecond

// event is one event of a stream of server-sent events.
type event struct {
	name  string
	data  []byte
	id    string
	hasID bool
	retry string
}

// eventReader reads server-sent events (WHATWG HTML, 9.2) with a limit for the length of one, which mcp-go doesn't have.
type eventReader struct {
	src   *bufio.Reader
	limit int
}

var errTooLong = errors.New("beyond the limit")

// next reads one event that has data, an id or a new time to retry. An event that is cut off is none.
func (r *eventReader) next() (e event, err error) {
	var hasData bool
	size := 0
	for {
		line, err := r.line(&size)
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if hasData || e.hasID || e.retry != "" {
				return e, nil
			}
			e, size = event{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if hasData {
				e.data = append(e.data, '\n')
			}
			e.data, hasData = append(e.data, value...), true
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.id, e.hasID = string(value), true
			}
		case "retry":
			if _, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = string(value)
			}
		}
	}
}

// line reads one line of an event without its end.
func (r *eventReader) line(size *int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.src.ReadSlice('\n')
		if *size += len(part); *size > r.limit {
			return nil, errTooLong
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimRight(line, "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// sieve is the body of an answer as mcp-go sees it: a stream of events in which every message has gone through the inbox. Read
// is called by one goroutine.
type sieve struct {
	body   io.ReadCloser
	next   func() ([]byte, error) // what mcp-go is to see of the next message; its error ends the stream
	ending func(error) []byte     // what it is to see last
	rest   []byte
	err    error
}

func (s *sieve) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, io.EOF
		}
		if s.rest, s.err = s.next(); s.err != nil && s.ending != nil {
			s.rest = append(s.rest, s.ending(s.err)...)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *sieve) Close() error { return s.body.Close() }

// asEvents is lines as events.
func asEvents(lines []byte) (out []byte) {
	for line := range bytes.Lines(lines) {
		out = fmt.Appendf(out, "data: %s\n\n", bytes.TrimSpace(line))
	}
	return out
}
