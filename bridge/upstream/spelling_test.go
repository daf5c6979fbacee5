//go:build unix

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// spelled is what h answers in JSON, in another spelling of the same.
func spelled(h http.Handler, spell func(w http.ResponseWriter, message []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		switch {
		case !strings.HasPrefix(answer.Header().Get("Content-Type"), "application/json"):
			w.WriteHeader(answer.Code)
		case answer.Code != http.StatusOK:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer.Code)
			_, _ = io.WriteString(w, indented(answer.Body.Bytes(), "\n"))
		default:
			spell(w, answer.Body.Bytes())
		}
	})
}

// indented is a message over many lines, which end with end.
func indented(message []byte, end string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, message, "", "  "); err != nil {
		panic(err)
	}
	return strings.ReplaceAll(out.String(), "\n", end)
}

// asEvent is a text of many lines as one event.
func asEvent(text string) string {
	return "data: " + strings.ReplaceAll(text, "\n", "\ndata: ") + "\n\n"
}

// TestSpellingsOverHTTP: a server may break its JSON into lines, be it the whole of an answer or
// the data of an event: HTTP and server-sent events allow it. The handshake, lists, answers, errors
// and the word that tools changed are understood all the same.
func TestSpellingsOverHTTP(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`
	body := func(end string) func(w http.ResponseWriter, m []byte) {
		return func(w http.ResponseWriter, m []byte) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, indented(m, end))
		}
	}
	for _, tt := range []struct {
		name  string
		spell func(w http.ResponseWriter, m []byte)
		tells bool // that its tools changed, with each answer
	}{
		{"JSON", body("\n"), false},
		{"JSON with lines that end as HTTP's", body("\r\n"), false},
		{"JSON with lines that end as no others", body("\r"), false},
		{"a batch", func(w http.ResponseWriter, m []byte) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, "[\n%s,\n%s\n]", indented([]byte(changed), "\n"), indented(m, "\n"))
		}, true},
		{"events", func(w http.ResponseWriter, m []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, asEvent(indented([]byte(changed), "\n"))+asEvent(indented(m, "\n")))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFar(t)
			srv, _ := web(t, discovery.HTTP, "/", spelled(f, tt.spell))
			p := open(t, nil, secretive(srv))
			if got := names(t, p); got != "a plain" {
				t.Fatalf("tools: %s", got)
			}
			var n struct{ N json.Number }
			if got := call(t, p, "plain", ""); json.Unmarshal([]byte(got), &n) != nil || n.N != "9007199254740993" {
				t.Errorf("got %s", got)
			}
			_, err := p.Call(t.Context(), "fake", "error", nil)
			serverError(t, err, "bad ***", "code -32050")
			if tt.tells {
				eventually(t, "another list", func() bool { return names(t, p) != "" && f.count("tools/list") > 1 })
			}
		})
	}
}
