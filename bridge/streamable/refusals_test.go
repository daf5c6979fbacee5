package streamable_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
)

// TestRefusalsAreLogged: the log says who was turned away and why, a few times a minute.
func TestRefusalsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := streamable.New(streamable.Config{
			Clients: serveBridge(t, echo).bridge.Clients(), Hosts: streamable.Loopback, Authenticate: byHeader,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		defer h.Close()
		said := func(host string, times int) string {
			log.Reset()
			for range times {
				r := httptest.NewRequest(http.MethodPost, "http://"+host+streamable.Path, nil)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
			return log.String()
		}
		for _, want := range []string{"level=WARN", "status=401", "who are you?", "peer=192.0.2.1:1234"} {
			if got := said("localhost", 1); !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		if got := said("evil.example", 1); !strings.Contains(got, "status=403") ||
			!strings.Contains(got, "evil.example") {
			t.Errorf("got %s", got)
		}
		if got := said("localhost", 3); got != "" {
			t.Errorf("in the same minute: %s", got)
		}
		time.Sleep(time.Minute)
		if got := said("localhost", 7); strings.Count(got, "\n") != 5 || strings.Count(got, "not_logged=3") != 1 {
			t.Errorf("a minute later: %s", got)
		}
	})
}

// TestAstray: a request without a message, or to another path, is told what is wrong.
func TestAstray(t *testing.T) {
	s := serve(t, echo, nil)
	session := s.initialize(latest, `{}`)
	for _, headers := range [][]string{nil, session} {
		for _, body := range []string{"", " \n"} {
			status, got, _ := s.post(body, headers...)
			if status != 400 || len(got) != 1 || got[0].Error == nil ||
				!strings.Contains(got[0].Error.Message, "empty") {
				t.Errorf("%q: %d %+v", body, status, got)
			}
		}
	}
	at := s.url
	for _, path := range []string{"", "/", "/sse", "/mcp/"} {
		s.url = strings.TrimSuffix(at, streamable.Path) + path
		status, got, _ := s.post(run(1, "x", ""))
		if status != 404 || len(got) != 1 || got[0].Error == nil ||
			!strings.Contains(got[0].Error.Message, "at /mcp") {
			t.Errorf("%s: %d %+v", path, status, got)
		}
	}
}
