package oauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// challenge is what a server says when it refuses a request (RFC 6750; RFC 9728, 5.1).
type challenge struct {
	metadata, scope string

	status   int    // of the refusal, or of the answer that came instead
	location string // the other origin that the answer redirects to, if any
}

// A counted repeat of a thousand would take a millisecond to compile at each start.
const value = `\s*=\s*(?:"([^"\\]+)"|([^\s",]+))`

const maxParameter = 1000 // bytes of a challenge's parameter

var (
	challengeMetadata = regexp.MustCompile(`(?i)\bresource_metadata` + value)
	challengeScope    = regexp.MustCompile(`(?i)(?:^|[\s,])scope` + value)
)

func readChallenge(resp *http.Response) challenge {
	c := challenge{status: resp.StatusCode}
	said := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
	c.metadata = parameter(challengeMetadata, said)
	c.scope = parameter(challengeScope, said)
	return c
}

// parameter returns what a pattern that ends in value finds, or "" if that is too long to be meant.
func parameter(pattern *regexp.Regexp, said string) string {
	m := pattern.FindStringSubmatch(said)
	if m == nil || len(m[1])+len(m[2]) > maxParameter {
		return ""
	}
	return m[1] + m[2]
}

// noLogin returns what a server answered instead of naming who authorizes for it, and what to do.
func (ch challenge) noLogin(s discovery.Server) error {
	entry := "its configuration"
	if s.Source.Path != "" {
		entry = "its entry in " + s.Source.Path
	}
	const answers = "it answers %d%s, and names no authorization server; %s %s"
	switch {
	case ch.status == http.StatusUnauthorized:
		return fmt.Errorf("it answers 401 and names no authorization server; write a token into the headers of %s",
			entry)
	case ch.status/100 == 2:
		return ErrNoLogin
	case ch.location != "":
		to := ", a redirection to " + ch.location
		return fmt.Errorf(answers, ch.status, to, "if that is right, write its URL there into", entry)
	}
	return fmt.Errorf(answers, ch.status, ", which asks for no login", "see whether the URL is right in", entry)
}

// The requests of a probe. A server may refuse any of them, and let those before it pass.
const (
	helloNewer = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"` + newerVersion + `",` +
		`"io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"mcp-bridge","version":"login"}}}}`
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion +
		`","capabilities":{},"clientInfo":{"name":"mcp-bridge","version":"login"}}}`
	helloTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// probe asks the server without any authorization, until it refuses: for its tools by the newer
// protocol, for a session and its tools by the older one, and by GET for the older transport, whose
// answer counts if the server takes no POST there.
func (c *Client) probe(ctx context.Context, s discovery.Server, server *url.URL) (ch challenge, err error) {
	session := http.Header{"Mcp-Protocol-Version": {protocolVersion}}
	for _, try := range []struct {
		body   string
		header http.Header
	}{
		{helloNewer, http.Header{"Mcp-Protocol-Version": {newerVersion}, "Mcp-Method": {"tools/list"}}},
		{hello, nil},
		{helloTools, session},
		{"", nil},
	} {
		if try.body == helloTools && ch.status/100 != 2 {
			continue
		}
		resp, err := c.knock(ctx, s, server, try.body, try.header)
		if err != nil {
			return ch, err
		}
		_ = resp.Body.Close() // it may be a stream that doesn't end
		switch {
		case resp.StatusCode == http.StatusUnauthorized:
			return readChallenge(resp), nil
		case try.body == hello:
			ch = challenge{status: resp.StatusCode, location: elsewhere(resp, resp.Request.URL)}
			if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
				session.Set("Mcp-Session-Id", id)
			}
		case try.body == "" && resp.StatusCode/100 == 2 &&
			(ch.status == http.StatusNotFound || ch.status == http.StatusMethodNotAllowed):
			ch = challenge{status: resp.StatusCode}
		}
	}
	return ch, nil
}

// knock sends one message of a probe, or asks for a stream if body is empty. The caller closes the
// body.
func (c *Client) knock(ctx context.Context, s discovery.Server, server *url.URL, body string,
	header http.Header) (*http.Response, error) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("its URL can't be used")
	}
	for name, value := range s.Headers {
		if !strings.EqualFold(name, "Authorization") {
			req.Header.Set(name, value)
		}
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.send(req, server)
}

// elsewhere returns the other origin that an answer redirects to, if any, without the path, which
// may hold a secret.
func elsewhere(resp *http.Response, from *url.URL) string {
	to, err := resp.Location()
	if err != nil || resp.StatusCode/100 != 3 || to.Host == "" || sameOrigin(to, from) {
		return ""
	}
	return hostOf(to)
}
