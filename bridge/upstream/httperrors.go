package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// refuse is an answer of failure.
func (g *gate) refuse(req *http.Request, resp *http.Response) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBody))
	a := askedBy(req)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, g.unauthorized(challengedScope(resp.Header, bearer), false)
	case resp.StatusCode == http.StatusForbidden && challengeError.MatchString(strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")):
		return nil, g.unauthorized(challengedScope(resp.Header, challengeError), true)
	case g.forgot(req, resp, body):
		g.r.s.fail(errSessionGone)
		return nil, errSessionGone
	case req.Method == http.MethodGet && !g.isSSE():
		return empty(req, http.StatusMethodNotAllowed), nil // it has no notifications to tell
	}
	if lines := g.refusal(resp, body, a); lines != nil {
		return g.events(resp, io.NopCloser(strings.NewReader(string(asEvents(lines))))), nil
	}
	err := g.failure(resp, body)
	if g.isFirst(a) && resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusTooManyRequests {
		return nil, &otherTransportError{err}
	}
	return nil, err
}

// isFirst says whether a request is the first one of its transport.
func (g *gate) isFirst(a asked) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.begun && (g.sse || a.method == string(mcp.MethodInitialize) || a.method == string(mcp.MethodServerDiscover))
}

// unauthorized says what can be done about it.
func (g *gate) unauthorized(scope string, more bool) error {
	if g.credentials.configured() {
		return fmt.Errorf("it refused the authorization that its configuration gives; correct that in %s", origin(g.r.s.server))
	}
	return &LoginError{Server: g.r.s.server.Name, Scope: g.r.s.mask.text(scope), More: more}
}

// sessionText tells the servers that answer 400 where the protocol wants 404 for a session they don't know.
var sessionText = regexp.MustCompile(`(?i)session`)

// forgot says whether the server doesn't know our session any more.
func (g *gate) forgot(req *http.Request, resp *http.Response, body []byte) bool {
	if req.Header.Get(transport.HeaderKeySessionID) == "" || req.Method != http.MethodPost {
		return false
	}
	return resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest && sessionText.Match(body)
}

// refusal is the lines for mcp-go where the failure is a JSON-RPC error for what was asked; nil where it isn't.
func (g *gate) refusal(resp *http.Response, body []byte, a asked) []byte {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var m message
	if len(a.id) == 0 || g.isSSE() || media != "application/json" || json.Unmarshal(body, &m) != nil || len(m.Error) == 0 || m.Error[0] != '{' {
		return nil
	}
	m.ID = a.id
	lines := g.r.s.in.response(m)
	if !answers(lines, a) {
		return nil
	}
	return lines
}

func (g *gate) failure(resp *http.Response, body []byte) error {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	said := ""
	if media == "text/plain" || media == "application/json" {
		said = text.First(text.Line(g.r.s.mask.text(string(body))), errorText)
	}
	if said == "" {
		return fmt.Errorf("it answered %s", status)
	}
	return fmt.Errorf("it answered %s: %s", status, said)
}

var (
	bearer         = regexp.MustCompile(`(?i)\bbearer\b`)
	challengeError = regexp.MustCompile(`(?i)\berror\s*=\s*"?insufficient_scope\b`)
	challengeScope = regexp.MustCompile(`(?i)[\s,]scope\s*=\s*(?:"([^"\\]{1,500})"|([^\s",]{1,500}))`)
)

// challengedScope returns the scope that a server asks for (RFC 6750, 3) in a challenge of a kind;
// empty where it names none.
func challengedScope(h http.Header, kind *regexp.Regexp) string {
	for _, challenge := range h.Values("WWW-Authenticate") {
		if !kind.MatchString(challenge) {
			continue
		}
		if m := challengeScope.FindStringSubmatch(challenge); m != nil {
			return text.First(text.Line(m[1]+m[2]), errorText)
		}
	}
	return ""
}
