package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// inbox is a server's stdout as mcp-go sees it. It reads line by line, with a limit that mcp-go doesn't have, and keeps from
// mcp-go what that would lose or wait on for ever: answers are kept raw, for mcp-go rounds the numbers in an error's data and
// drops a response whose error or id has another shape than expected, so that its caller would wait until the timeout.
// mcp-go is passed an empty answer in their place, and wakes the caller.
//
// Requests of the server don't reach mcp-go, which would start a goroutine for each: a ping is answered here, others are handed to
// questions.
//
// Read is called by mcp-go's only reading goroutine. expect, take and forget may be called concurrently.
type inbox struct {
	src   *bufio.Reader
	limit int
	mask  *mask
	reply func(line []byte)
	asks  *questions
	noise func(line []byte)

	journal *ring       // takes what the server logs
	logs    atomic.Bool // the server has declared that it logs

	fail func(error) // ends the session
	eof  chan struct{}

	rest []byte // what mcp-go hasn't read yet

	mu        sync.Mutex
	waiting   map[string]*answer        // by request id
	observers map[string]func(Progress) // of those whose progress is asked for

	subscription  string       // the request by which changes are heard; empty for none. Guarded by mu, as what follows is but for loads
	subscriptions int64        // that have been acknowledged
	heard         atomic.Int64 // which of them it is that the server has acknowledged; 0 while there is none
}

// answer is what a server answered to one request.
type answer struct {
	result json.RawMessage
	err    error
}

func newInbox(src io.Reader, limit int, mask *mask, asks *questions, noise func([]byte), fail func(error)) *inbox {
	return &inbox{
		src: bufio.NewReaderSize(src, 64<<10), limit: limit, mask: mask, reply: asks.reply, asks: asks, noise: noise, fail: fail,
		eof: make(chan struct{}), waiting: map[string]*answer{}, observers: map[string]func(Progress){},
	}
}

// expect makes room for the answer to id, and has progress told to f unless that is nil. It must be called before the request is
// sent.
func (in *inbox) expect(id string, f func(Progress)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.waiting[id] = nil
	if f != nil {
		in.observers[id] = f
	}
}

// forget drops id; an answer that still comes is ignored.
func (in *inbox) forget(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiting, id)
	delete(in.observers, id)
}

// take is the answer to id, once mcp-go has said that there is one.
func (in *inbox) take(id string) (json.RawMessage, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	a := in.waiting[id]
	if a == nil {
		return nil, errors.New("the answer was lost")
	}
	return a.result, a.err
}

// put keeps an answer, the first one if there are several, and says whether anyone waits for it.
func (in *inbox) put(id string, a *answer) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	old, ok := in.waiting[id]
	if !ok || old != nil {
		return false
	}
	in.waiting[id] = a
	return true
}

// Read hands mcp-go the next messages that it should see. It ends with io.EOF whatever the reason; that is told to fail.
func (in *inbox) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		line, err := in.line()
		if err != nil {
			select {
			case <-in.eof:
			default:
				close(in.eof)
			}
			in.fail(err)
			return 0, io.EOF
		}
		in.rest = in.digest(line)
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// line reads one line, which is the caller's. A last line without its newline is no message.
func (in *inbox) line() ([]byte, error) {
	var line []byte
	for {
		part, err := in.src.ReadSlice('\n')
		if len(line)+len(part) > in.limit {
			return nil, lineTooLongError(in.limit)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 {
				in.noise(line)
			}
			return nil, errOutputEnded
		}
	}
}

// message has the fields of a request, a notification and a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// digest takes one message, or one batch of them, and returns what mcp-go is to see of it, as lines.
func (in *inbox) digest(line []byte) []byte {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	line = oneLine(line)
	var seen []byte
	var batch []json.RawMessage // part of one revision of the protocol
	if bytes.HasPrefix(line, []byte("[")) && json.Unmarshal(line, &batch) == nil {
		for _, m := range batch {
			seen = append(seen, in.message(m)...)
		}
		return seen
	}
	return in.message(line)
}

// oneLine is a JSON text without the line breaks that HTTP lets it have: what mcp-go is to see ends with its line. Another text stays as
// it is.
func oneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 { // much faster than ContainsAny, over megabytes
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return text
	}
	return compact.Bytes()
}

func (in *inbox) message(raw []byte) []byte {
	var m message
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		in.noise(raw)
		return in.undecodable(raw, err)
	}
	hasID := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case m.Method != "" && hasID:
		in.request(m)
		return nil
	case m.Method == string(mcp.MethodNotificationCancelled):
		return in.unsubscribed(textOf(in.asks.withdrawn(raw)))
	case m.Method == string(mcp.MethodNotificationToolsListChanged):
		return append(bytes.Clone(raw), '\n')
	case m.Method == mcp.MethodNotificationSubscriptionsAcknowledged:
		in.acknowledged(raw)
		return nil
	case m.Method == string(mcp.MethodNotificationMessage):
		in.log(m.Params)
		return nil
	case m.Method == string(mcp.MethodNotificationProgress):
		in.progress(raw)
		return nil
	case m.Method != "":
		return nil // nobody listens to others
	case !hasID:
		in.noise(raw)
		return nil
	default:
		return in.response(m)
	}
}

// response keeps an answer to a request of ours. Others are the client's own (initialize), or come too late, or twice.
func (in *inbox) response(m message) []byte {
	failed := len(m.Error) > 0 && string(m.Error) != "null"
	id := textOf(m.ID)
	if _, err := strconv.ParseInt(id, 10, 64); err == nil { // a number, or a number that came back as a string
		if failed {
			e := rpcError(m.Error, in.mask)
			text, _ := json.Marshal(e.Message)
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s,"data":%s}}`+"\n", id, e.Code, text, orNull(e.Data))
		}
		in.greeting(m.Result)
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, orNull(m.Result))
	}
	a := &answer{result: m.Result}
	switch {
	case failed:
		a.err = rpcError(m.Error, in.mask)
	case len(m.Result) == 0:
		a.err = errors.New("it answered with neither a result nor an error")
	}
	return in.deliver(id, a)
}

// deliver keeps an answer and returns the line that makes mcp-go wake who waits for it.
func (in *inbox) deliver(id string, a *answer) []byte {
	if !in.put(id, a) {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":{}}`+"\n", id)
}

// undecodable fails the one request that a broken answer is for, as far as that can be seen, instead of letting it wait.
func (in *inbox) undecodable(line []byte, err error) []byte {
	if line[0] != '{' || !bytes.Contains(line, []byte(`"result"`)) {
		return nil
	}
	const edge = 256 // the id stands at either end
	head, tail := line[:min(edge, len(line))], line[max(0, len(line)-edge):]
	in.mu.Lock()
	var found []string
	for id := range in.waiting {
		if q := []byte(strconv.Quote(id)); bytes.Contains(head, q) || bytes.Contains(tail, q) {
			found = append(found, id)
		}
	}
	in.mu.Unlock()
	if len(found) != 1 {
		return nil
	}
	return in.deliver(found[0], &answer{err: fmt.Errorf("its answer can't be decoded: %w", err)})
}

// request takes a request of the server.
func (in *inbox) request(m message) {
	if m.Method == string(mcp.MethodPing) {
		in.reply(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID))
		return
	}
	in.asks.asked(m)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
