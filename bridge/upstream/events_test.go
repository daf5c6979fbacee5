package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// readEvents reads all events of a text.
func readEvents(text string, limit int) (all []event, err error) {
	r := newEventReader(strings.NewReader(text), limit)
	for {
		e, err := r.next()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // name, id and data, separated by |
		err        error
	}{
		{"one", "data: x\n\n", []string{"||x"}, io.EOF},
		{"all fields", "event: message\nid: 7\nretry: 10\ndata: x\n\n", []string{"message|7|x"}, io.EOF},
		{"lines", "data: a\ndata:  b\ndata\ndata:c\n\n", []string{"||a\n b\n\nc"}, io.EOF},
		{"carriage returns", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"||a", "||b"}, io.EOF},
		{"comments and unknown fields", ": ping\n\nfoo: bar\ndata: x\n\n", []string{"||x"}, io.EOF},
		{"an id alone", "id: 1\ndata:\n\n", []string{"|1|"}, io.EOF},
		{"a NUL in an id", "id: \x00\ndata: x\n\n", []string{"||x"}, io.EOF},
		{"a name alone is no event", "event: x\n\ndata: y\n\n", []string{"||y"}, io.EOF},
		{"cut off", "data: a\n\ndata: b\n", []string{"||a"}, io.EOF},
		{"cut off in a line", "data: a\n\ndata: b", []string{"||a"}, io.EOF},
		{"longer than the reader's buffer", "data: " + strings.Repeat("x", 50) + "\n\n",
			[]string{"||" + strings.Repeat("x", 50)}, io.EOF},
		{"a line beyond the limit", "data: a\n\ndata: " + strings.Repeat("x", 100) + "\n\n", []string{"||a"},
			errTooLong},
		{"lines beyond the limit", strings.Repeat("data: xxxxxxxx\n", 10) + "\n", nil, errTooLong},
		{"many that are each within it", strings.Repeat("data: xxxxxxxx\n\n", 10),
			slices.Repeat([]string{"||xxxxxxxx"}, 10), io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := readEvents(tt.text, 80)
			var got []string
			for _, e := range all {
				got = append(got, e.name+"|"+e.id+"|"+string(e.data))
			}
			if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// FuzzEvents: no event is longer than the limit, no stream is read for ever, and what we write of
// messages is read again as it was.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"data: x\n\n", "event: endpoint\r\ndata: /m\r\n\r\n",
		"id: 1\nretry: 3\ndata: a\ndata: b\n\n", ":\n\n\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const limit = 200
		all, err := readEvents(text, limit)
		if err == nil {
			t.Fatal("no end")
		}
		for _, e := range all {
			if len(e.data) > limit {
				t.Errorf("%d bytes", len(e.data))
			}
			line := bytes.ReplaceAll(bytes.TrimSpace(e.data), []byte("\n"), []byte(" "))
			line = bytes.ReplaceAll(line, []byte("\r"), []byte(" "))
			if len(line) == 0 {
				continue
			}
			again, _ := readEvents("data: "+string(line)+"\n\n", 10*limit)
			if len(again) != 1 || !bytes.Equal(again[0].data, bytes.TrimSpace(line)) {
				t.Errorf("%q became %+v", line, again)
			}
		}
	})
}

// stream answers each request with a stream of events that ends at once.
type stream struct {
	began  time.Time
	asked  []time.Duration
	events func(n int) string
}

func (s *stream) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Since(s.began))
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {textEvents}}, Request: req,
		Body: io.NopCloser(strings.NewReader(s.events(len(s.asked)))),
	}, nil
}

// TestPausesBetweenStreams: a server that ends each stream of notifications is asked ever more
// seldom, and sooner again after one that was good for something.
func TestPausesBetweenStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(Config{}.withDefaults(), discovery.Server{Transport: discovery.HTTP, URL: "http://far/"},
			hints{})
		r, err := newRemote(s)
		if err != nil {
			t.Fatal(err)
		}
		s.connectTo(r)
		far := &stream{began: time.Now(), events: func(n int) string {
			if n == 9 {
				return "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"
			}
			return ": nothing\n\n"
		}}
		r.client.Transport = far
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Second)
		defer cancel()
		r.listen(ctx)
		if got, want := fmt.Sprint(far.asked), "[0s 2s 6s 14s 30s 1m2s 2m2s 3m2s 4m2s 4m4s 4m8s]"; got != want {
			t.Errorf("asked at %s, want %s", got, want)
		}
		s.conn.Close(ErrClosed)
		r.cancel()
	})
}
