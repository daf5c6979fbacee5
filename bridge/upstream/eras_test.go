//go:build unix

package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestErasOverHTTP holds which protocol a server at a URL is asked by, and how it is fallen back.
func TestErasOverHTTP(t *testing.T) {
	refuse := func(status int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if header != "" {
				w.Header().Set("WWW-Authenticate", header)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.Replace(body, `"id":1`, `"id":`+r.Header.Get("Test-Id"), 1))
		}
	}
	rpc := func(code int, data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"refused","data":%s}}`, code, data)
	}
	for _, tt := range []struct {
		name     string
		discover http.HandlerFunc // the answer to server/discover; nil: the server knows the newer protocol
		methods  string           // that were asked for until the call, or its failure
		err      string
	}{
		{"the newer protocol", nil, "server/discover tools/call", ""},
		{"no such method", refuse(200, "", rpc(-32601, "null")), "server/discover initialize tools/call", ""},
		{"bad request", refuse(400, "", ""), "server/discover initialize tools/call", ""},
		{"a version that isn't known, in another's words", refuse(400, "", rpc(-32000, "null")),
			"server/discover initialize tools/call", ""},
		{"not found", refuse(404, "", rpc(-32601, "null")), "server/discover initialize tools/call", ""},
		{"forbidden", refuse(403, "", ""), "server/discover initialize tools/call", ""},
		{"a failure", refuse(500, "", "oops"), "server/discover initialize tools/call", ""},
		{"older versions alone", refuse(400, "", rpc(-32022,
			`{"supported":["2025-11-25"],"requested":"2026-07-28"}`)), "server/discover initialize tools/call", ""},
		{"newer versions alone", refuse(400, "", rpc(-32022,
			`{"supported":["2099-01-01"],"requested":"2026-07-28"}`)), "server/discover", "2099-01-01"},
		{"the same version", func() http.HandlerFunc {
			var asked atomic.Bool
			return func(w http.ResponseWriter, r *http.Request) {
				if !asked.Swap(true) {
					refuse(400, "", rpc(-32022, `{"supported":["2026-07-28"],"requested":"2026-07-28"}`))(w, r)
					return
				}
				refuse(200, "", `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],`+
					`"capabilities":{"tools":{}}}}`)(w, r)
			}
		}(), "server/discover server/discover tools/call", ""},
		{"another newer error", refuse(400, "", rpc(-32020, "null")), "server/discover", "refused"},
		{"no authorization", refuse(401, `Bearer scope="files:read"`, ""), "server/discover",
			"it wants to be authorized; type: mcp-bridge login fake --scope files:read"},
		{"a missing scope", refuse(403, `Bearer error="insufficient_scope", scope="files:write"`, ""),
			"server/discover",
			"it wants more than it was authorized for; type: mcp-bridge login fake --scope files:write"},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"server/discover initialize tools/call", ""},
		{"any object", refuse(200, "", `{"jsonrpc":"2.0","id":1,"result":{}}`),
			"server/discover initialize tools/call", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			f.newer = tt.discover == nil
			var mu sync.Mutex
			var methods []string
			srv, _ := web(t, discovery.HTTP, "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var m request
				if json.Unmarshal(body, &m) == nil && len(m.ID) > 0 {
					mu.Lock()
					methods = append(methods, m.Method)
					mu.Unlock()
				}
				if m.Method == "server/discover" && tt.discover != nil {
					r.Header.Set("Test-Id", string(m.ID))
					tt.discover(w, r)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				f.ServeHTTP(w, r)
			}))
			p := open(t, func(c *Config) { c.StartTimeout = 2 * time.Second }, srv)
			_, err := p.Call(t.Context(), "fake", "plain", nil)
			if tt.err != "" {
				serverError(t, err, tt.err)
			} else if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(methods, " "); got != tt.methods {
				t.Errorf("asked for %s, want %s", got, tt.methods)
			}
		})
	}
}
