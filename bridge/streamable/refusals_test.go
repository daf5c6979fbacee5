package streamable_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
)

// TestRefusalsAreLogged: the log says who was turned away and why, a few times a minute for each
// status.
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
		if got := said("localhost", 1); !strings.Contains(got, "status=401") {
			t.Errorf("the fifth of a kind: %q", got)
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

// logged takes the lines of a log of JSON.
type logged chan map[string]any

func (l logged) Write(line []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	l <- fields
	return len(line), nil
}

// next returns the next line with a message.
func (l logged) next(t *testing.T, message string) map[string]any {
	t.Helper()
	for {
		if line := arrives(t, l); line["msg"] == message {
			return line
		}
	}
}

// TestRequestsInTheLog: each answer has a name, by which the log has its run and whose it was, or
// why it was refused.
func TestRequestsInTheLog(t *testing.T) {
	lines := make(logged, 1000)
	log := slog.New(slog.NewJSONHandler(lines, nil))
	s := newTeam(t, func(cfg *bridge.Config) { cfg.Log = log })
	s.serve(streamable.Config{Log: log, Proxied: true})
	seen := map[string]bool{}
	check := func(message string, header http.Header, want map[string]any) {
		t.Helper()
		name, line := header.Get("X-Request-Id"), lines.next(t, message)
		if len(name) != 8 || seen[name] || line["request"] != name {
			t.Errorf("the request is named %q, and in the log %v", name, line)
		}
		seen[name] = true
		for key, value := range want {
			if line[key] != value {
				t.Errorf("%s is %v, want %v, in %v", key, line[key], value, line)
			}
		}
	}
	for _, who := range []string{"alice", "bob"} {
		session := s.initialize(latest, `{}`, "X-Who: "+who)
		id := strings.TrimPrefix(session[0], "Mcp-Session-Id: ")
		_, _, header := s.post(run(1, "print", ""), session...)
		check("run_python", header, map[string]any{"principal": who, "session": id[:6], "status": "ok"})
		_, _, header = s.post(
			run(1, "print", metaOf("")),
			append(standard("tools/call", "run_python"), "X-Who: "+who)...)
		check("run_python", header, map[string]any{"principal": who, "session": nil, "status": "ok"})
		s.do(t.Context(), http.MethodDelete, "", session...)
		_, _, header = s.post(run(1, "print", ""), append(session, "X-Forwarded-For: 10.0.0.1, 192.0.2.7")...)
		check("a request was refused", header, map[string]any{"principal": who, "session": id[:6], "level": "INFO",
			"status": 404.0, "forwarded_for": "192.0.2.7"})
	}
	_, _, header := s.post(run(1, "print", ""), "Mcp-Session-Id: short")
	check("a request was refused", header, map[string]any{"level": "WARN", "status": 401.0, "principal": nil,
		"session": nil, "forwarded_for": nil})
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
