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

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

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
