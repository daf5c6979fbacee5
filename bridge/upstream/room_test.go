package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// longBody is an answer that its server holds back in the middle.
type longBody struct {
	text   io.Reader
	seen   *atomic.Int64 // bodies that were read beyond shortAnswer
	resume <-chan struct{}
	n      int
}

func (b *longBody) Close() error { return nil }

func (b *longBody) Read(p []byte) (int, error) {
	before := b.n
	n, err := b.text.Read(p[:min(len(p), 64<<10)])
	if b.n += n; before <= 2*shortAnswer && b.n > 2*shortAnswer {
		b.seen.Add(1)
		<-b.resume
	}
	return n, err
}

// longAnswersOf answers each request with 1 MiB, as one JSON text or as an event.
type longAnswersOf struct {
	media  string
	seen   *atomic.Int64
	resume <-chan struct{}
}

func (l longAnswersOf) RoundTrip(req *http.Request) (*http.Response, error) {
	var m struct{ ID json.RawMessage }
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}`, m.ID, strings.Repeat("x", 1<<20))
	if l.media == textEvents {
		text = "data: " + text + "\n\n"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {l.media}},
		Request: req, Body: &longBody{text: strings.NewReader(text), seen: l.seen, resume: l.resume}}, nil
}

// TestLongAnswersAreBounded: servers that hold back long answers don't fill the memory. Further
// answers wait for room, beside short ones, and say so where their time ends before.
func TestLongAnswersAreBounded(t *testing.T) {
	for _, media := range []string{textJSON, textEvents} {
		synctest.Test(t, func(t *testing.T) {
			var seen atomic.Int64
			resume := make(chan struct{})
			cfg := Config{}.withDefaults()
			var waiting, hurried sync.WaitGroup
			var failed atomic.Int64
			for range 3 {
				s := newSession(cfg, discovery.Server{Transport: discovery.HTTP, URL: "http://far/"}, hints{})
				r, err := newRemote(s)
				if err != nil {
					t.Fatal(err)
				}
				s.connectTo(r)
				r.client.Transport = longAnswersOf{media, &seen, resume}
				defer r.cancel()
				defer s.conn.Close(ErrClosed)
				ask := func(within time.Duration, wrong *atomic.Int64) {
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					got, err := s.exchange(ctx, s.conn.NewID(), "tools/call", nil)
					switch {
					case err != nil && strings.Contains(err.Error(), "waited for others to end"):
						wrong.Add(1)
					case err != nil || len(got) < 1<<20:
						t.Errorf("got %d bytes, %v", len(got), err)
					}
				}
				for range 6 {
					waiting.Go(func() { ask(time.Hour, &failed) })
				}
				synctest.Wait()
				if n := seen.Load(); n > longAnswers || n%longAnswersEach != 0 {
					t.Errorf("%s: %d long answers are read", media, n)
				}
				var late atomic.Int64
				hurried.Go(func() { ask(time.Minute, &late) })
				hurried.Wait()
				if late.Load() != 1 {
					t.Error("a call whose time ends while it waits doesn't say so")
				}
			}
			if n := seen.Load(); n != longAnswers {
				t.Errorf("%s: %d long answers are read", media, n)
			}
			close(resume)
			waiting.Wait()
			if n := failed.Load(); n > 0 || seen.Load() != 18 {
				t.Errorf("%s: %d calls failed, %d were answered", media, n, seen.Load())
			}
			if n := len(cfg.long); n > 0 {
				t.Errorf("%d are still held", n)
			}
		})
	}
}
