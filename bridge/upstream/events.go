package upstream

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

const (
	defaultRetry = time.Second            // until a stream that its server ended is asked for again
	minRetry     = 500 * time.Millisecond // however soon the server wants that
)

// event is one event of a stream of server-sent events.
type event struct {
	name  string
	data  []byte
	id    string
	hasID bool
	retry time.Duration // until a stream that ends is asked for again

	hasRetry bool
}

// eventReader reads server-sent events (WHATWG HTML, 9.2) up to a length of each.
type eventReader struct {
	lines *jsonrpc.Reader
	limit int
}

func newEventReader(src io.Reader, limit int) *eventReader {
	lines := jsonrpc.NewReader(src, limit)
	lines.MaxSkip = 1 // a longer line is the end of the stream
	return &eventReader{lines, limit}
}

var errTooLong = errors.New("an event is beyond the limit")

// next reads one event that has data, an id or a new time to retry. One that is cut off is left
// out.
func (r *eventReader) next() (e event, err error) {
	var hasData bool
	size := 0
	for {
		line, err := r.lines.Next()
		size += len(line) + 1
		if size > r.limit || errors.Is(err, jsonrpc.ErrNoEnd) || isA[*jsonrpc.TooLongError](err) {
			return event{}, errTooLong
		}
		if err != nil {
			return event{}, err
		}
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			if hasData || e.hasID || e.hasRetry {
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
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry, e.hasRetry = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
}

// isMessage reports whether an event is one that may be a message.
func (e event) isMessage() bool { return len(e.data) > 0 && (e.name == "" || e.name == "message") }
