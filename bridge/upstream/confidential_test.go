package upstream

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// anyLogin has a token for every server.
type anyLogin struct{}

func (anyLogin) Token(context.Context, discovery.Server, string) (string, error) {
	return "a-token", nil
}
func (anyLogin) Close() {}

// TestLoginsAreConfidential: a login's token isn't sent where others could read it on its way.
func TestLoginsAreConfidential(t *testing.T) {
	for raw, want := range map[string]string{
		"https://mcp.example/mcp": "Bearer a-token", "http://localhost:8080/mcp": "Bearer a-token",
		"http://[::1]/mcp":       "Bearer a-token",
		"http://mcp.example/mcp": "", "http://192.0.2.1:8080/mcp": "", "http://localhost.example/mcp": "",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Header: http.Header{}}
		c := newCredentials(&session{mask: newMask(nil), cfg: Config{Logins: anyLogin{}},
			server: discovery.Server{URL: raw}}, u)
		used, err := c.apply(t.Context(), req, sent{})
		if got := req.Header.Get("Authorization"); err != nil || got != want || (used.login != "") != (want != "") {
			t.Errorf("%s: sent %q, %q, %v", raw, got, used.login, err)
		}
	}
}
