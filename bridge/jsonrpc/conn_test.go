package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// peer is the other side of a connection, written by hand.
type peer struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	outR   *io.PipeReader
	conn   *Conn
	served chan error
}

const grace = 3 * time.Second

// connect serves a connection until the end of the test, in a bubble of synctest.
func connect(t *testing.T, opts Options) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	if opts.MaxRequests == 0 {
		opts.MaxRequests = 4
	}
	if opts.Accept == nil {
		opts.Accept = echo
	}
	opts.Panicked = func(r *Request, value any, _ []byte) error { return fmt.Errorf("%s: %v", r.Method, value) }
	lines := NewLines(outW, 0, nil)
	p := &peer{t: t, in: inW, out: bufio.NewReader(outR), outR: outR, served: make(chan error, 1)}
	p.conn = NewConn(t.Context(), lines, opts)
	p.conn.AllowBatches(true)
	go func() { p.served <- p.conn.Serve(NewReader(inR, 1000), lines, grace) }()
	t.Cleanup(func() {
		p.in.Close()
		outR.Close()
	})
	return p
}

// echo answers a request with its parameters, by what its method says.
func echo(r *Request) Handler {
	if r.Err != nil {
		return func(context.Context) (any, error) { return nil, &Error{Code: CodeParse, Message: "broken"} }
	}
	return func(ctx context.Context) (any, error) {
		switch r.Method {
		case "hang":
			<-ctx.Done()
			return nil, context.Cause(ctx)
		case "panic":
			panic("oh")
		case "fail":
			return nil, &Error{Code: 7, Message: "no", Data: json.RawMessage("[1]")}
		case "silence":
			return nil, ErrNoAnswer
		}
		return r.Params, nil
	}
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatal(err)
		}
		synctest.Wait()
	}
}

func (p *peer) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		line, err := p.out.ReadString('\n')
		if got := strings.TrimSpace(line); err != nil || got != w {
			p.t.Errorf("got  %s (%v)\nwant %s", got, err, w)
		}
	}
}

func bubble(t *testing.T, name string, opts Options, f func(t *testing.T, p *peer)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, connect(t, opts)) })
	})
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"a number", `{"id":1,"method":"m","params":{"a": 1}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{"a great id", `{"id":9007199254740993,"method":"m","params":0}`,
			`{"jsonrpc":"2.0","id":9007199254740993,"result":0}`},
		{"a fraction", `{"id":1.50,"method":"m","params":0}`, `{"jsonrpc":"2.0","id":1.50,"result":0}`},
		{"a text", `{"id":"é\u00e9","method":"m","params":0}`, `{"jsonrpc":"2.0","id":"é\u00e9","result":0}`},
		{"an id that is an object", `{"id":{},"method":"m"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`},
		{"an id that is too long", `{"id":"` + strings.Repeat("x", 2000) + `","method":"m"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`},
		{"no JSON", `hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`},
		{"no message", `{}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`},
		{"an id and no method", `{"id":5,"params":{}}`,
			`{"jsonrpc":"2.0","id":5,"error":{"code":-32700,"message":"broken"}}`},
		{"an id and no method, in a batch", `[{"id":5},{"id":6,"result":0}]`,
			`[{"jsonrpc":"2.0","id":5,"error":{"code":-32700,"message":"broken"}}]`},
		{"names in capitals", `{"ID":11,"METHOD":"m"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`},
		{"a name twice, in another case", `{"id":11,"method":"m","Method":"fail"}`,
			`{"jsonrpc":"2.0","id":11,"error":{"code":-32700,"message":"broken"}}`},
		{"too long", `{"id":3,"method":"` + strings.Repeat("x", 2000) + `"}`,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32700,"message":"broken"}}`},
		{"an error", `{"id":1,"method":"fail"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no","data":[1]}}`},
		{"a panic", `{"id":1,"method":"panic"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"panic: oh"}}`},
		{"a byte order mark and spaces", "\xef\xbb\xbf {\"id\":1,\"method\":\"m\",\"params\":0}\r",
			`{"jsonrpc":"2.0","id":1,"result":0}`},
		{"no UTF-8", "{\"id\":1,\"method\":\"m\",\"params\":\"\xff\"}",
			`{"jsonrpc":"2.0","id":1,"result":"` + "\uFFFD" + `"}`},
		{"a batch", `[{"id":1,"method":"m","params":1},{"method":"m"},{"id":2,"method":"silence"}]`,
			`[{"jsonrpc":"2.0","id":1,"result":1}]`},
		{"an empty batch", `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`},
	} {
		bubble(t, tt.name, Options{}, func(t *testing.T, p *peer) {
			p.send(`{"id":3,"result":{}}`, `{"id":3,"error":{"code":1,"message":"x"}}`, `{"method":"whatever"}`, ``)
			p.send(tt.line)
			p.expect(tt.want)
			p.send(`{"id":"next","method":"m","params":0}`)
			p.expect(`{"jsonrpc":"2.0","id":"next","result":0}`)
		})
	}
}

func TestCancel(t *testing.T) {
	for _, id := range []string{`7`, `"7"`, `9007199254740993`} {
		bubble(t, id, Options{}, func(_ *testing.T, p *peer) {
			p.send(`{"id":`+id+`,"method":"hang"}`,
				`{"method":"notifications/cancelled","params":{"requestId":"no such"}}`,
				`{"method":"notifications/cancelled","params":[]}`,
				`{"id":`+id+`,"method":"m","params":0}`)
			p.expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":` + jsonText("request id "+id+
				" is that of a request under way: an id is used once (MCP, base protocol); this one is not worked on") +
				`}}`)
			p.send(`{"method":"notifications/cancelled","params":{"requestId":`+id+`}}`,
				`{"id":`+id+`,"method":"m","params":0}`)
			p.expect(`{"jsonrpc":"2.0","id":` + id + `,"result":0}`)
		})
	}
}

func jsonText(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func TestBusy(t *testing.T) {
	bubble(t, "a cancel behind the limit is read", Options{MaxRequests: 2}, func(_ *testing.T, p *peer) {
		p.send(`{"id":1,"method":"hang"}`, `{"id":2,"method":"hang"}`, `{"id":3,"method":"m"}`)
		p.expect(`{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"2 requests are under way, ` +
			`which is the limit; send this one again when one of them has ended"}}`)
		p.send(`{"method":"notifications/cancelled","params":{"requestId":1}}`, `{"id":4,"method":"m","params":0}`)
		p.expect(`{"jsonrpc":"2.0","id":4,"result":0}`)
	})
}

// TestUnreadRefusals: a peer that leaves them unread isn't read from any more, and is read from
// again later.
func TestUnreadRefusals(t *testing.T) {
	const many = 3 * maxPosts
	bubble(t, "", Options{Accept: func(r *Request) Handler {
		r.Answer(0, nil)
		return nil
	}}, func(t *testing.T, p *peer) {
		taken := 0
		go func() {
			for i := range many {
				fmt.Fprintf(p.in, `{"id":%d,"method":"m"}`+"\n", i)
				taken++
			}
		}()
		synctest.Wait()
		if taken < maxPosts || taken > maxPosts+5 {
			t.Errorf("%d requests were read, want some %d", taken, maxPosts)
		}
		answered := map[string]bool{}
		for range many {
			line, _ := p.out.ReadString('\n')
			answered[line] = true
		}
		if len(answered) != many {
			t.Errorf("%d of %d were answered", len(answered), many)
		}
	})
}

func TestCall(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"a result", `{"id":1,"result":{"n":9007199254740993}}`, `{"n":9007199254740993}`},
		{"null", `{"id":1,"result":null}`, `null`},
		{"an id as text", `{"id":"1","result":0}`, `0`},
		{"an error", `{"id":1,"error":{"code":-32050,"message":"boom","data":{"a":1}}}`,
			`boom (code -32050) {"a":1}`},
		{"an error that is a text", `{"id":1,"error":"boom"}`, `boom (code -32603) `},
		{"an error whose code is no number", `{"id":1,"error":{"code":"E","data":null}}`,
			`an error without a message (code -32603) `},
		{"neither", `{"id":1}`, ErrNoResult.Error()},
		{"in a batch, twice", `[{"id":1,"result":1},{"id":1,"result":2}]`, `1`},
		{"too deep", `{"id":1,"result":` + strings.Repeat("[", 300) + `}`, "its answer can't be read: invalid"},
		{"too long", `{"id":1,"result":"` + strings.Repeat("x", 2000) + `"}`,
			"its answer can't be read: the message is longer than 1000 bytes, which is the limit"},
		{"the end of the input", "", ErrPeerGone.Error()},
	} {
		late := make(chan *Message, 2)
		bubble(t, tt.name, Options{Notified: func(m *Message) { late <- m }}, func(t *testing.T, p *peer) {
			got := make(chan string, 1)
			go func() {
				result, err := p.conn.Call(t.Context(), p.conn.NewID(), "ask", map[string]any{"a": 1})
				var e *Error
				switch {
				case errors.As(err, &e):
					got <- fmt.Sprintf("%v %s", e, e.Data)
				case err != nil:
					got <- err.Error()
				default:
					got <- string(result)
				}
			}()
			p.expect(`{"jsonrpc":"2.0","id":1,"method":"ask","params":{"a":1}}`)
			p.send(`{"id":99,"result":0}`, `{"id":1,"method":"ours","params":0}`) // their ids aren't ours
			p.expect(`{"jsonrpc":"2.0","id":1,"result":0}`)
			if m := <-late; string(m.ID) != "99" {
				t.Errorf("an answer to no call has the id %s", m.ID)
			}
			if tt.answer == "" { // in the middle of a line
				go func() {
					_, _ = io.WriteString(p.in, `{"id":1,"result":`)
					p.in.Close()
				}()
				p.expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}`)
			} else {
				p.send(tt.answer)
			}
			if s := <-got; !strings.HasPrefix(s, tt.want) {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

func TestCallIsWithdrawn(t *testing.T) {
	bubble(t, "", Options{IDs: "b-"}, func(t *testing.T, p *peer) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := p.conn.Call(ctx, p.conn.NewID(), "ask", nil)
			failed <- err
		}()
		p.expect(`{"jsonrpc":"2.0","id":"b-1","method":"ask"}`)
		heard := false
		p.conn.Waiting(json.RawMessage(`"b-1"`), func() { heard = true })
		cancel(why)
		if err := <-failed; err != why || !heard {
			t.Errorf("got %v, heard %v", err, heard)
		}
		p.conn.Waiting(json.RawMessage(`"b-1"`), func() { t.Error("it still waits") })
		p.expect(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"context canceled",` +
			`"requestId":"b-1"}}`)
	})
}

// TestPeerStopsReading: it holds up senders, and the end of the connection no longer than the
// grace.
func TestPeerStopsReading(t *testing.T) {
	bubble(t, "", Options{MaxRequests: 20}, func(t *testing.T, p *peer) {
		for i := range 20 {
			p.send(fmt.Sprintf(`{"id":%d,"method":"m","params":0}`, i))
		}
		p.in.Close()
		began := time.Now()
		if err := <-p.served; !errors.Is(err, ErrNotReading) {
			t.Errorf("Serve: %v", err)
		}
		if took := time.Since(began); took > 3*grace {
			t.Errorf("Serve took %v to end", took)
		}
	})
}

// TestAnswersBeforeTheEnd: what was asked before the end of the input is answered.
func TestAnswersBeforeTheEnd(t *testing.T) {
	bubble(t, "", Options{}, func(t *testing.T, p *peer) {
		p.send(`{"id":1,"method":"hang"}`)
		p.in.Close()
		p.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the peer has ended the connection"}}`)
		if err := <-p.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func TestPeerIsGone(t *testing.T) {
	bubble(t, "", Options{}, func(t *testing.T, p *peer) {
		gone := errors.New("broken pipe")
		p.outR.CloseWithError(gone)
		p.send(`{"id":1,"method":"m","params":0}`)
		if err := <-p.served; !errors.Is(err, gone) {
			t.Errorf("Serve: %v", err)
		}
		if err := p.conn.Notify(t.Context(), "m", nil); !errors.Is(err, ErrHungUp) {
			t.Errorf("Notify: %v", err)
		}
		if _, err := p.conn.Call(t.Context(), p.conn.NewID(), "m", nil); !errors.Is(err, ErrPeerGone) {
			t.Errorf("Call: %v", err)
		}
	})
}

// TestApart: a message of one peer that shares a connection doesn't wait for another's to be read.
func TestApart(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	c := NewConn(t.Context(), nil, Options{MaxRequests: 2, Apart: true, Accept: func(r *Request) Handler {
		if r.Method == "second" {
			close(second)
			return nil
		}
		close(first)
		<-second
		return func(context.Context) (any, error) { return nil, ErrNoAnswer }
	}})
	defer c.Close(ErrPeerGone)
	over := make(chan (<-chan struct{}))
	go func() { over <- c.Deliver(t.Context(), []byte(`{"id":1,"method":"first"}`), nil) }()
	<-first
	c.Deliver(t.Context(), []byte(`{"id":1,"method":"second"}`), nil)
	<-<-over
}

// TestApartCancel: a cancel ends no request of the peers that share a connection, whose ids may be
// equal: each ends its own by the context that it has delivered it with.
func TestApartCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConn(t.Context(), nil, Options{MaxRequests: 8, Apart: true, Accept: func(*Request) Handler {
			return func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return nil, ErrNoAnswer
			}
		}})
		defer c.Close(ErrPeerGone)
		ctx, cancel := context.WithCancel(t.Context())
		call := []byte(`{"id":1,"method":"m"}`)
		first, second := c.Deliver(ctx, call, nil), c.Deliver(t.Context(), call, nil)
		for _, id := range []string{"1", `"1"`, "0", "null"} {
			<-c.Deliver(t.Context(), []byte(`{"method":"notifications/cancelled","params":{"requestId":`+id+`}}`), nil)
		}
		over := func(call <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-call:
				return true
			default:
				return false
			}
		}
		if over(first) || over(second) {
			t.Errorf("cancelled by another: %v, %v", over(first), over(second))
		}
		if cancel(); !over(first) || over(second) {
			t.Errorf("cancelled by its own: %v, the other one %v", over(first), over(second))
		}
	})
}
