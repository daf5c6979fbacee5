//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestListChangedOverTheNewerProtocol: a server is asked to tell of changes, which are heard at
// once. TestListChangedOverHTTP is the same by HTTP.
func TestListChangedOverTheNewerProtocol(t *testing.T) {
	p := open(t, nil, fake("modern tells"))
	call(t, p, "echo", "{}")
	until(t, p, func(s seen) bool { return s.Listens == 1 })
	for i := range 3 {
		if got := names(t, p); got != fmt.Sprintf("list%d", i+1) {
			t.Errorf("tools: %s", got)
		}
		call(t, p, "change", "")
	}
}

// TestListeningIsNoUse: a server that holds a request open for changes is ended all the same when
// it isn't used.
func TestListeningIsNoUse(t *testing.T) {
	p := open(t, func(c *Config) { c.IdleTimeout = 100 * time.Millisecond }, fake("modern tells"))
	call(t, p, "echo", "{}")
	eventually(t, "its end", func() bool { return !p.Running(t.Context(), "fake") })
}

// listening returns a session of the newer protocol that has begun to listen, and when it asked.
// The request for changes is open until answer returns.
func listening(answer func(s *session, id json.RawMessage) error) (s *session, asked *[]time.Time,
	end func()) {
	s = newSession(Config{}.withDefaults(), discovery.Server{Name: "fake"}, hints{})
	s.meta, s.about.tells, asked = map[string]any{}, true, &[]time.Time{}
	s.connectTo(hand{send: func(m *jsonrpc.Message) error {
		*asked = append(*asked, time.Now())
		return answer(s, m.ID)
	}})
	close(s.ready)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		s.changes.listen(ctx)
		close(done)
	}()
	return s, asked, func() {
		close(s.dying)
		s.cause = ErrClosed
		close(s.over)
		s.conn.Close(ErrClosed)
		cancel()
		<-done
	}
}

func acknowledge(s *session, id json.RawMessage) {
	s.conn.Receive(fmt.Appendf(nil,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{%q:%s},`+
			`"notifications":{"toolsListChanged":true}}}`,
		mcp.MetaKeySubscriptionID, id))
}

// TestListeningAgain: a request that ends is made again after a pause, which grows as long as none
// is acknowledged and held for a while, and no more once the server has refused it.
func TestListeningAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(s *session, id json.RawMessage) error
		want   string
	}{
		{"never acknowledged", func(*session, json.RawMessage) error { return fmt.Errorf("it broke") },
			"[0s 2s 6s 14s 30s 1m2s 2m2s 3m2s]"},
		{"acknowledged and ended", func(s *session, id json.RawMessage) error {
			acknowledge(s, id)
			return fmt.Errorf("it broke")
		}, "[0s 2s 4s 6s 8s 10s 12s 14s]"},
		{"held, and not acknowledged", func(*session, json.RawMessage) error {
			time.Sleep(30 * time.Second)
			return fmt.Errorf("it broke")
		}, "[0s 32s 1m6s 1m44s 2m30s]"},
		{"held for a while", func(s *session, id json.RawMessage) error {
			acknowledge(s, id)
			time.Sleep(30 * time.Second)
			return fmt.Errorf("it broke")
		}, "[0s 32s 1m4s 1m36s 2m8s 2m40s 3m12s]"},
		{"held, and acknowledged for another request", func(s *session, _ json.RawMessage) error {
			acknowledge(s, json.RawMessage(`"b-99"`))
			time.Sleep(30 * time.Second)
			return fmt.Errorf("it broke")
		}, "[0s 32s 1m6s 1m44s 2m30s]"},
		{"refused", func(s *session, id json.RawMessage) error {
			s.conn.Receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id))
			return nil
		}, "[0s]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, asked, end := listening(tt.answer)
				time.Sleep(200 * time.Second)
				end()
				var at []time.Duration
				for _, when := range (*asked)[:min(len(*asked), 8)] {
					at = append(at, when.Sub(began))
				}
				if got := fmt.Sprint(at); got != tt.want {
					t.Errorf("asked at %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// carried is an HTTP transport that answers by a function.
type carried func(*http.Request) (*http.Response, error)

func (f carried) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStreamAgain: the older protocol's stream of notifications is asked for again, unless the
// server says that it has none or wants a login. While none is open, a list grows old.
func TestStreamAgain(t *testing.T) {
	const unreachable, ends, stays = 0, 1, 2 // or else a status
	for _, tt := range []struct {
		name    string
		answers []int // the last one again and again
		want    string
		fresh   bool
	}{
		{"method not allowed", []int{http.StatusMethodNotAllowed}, "[0s]", false},
		{"not found", []int{http.StatusNotFound}, "[0s]", false},
		{"a login", []int{http.StatusUnauthorized}, "[0s]", false},
		{"one that stays", []int{stays}, "[0s]", true},
		{"a proxy that starts again", []int{ends, http.StatusServiceUnavailable, unreachable, stays},
			"[0s 2s 6s 14s]", true},
		{"too many requests", []int{http.StatusTooManyRequests, http.StatusBadGateway, stays}, "[0s 2s 6s]", true},
		{"failures", []int{http.StatusInternalServerError}, "[0s 2s 6s 14s 30s]", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(Config{}.withDefaults(), discovery.Server{Name: "fake", URL: "http://far/"}, hints{})
				r, err := newRemote(s)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				var at []time.Duration
				r.client.Transport = carried(func(req *http.Request) (*http.Response, error) {
					answer := tt.answers[min(len(at), len(tt.answers)-1)]
					at = append(at, time.Since(began))
					resp := &http.Response{StatusCode: answer, Body: http.NoBody, Request: req,
						Header: http.Header{"Content-Type": {textEvents}}}
					switch answer {
					case unreachable:
						return nil, errors.New("connection refused")
					case ends, stays:
						resp.StatusCode = http.StatusOK
					}
					if answer == stays {
						body, open := io.Pipe()
						context.AfterFunc(req.Context(), func() { _ = open.Close() })
						resp.Body = body
					}
					return resp, nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go r.listen(ctx)
				time.Sleep(time.Minute)
				s.tools.valid, s.tools.asOf, s.tools.goodUntil = true, s.tools.stale.Load(), time.Now().Add(unheardAge)
				if time.Sleep(unheardAge); s.tools.fresh() != tt.fresh {
					t.Errorf("the list is fresh: %v", !tt.fresh)
				}
				synctest.Wait()
				if got := fmt.Sprint(at[:min(len(at), 5)]); got != tt.want {
					t.Errorf("asked at %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestUnsubscribed: a server over pipes that tells no more takes back what it was asked, which ends
// that request and no other.
func TestUnsubscribed(t *testing.T) {
	s := newSession(Config{}.withDefaults(), discovery.Server{Name: "fake"}, hints{})
	s.connectTo(hand{send: func(*jsonrpc.Message) error { return nil }})
	waits := func(id string) (waits bool) {
		s.conn.Waiting(json.RawMessage(id), func() { waits = true })
		return waits
	}
	answered := make(chan error, 2)
	for _, id := range []string{`"b-1"`, `"b-2"`} {
		go func() {
			_, err := s.conn.Call(t.Context(), json.RawMessage(id), "x", nil)
			answered <- err
		}()
		eventually(t, "the call waits", func() bool { return waits(id) })
	}
	s.changes.begin("b-2")
	for _, id := range []string{`"b-1"`, `""`, `null`, `2`, `"b-2"`} {
		if !waits(`"b-2"`) {
			t.Fatal("another id ended the request for changes")
		}
		s.conn.Receive([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` +
			id + `}}`))
	}
	if err := <-answered; err != nil || !waits(`"b-1"`) {
		t.Errorf("got %v; the other call waits: %v", err, waits(`"b-1"`))
	}
	s.conn.Close(ErrClosed)
	if err := <-answered; !errors.Is(err, ErrClosed) {
		t.Errorf("the other call: got %v", err)
	}
}

// TestAgeOfLists: a list is good for as long as its server says, within bounds, or until it tells
// of a change where it is listened to.
func TestAgeOfLists(t *testing.T) {
	for page, want := range map[string]time.Duration{
		`{}`: unheardAge, `{"ttlMs":null}`: unheardAge, `{"ttlMs":"5"}`: unheardAge,
		`{"ttlMs":0}`: minAge, `{"ttlMs":-1e300}`: minAge, `{"ttlMs":60000}`: time.Minute,
		`{"ttlMs":1e300}`: maxAge,
	} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(page), &fields); err != nil {
			t.Fatal(err)
		}
		if got := ageOf(fields); got != want {
			t.Errorf("%s is good for %v, want %v", page, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		s, _, end := listening(func(s *session, id json.RawMessage) error {
			<-wait
			acknowledge(s, id)
			<-s.dying
			return fmt.Errorf("it broke")
		})
		keep := func(age time.Duration) {
			s.tools.valid, s.tools.asOf, s.tools.goodUntil = true, s.tools.stale.Load(), time.Now().Add(age)
		}
		keep(time.Minute)
		time.Sleep(time.Minute - 1)
		if !s.tools.fresh() {
			t.Error("a list is too old before its time")
		}
		if time.Sleep(time.Nanosecond); s.tools.fresh() {
			t.Error("a list is good beyond its time")
		}
		keep(time.Minute)
		close(wait)
		synctest.Wait()
		if time.Sleep(time.Minute); s.tools.fresh() {
			t.Error("a list of before it was listened to counts as one of afterwards")
		}
		keep(time.Minute)
		if time.Sleep(24 * time.Hour); !s.tools.fresh() {
			t.Error("a list is too old though it would have been told of a change")
		}
		if s.tools.stale.Add(1); s.tools.fresh() {
			t.Error("a list is good after a change")
		}
		keep(time.Minute)
		end()
		if time.Sleep(time.Minute); s.tools.fresh() {
			t.Error("a list is good for ever though it isn't listened to any more")
		}
	})
}
