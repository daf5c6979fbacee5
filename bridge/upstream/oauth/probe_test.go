package oauth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestProbeGoesOn holds that a login asks for the scope that a server names, whichever request it
// refuses first.
func TestProbeGoesOn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(method, version, session string) int
		status int
	}{
		{"refuses all", func(string, string, string) int { return 401 }, 401},
		{"refuses what isn't initialize", func(method, version, session string) int {
			switch {
			case version == newerVersion:
				return 400
			case method == "initialize":
				return 200
			case method == "tools/list" && session == "s-1":
				return 401
			}
			return 400
		}, 401},
		{"refuses the newer protocol's requests", func(_, version, _ string) int {
			if version == newerVersion {
				return 401
			}
			return 400
		}, 401},
		{"refuses the stream", func(method, _, _ string) int {
			if method == "" {
				return 401
			}
			return 405
		}, 401},
		{"refuses nothing", func(string, string, string) int { return 200 }, 200},
		{"is missing", func(string, string, string) int { return 404 }, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m struct{ Method string }
				_ = json.NewDecoder(r.Body).Decode(&m)
				status := tt.answer(m.Method, r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Mcp-Session-Id"))
				if m.Method == "initialize" {
					w.Header().Set("Mcp-Session-Id", "s-1")
				}
				if status == 401 {
					w.Header().Set("WWW-Authenticate", `Bearer scope="files:read"`)
				}
				w.WriteHeader(status)
			}))
			defer srv.Close()
			server, err := url.Parse(srv.URL + "/mcp")
			if err != nil {
				t.Fatal(err)
			}
			ch, err := NewClient().probe(t.Context(), discovery.Server{Name: "s", URL: server.String()}, server)
			if err != nil || ch.status != tt.status || (ch.scope == "files:read") != (tt.status == 401) {
				t.Errorf("got %+v, %v", ch, err)
			}
		})
	}
}

// TestReadChallenge holds what is taken from a challenge, which is nothing longer than a scope
// or an address is.
func TestReadChallenge(t *testing.T) {
	long := strings.Repeat("s", maxParameter)
	for _, tt := range []struct{ header, metadata, scope string }{
		{`Bearer`, "", ""},
		{`Bearer realm="r", scope="a b", resource_metadata="https://s/x"`, "https://s/x", "a b"},
		{`Bearer scope=a,resource_metadata=https://s/x`, "https://s/x", "a"},
		{`Bearer error_scope="a"`, "", ""},
		{`Bearer scope="` + long + `"`, "", long},
		{`Bearer scope="` + long + `s"`, "", ""},
		{`Bearer scope=` + long + `s`, "", ""},
	} {
		got := readChallenge(&http.Response{Header: http.Header{"Www-Authenticate": {tt.header}}})
		if got.metadata != tt.metadata || got.scope != tt.scope {
			t.Errorf("%.60s: got %.60q and %.60q", tt.header, got.metadata, got.scope)
		}
	}
}
