package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
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

// Starting reports whether the server had not started yet.
func (e *ServerError) Starting() bool { return e.Op == opStart }

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

// refused returns the error of a failed HTTP answer to the message, which was sent with the headers
// h. A JSON-RPC error in it is received as the answer, and nil is returned.
func (x exchange) refused(h http.Header, resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBody))
	challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return x.r.unauthorized(challenge, false)
	case resp.StatusCode == http.StatusForbidden && insufficientScope.MatchString(challenge):
		return x.r.unauthorized(challenge, true)
	case forgot(h, resp, body):
		x.r.s.fail(errSessionGone)
		return errSessionGone
	case x.isRefusal(resp, body):
		return nil
	}
	err := x.r.failure(resp, body)
	if !x.r.now().begun && resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusForbidden &&
		resp.StatusCode != http.StatusTooManyRequests {
		return &otherTransportError{err}
	}
	return err
}

// unauthorized returns an error that says what can be done about a challenge.
func (r *remote) unauthorized(challenge string, more bool) error {
	if r.credentials.configured() {
		return fmt.Errorf("it refused the authorization that its configuration gives; correct that in %s",
			origin(r.s.server))
	}
	scope := ""
	if m := challengeScope.FindStringSubmatch(challenge); m != nil {
		scope = r.s.mask.text(text.First(text.Line(m[1]+m[2]), errorText))
	}
	return &LoginError{Server: r.s.server.Name, Scope: scope, More: more}
}

// sessionText tells the servers that answer 400 where the protocol wants 404 for a session they
// don't know.
var sessionText = regexp.MustCompile(`(?i)session`)

// forgot reports whether the server doesn't know the session of a message any more.
func forgot(h http.Header, resp *http.Response, body []byte) bool {
	if h.Get(mcp.HeaderSessionID) == "" || h.Get("Content-Type") == "" { // as of a message
		return false
	}
	return resp.StatusCode == http.StatusNotFound ||
		resp.StatusCode == http.StatusBadRequest && sessionText.Match(body)
}

// isRefusal receives a failure that is a JSON-RPC error for what was asked, and reports whether it
// is.
func (x exchange) isRefusal(resp *http.Response, body []byte) bool {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var said struct{ Error json.RawMessage }
	if !x.isRequest() || x.r.now().sse || media != textJSON || json.Unmarshal(body, &said) != nil ||
		len(said.Error) == 0 || said.Error[0] != '{' {
		return false
	}
	// Some servers answer under an id of null.
	x.r.s.conn.Receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, x.m.ID, said.Error))
	return !x.waits()
}

func (r *remote) failure(resp *http.Response, body []byte) error {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	said := ""
	if media == "text/plain" || media == "application/json" {
		said = text.First(text.Line(r.s.mask.text(string(body))), errorText)
	}
	if said == "" {
		return fmt.Errorf("it answered %s", status)
	}
	return fmt.Errorf("it answered %s: %s", status, said)
}

// What challenges say (RFC 6750, 3).
var (
	insufficientScope = regexp.MustCompile(`(?i)\berror\s*=\s*"?insufficient_scope\b`)
	challengeScope    = regexp.MustCompile(`(?i)[\s,]scope\s*=\s*(?:"([^"\\]+)"|([^\s",]+))`)
)

// exchangeError is what went wrong with one HTTP request.
type exchangeError struct{ err error }

func (e *exchangeError) Error() string { return e.err.Error() }
func (e *exchangeError) Unwrap() error { return e.err }

// statusError is a failed HTTP answer.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// otherTransportError says that the server is there and refuses the first request as one does that
// knows only the other of Streamable HTTP and SSE.
type otherTransportError struct{ err error }

func (e *otherTransportError) Error() string { return e.err.Error() }
func (e *otherTransportError) Unwrap() error { return e.err }

// What ended a session over HTTP.
var (
	errSessionGone = errors.New("it no longer knows the session, as after a restart; " +
		"the call was not carried out, and the next one begins a new session")
	errElsewhere   = errors.New("it names an address at another origin, where nothing is sent to")
	errStreamEnded = &endError{why: "it ended the stream of events", again: "connects again"}
)

// unreachableError says that no answer came.
type unreachableError struct{ why string }

func (e *unreachableError) Error() string { return "it can't be reached: " + e.why }

// LoginError says that a server wants an authorization that the user can give.
type LoginError struct {
	Server string
	Scope  string // that the server asks for; empty where it names none
	More   bool   // there is an authorization, and it isn't enough
}

func (e *LoginError) Error() string {
	what := "it wants to be authorized"
	if e.More {
		what = "it wants more than it was authorized for"
	}
	what += "; type: mcp-bridge login " + text.ShellWord(e.Server)
	if e.Scope != "" {
		what += " --scope " + text.ShellWord(e.Scope)
	}
	return what
}
