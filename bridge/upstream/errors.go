package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

var (
	// ErrUnknownServer says that no server of that name is configured.
	ErrUnknownServer = errors.New("unknown server")

	// ErrClosed says that the pool is closed, or was closed during the call.
	ErrClosed = errors.New("the connections to the servers are closed")
)

const opStart = "starting it"

// ServerError says what went wrong with one server. Err is a *RPCError where the server itself said
// so, the caller's context error where that ended the call, ErrClosed, or what ended the session.
type ServerError struct {
	Server string // name
	Op     string // what was being done: `calling the tool "x"`
	Err    error
	Stderr string // the last lines the server wrote there, if it didn't start or ended; secrets are masked
	Logged string // the same for what it logged by the protocol
}

func (e *ServerError) Error() string {
	text := fmt.Sprintf("server %q: %s: %v", e.Server, e.Op, e.Err)
	if e.Stderr != "" {
		text += "\nits last lines on stderr:\n" + strings.TrimRight(e.Stderr, "\n")
	}
	if e.Logged != "" {
		text += "\nthe last that it logged:\n" + strings.TrimRight(e.Logged, "\n")
	}
	return text
}

func (e *ServerError) Unwrap() error { return e.Err }

// with returns the same error with another reason.
func (e *ServerError) with(reason error) *ServerError {
	other := *e
	other.Err = reason
	return &other
}

// RPCError is the JSON-RPC error that a server answered with.
type RPCError = jsonrpc.Error

// What ended a session. Each says what the server did.
var (
	errOutputEnded = errors.New("it closed its output")
	errInputClosed = errors.New("it closed its input")
	errLeft        = errors.New("it ended")
	errIdle        = errors.New("it was ended as unused")
)

// endError is why a session ended, and when there is another one.
type endError struct {
	why   string
	again string        // what is done then: "starts it again"
	after time.Duration // by the next call; else by one so much later
}

func (e *endError) Error() string {
	if e.after > 0 {
		return fmt.Sprintf("%s; a call in %v or later %s", e.why, e.after, e.again)
	}
	return e.why + "; the next call " + e.again
}

// isA reports whether an error of type T is in err's tree.
func isA[T error](err error) bool {
	_, is := errors.AsType[T](err)
	return is
}

// over returns why a session ended whose server is started again by the next call.
func over(format string, a ...any) error {
	return &endError{why: fmt.Sprintf(format, a...), again: "starts it again"}
}

// onlyAfter returns err, which ended a session, where its server isn't started again so soon.
func onlyAfter(err error, pause time.Duration) error {
	end, ok := errors.AsType[*endError](err)
	if pause <= 0 || !ok {
		return err
	}
	return &endError{end.why, end.again, pause.Round(100 * time.Millisecond)}
}

// reasonOf returns why a session ended or a server didn't start, without when it is tried again.
func reasonOf(err error) string {
	if end, ok := errors.AsType[*endError](err); ok {
		return end.why
	}
	return err.Error()
}

// lineTooLongError returns why a session ends that was sent a line beyond the limit.
func lineTooLongError(limit int) error {
	return over("it sent a line of more than %d bytes, which is the limit, and is ended", limit)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
