// Package jsonrpc is a JSON-RPC connection as MCP uses it. It serves both the clients that call the
// bridge and the servers that the bridge calls, over pipes (Reader, Lines) or another Carrier.
//
// It is written here because creachadair/jrpc2 and golang.org/x/exp/jsonrpc2 read lines of any
// length and block the whole connection while a peer doesn't read, and the official go-sdk's
// connection, most of it internal, ends at the first line that isn't JSON. None of them bounds the
// requests under way without delaying a cancel behind them, and those of Go decode ids into int64.
//
// Whatever the peer does is bounded: the length of a line, the requests under way, and the
// answers that it leaves unread. A peer that doesn't read blocks senders, never the shutdown.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Codes of errors. CodeBusy is of the range for implementations.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeBusy           = -32000
)

const (
	// MethodCancelled is the notification that cancels a request.
	MethodCancelled = "notifications/cancelled"

	methodInitialize = "initialize" // the one request that must not be cancelled

	maxID    = 1024 // bytes of an id, which are kept for each unread answer
	maxBatch = 256  // messages in one

	maxBatchAnswer = 64 << 20 // bytes of the answer to one
	maxEncoded     = 2        // answers that are encoded and not taken yet
)

var (
	// ErrNoResult says that the peer's answer has neither a result nor an error.
	ErrNoResult = errors.New("it answered with neither a result nor an error")

	// ErrCancelled is the cause of a handler's context when the peer cancelled its request.
	ErrCancelled = errors.New("the request was cancelled")

	// ErrPeerGone is the cause of the handlers' contexts when the peer has ended the connection.
	ErrPeerGone = errors.New("the peer has ended the connection")

	// ErrNoAnswer is returned by a handler whose request gets no answer.
	ErrNoAnswer = errors.New("no answer")

	errNoMessage = errors.New("it is neither a request nor an answer")
	errCase      = errors.New("the members of a message are written in lower case")
	errID        = fmt.Errorf("its id is neither a number nor a string of at most %d bytes", maxID)
)

// A Message is a request, a notification or an answer. What is absent is nil, as is an id of null.
type Message struct {
	ID     json.RawMessage // byte for byte as the peer wrote it
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage

	Raw []byte // the whole text, without line breaks; a batch has nothing else
	Err error  // why Raw can't be read as a message; the other fields may be set all the same
}

// An Error is a JSON-RPC error, received or to be sent.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// misspelt is the value of a member whose name is one of ours except for its case.
type misspelt struct{}

// UnmarshalJSON returns an error.
func (misspelt) UnmarshalJSON([]byte) error { return errCase }

// Decode reads a message as a connection that it is delivered to does, except a batch.
func Decode(text []byte) Message { return decode(clean(text)) }

// decode reads a message. Its fields are read as far as they can be, also where the rest is wrong.
func decode(raw []byte) Message {
	var fields struct {
		// Of several names that differ in case, the first takes the spellings that none has. A reader
		// behind us, which takes any, must not read another message than we do.
		A misspelt `json:"ID"`
		B misspelt `json:"METHOD"`
		C misspelt `json:"PARAMS"`
		D misspelt `json:"RESULT"`
		E misspelt `json:"ERROR"`

		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(raw, &fields)
	m := Message{
		ID: present(fields.ID), Method: fields.Method, Params: fields.Params,
		Result: fields.Result, Error: present(fields.Error), Raw: raw, Err: err,
	}
	switch {
	case err != nil:
	case m.ID != nil && (len(m.ID) > maxID || bytes.IndexByte([]byte("{[tf"), m.ID[0]) >= 0):
		m.ID, m.Err = nil, errID
	case m.Method == "" && m.Result == nil && m.Error == nil && m.ID == nil:
		m.Err = errNoMessage
	}
	return m
}

// clean returns text in valid UTF-8, without a byte order mark, space around it or line breaks,
// which HTTP allows.
func clean(text []byte) []byte {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	// Two calls of IndexByte are much faster than one of ContainsAny.
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return text
	}
	return compact.Bytes()
}

// present returns raw, or nil where it is null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// TextOf returns the string that raw encodes, or raw itself where it encodes something else.
func TextOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// readError reads the error of an answer in whatever shape it is: servers have been seen to send
// a plain string, or a code that isn't a number.
func readError(raw json.RawMessage) *Error {
	e := &Error{Code: CodeInternal}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		e.Message = TextOf(raw)
		return e
	}
	var code float64
	if json.Unmarshal(object["code"], &code) == nil {
		e.Code = int(code)
	}
	if e.Message = TextOf(object["message"]); e.Message == "" {
		e.Message = "an error without a message"
	}
	e.Data = present(object["data"])
	return e
}

// answer returns the answer to a request.
func answer(id json.RawMessage, result any, err error) (*Message, error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	key, value := "result", result
	if err != nil {
		e := &Error{Code: CodeInternal, Message: err.Error()}
		_ = errors.As(err, &e)
		key, value = "error", e
	}
	raw, failed := json.Marshal(value)
	if failed != nil {
		return nil, fmt.Errorf("encoding an answer: %w", failed)
	}
	text := make([]byte, 0, len(raw)+len(id)+40)
	text = fmt.Appendf(text, `{"jsonrpc":"2.0","id":%s,%q:`, id, key)
	m := &Message{ID: id, Raw: append(append(text, raw...), '}')}
	if err != nil {
		m.Error = raw
	} else {
		m.Result = raw
	}
	return m, nil
}

// NewRequest returns a request, or a notification where id is nil. Parameters of nil are left out.
func NewRequest(id json.RawMessage, method string, params any) (*Message, error) {
	m := &Message{ID: id, Method: method}
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return nil, fmt.Errorf("encoding the parameters of %s: %w", method, err)
		}
		m.Params = raw
	}
	text := make([]byte, 0, len(m.Params)+len(method)+80)
	text = append(text, `{"jsonrpc":"2.0",`...)
	if id != nil {
		text = fmt.Appendf(text, `"id":%s,`, id)
	}
	text = fmt.Appendf(text, `"method":%q`, method)
	if m.Params != nil {
		text = append(append(text, `,"params":`...), m.Params...)
	}
	m.Raw = append(text, '}')
	return m, nil
}
