//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestListChangedOverTheNewerProtocol: over pipes and over HTTP a server is asked to tell of changes, which are heard at once.
func TestListChangedOverTheNewerProtocol(t *testing.T) {
	t.Run("pipes", func(t *testing.T) {
		p := open(t, nil, fake("modern tells"))
		call(t, p, "echo", "{}")
		until(t, p, func(s seen) bool { return s.Listens == 1 })
		for i := range 3 {
			if got := names(t, p); got != fmt.Sprintf("list%d", i+1) {
				t.Errorf("tools: %s", got)
			}
			call(t, p, "change", "")
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		s := realServer(t)
		srv, _ := web(t, discovery.HTTP, "/mcp", modernOnly(mcpserver.NewStreamableHTTPServer(s)))
		p := open(t, nil, srv)
		if got := names(t, p); got != "echo fail grow wait" {
			t.Fatalf("tools: %s", got)
		}
		eventually(t, "the new tool", func() bool {
			s.DeleteTools("grown")
			call(t, p, "grow", "")
			return names(t, p) == "echo fail grow grown wait"
		})
	})
}

// TestListeningIsNoUse: a server that holds a request open for changes is ended all the same when nobody uses it.
func TestListeningIsNoUse(t *testing.T) {
	p := open(t, func(c *Config) { c.IdleTimeout = 100 * time.Millisecond }, fake("modern tells"))
	call(t, p, "echo", "{}")
	eventually(t, "its end", func() bool { return !p.Running(t.Context(), "fake") })
}

// teller is a transport over which nothing but the request for changes is made.
type teller struct {
	transport.Interface
	requests []time.Time
	answer   func(id string) error // acknowledges it, or not; its end is that of the request
}

func (r *teller) SendRequest(_ context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r.requests = append(r.requests, time.Now())
	id, _ := q.ID.Value().(string)
	return nil, r.answer(id)
}

type pipes2 struct{ peer }

func (pipes2) left() <-chan struct{} { return make(chan struct{}) }

// listening is a session of the newer protocol that has begun to listen.
func listening(answer func(s *session, id string) error) (s *session, r *teller, end func()) {
	m := newMask(nil, nil)
	s = &session{mask: m, peer: pipes2{}, meta: map[string]any{}, tells: true, dying: make(chan struct{}), ready: make(chan struct{})}
	s.in = newInbox(strings.NewReader(""), 1<<20, m, newQuestions("fake", nil, func([]byte) {}), func([]byte) {}, func(error) {})
	r = &teller{answer: func(id string) error { return answer(s, id) }}
	s.tr = r
	close(s.ready)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		s.listen(ctx)
		close(done)
	}()
	return s, r, func() {
		close(s.dying)
		cancel()
		<-done
	}
}

func acknowledge(s *session, id string) {
	s.in.message(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{%q:%q},"notifications":{"toolsListChanged":true}}}`,
		mcp.MetaKeySubscriptionID, id))
}

// TestListeningAgain: a request that ends is made again after a pause, which grows as long as none is acknowledged and held for a while,
// and no more once the server has refused it.
func TestListeningAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(s *session, id string) error
		want   string
	}{
		{"never acknowledged", func(*session, string) error { return fmt.Errorf("it broke") }, "[0s 2s 6s 14s 30s 1m2s 2m2s 3m2s]"},
		{"acknowledged and ended", func(s *session, id string) error { acknowledge(s, id); return fmt.Errorf("it broke") }, "[0s 2s 6s 14s 30s 1m2s 2m2s 3m2s]"},
		{"held, and not acknowledged", func(*session, string) error { time.Sleep(30 * time.Second); return fmt.Errorf("it broke") }, "[0s 32s 1m6s 1m44s 2m30s]"},
		{"held for a while", func(s *session, id string) error {
			acknowledge(s, id)
			time.Sleep(30 * time.Second)
			return fmt.Errorf("it broke")
		}, "[0s 32s 1m4s 1m36s 2m8s 2m40s 3m12s]"},
		{"held, and acknowledged for another request", func(s *session, _ string) error {
			acknowledge(s, "b-99")
			time.Sleep(30 * time.Second)
			return fmt.Errorf("it broke")
		}, "[0s 32s 1m6s 1m44s 2m30s]"},
		{"refused", func(s *session, id string) error {
			s.in.message(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"error":{"code":-32601,"message":"no"}}`, id))
			return nil
		}, "[0s]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, r, end := listening(tt.answer)
				time.Sleep(200 * time.Second)
				end()
				var at []time.Duration
				for _, when := range r.requests[:min(len(r.requests), 8)] {
					at = append(at, when.Sub(began))
				}
				if got := fmt.Sprint(at); got != tt.want {
					t.Errorf("asked at %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestUnsubscribed: a server over pipes that tells no more takes back what it was asked, which ends that request and no other.
func TestUnsubscribed(t *testing.T) {
	m := newMask(nil, nil)
	in := newInbox(strings.NewReader(""), 1<<20, m, newQuestions("fake", nil, func([]byte) {}), func([]byte) {}, func(error) {})
	in.expect("b-1", nil)
	in.expect("b-2", nil)
	in.subscribe("b-2")
	takeBack := func(id string) string {
		return string(in.message([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)))
	}
	for _, id := range []string{`"b-1"`, `""`, `null`, `2`} {
		if got := takeBack(id); got != "" {
			t.Errorf("what it takes back as %s ends with %s", id, got)
		}
	}
	if got := takeBack(`"b-2"`); !strings.Contains(got, `"id":"b-2"`) {
		t.Errorf("the request for changes ends with %q", got)
	}
	if _, err := in.take("b-2"); err != nil {
		t.Error(err)
	}
	if _, err := in.take("b-1"); err == nil {
		t.Error("a call was ended too")
	}
}

// TestAgeOfLists: a list is good for as long as its server says, within bounds, or until it tells of a change where it is listened to.
func TestAgeOfLists(t *testing.T) {
	for page, want := range map[string]time.Duration{
		`{}`: unheardAge, `{"ttlMs":null}`: unheardAge, `{"ttlMs":"5"}`: unheardAge,
		`{"ttlMs":0}`: minAge, `{"ttlMs":-1e300}`: minAge, `{"ttlMs":60000}`: time.Minute, `{"ttlMs":1e300}`: maxAge,
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
		s, _, end := listening(func(s *session, id string) error {
			<-wait
			acknowledge(s, id)
			<-s.dying
			return fmt.Errorf("it broke")
		})
		keep := func(age time.Duration) {
			s.tools.valid, s.tools.asOf, s.tools.at, s.tools.age, s.tools.heard = true, s.tools.stale.Load(), time.Now(), age, s.in.heard.Load()
		}
		keep(time.Minute)
		time.Sleep(time.Minute - 1)
		if !s.fresh() {
			t.Error("a list is too old before its time")
		}
		if time.Sleep(time.Nanosecond); s.fresh() {
			t.Error("a list is good beyond its time")
		}
		keep(time.Minute)
		close(wait)
		synctest.Wait()
		if time.Sleep(time.Minute); s.fresh() {
			t.Error("a list of before it was listened to counts as one of afterwards")
		}
		keep(time.Minute)
		if time.Sleep(24 * time.Hour); !s.fresh() {
			t.Error("a list is too old though it would have been told of a change")
		}
		if s.tools.stale.Add(1); s.fresh() {
			t.Error("a list is good after a change")
		}
		keep(time.Minute)
		end()
		if time.Sleep(time.Minute); s.fresh() {
			t.Error("a list is good for ever though nobody listens any more")
		}
	})
}
