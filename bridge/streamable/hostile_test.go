package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// pipes is a listener in memory, whose connections know deadlines and hold nothing back.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// drainTime is how long calls go on when what bubble serves is told to end.
const drainTime = 25 * time.Second

// bubble serves run in a bubble of synctest until end is called.
func bubble(t *testing.T, run runner, who ...func(*http.Request) (string, error)) (s *served, p *pipes,
	end func() error) {
	return bubbleOver(t, run, "", "", who...)
}

// bubbleOver is bubble over TLS, if there are the files of a certificate and its key.
func bubbleOver(t *testing.T, run runner, cert, key string, who ...func(*http.Request) (string, error)) (
	s *served, p *pipes, end func() error) {
	s = serveBridge(t, run)
	p = newPipes()
	cfg := streamable.Config{Clients: s.bridge.Clients(), Hosts: streamable.Loopback, Metrics: true,
		DrainTime: drainTime}
	if who != nil {
		cfg.Authenticate = who[0]
	}
	s.h = streamable.New(cfg)
	s.url = "http://localhost" + streamable.Path
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(), nil },
	}
	s.client = &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.h.Serve(ctx, p, cert, key) }()
	return s, p, func() error {
		cancel()
		transport.CloseIdleConnections()
		return <-served
	}
}

// TestSlowBody: a body that comes a byte a second is refused in the end, and so are headers.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, end := bubble(t, echo)
		for _, tc := range []struct {
			name, begin, want string
			most              time.Duration
		}{
			{"body", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
				"Content-Length: 1000000\r\n\r\n", "408 ", 61 * time.Second},
			{"headers", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ", "", 11 * time.Second},
		} {
			c := p.dial()
			var sent sync.WaitGroup
			sent.Go(func() {
				_, err := io.WriteString(c, tc.begin)
				for err == nil {
					time.Sleep(time.Second) // of the bubble
					_, err = c.Write([]byte("a"))
				}
			})
			began := time.Now()
			line, _ := bufio.NewReader(c).ReadString('\n')
			if took := time.Since(began); !strings.Contains(line, tc.want) || took > tc.most {
				t.Errorf("%s: %q after %v", tc.name, line, took)
			}
			c.Close()
			sent.Wait()
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestStoppedReader: a client that stops reading is given up after half a minute, and its call is
// ended; others are served meanwhile.
func TestStoppedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s, p, end := bubble(t, func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			if r.Code != "talk" {
				return echo(ctx, r, h)
			}
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					ended <- context.Cause(ctx)
					return sandbox.Result{}, context.Cause(ctx)
				case <-tick.C:
					r.Output(sandbox.Chunk{Stream: "stdout", Text: strings.Repeat("x", 999) + "\n"})
				}
			}
		})
		c := p.dial()
		body := run(1, "talk", metaOf(`"progressToken":1,`))
		headers := "Content-Type: application/json\r\n" + strings.Join(standard("tools/call", "run_python"), "\r\n")
		fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
			headers, len(body), body)
		status, got, _ := s.post(run(1, "echo", metaOf("")), standard("tools/call", "run_python")...)
		if status != 200 || !strings.Contains(got[0].text(), "echo") {
			t.Errorf("another client: %d %+v", status, got)
		}
		began := time.Now()
		<-ended
		if took := time.Since(began); took > 35*time.Second {
			t.Errorf("it was given up after %v", took)
		}
		c.Close()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestIdle: a session that isn't used ends after half an hour, and one with an open stream doesn't,
// which shows that it is alive.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, end := bubble(t, echo)
		idle, used := s.initialize(latest, `{}`), s.initialize(latest, `{}`)
		ctx, hangUp := context.WithCancel(t.Context())
		stream := s.do(ctx, "GET", "", used...)
		pings := 0
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), ": ping") {
					pings++
				}
			}
		}()
		time.Sleep(31 * time.Minute) // of the bubble
		synctest.Wait()
		ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		if status, _, _ := s.post(ping, idle...); status != http.StatusNotFound {
			t.Errorf("the idle session: %d", status)
		}
		if status, _, _ := s.post(ping, used...); status != http.StatusOK {
			t.Errorf("the used session: %d", status)
		}
		hangUp()
		<-read
		if pings != 124 {
			t.Errorf("%d pings in 31 minutes", pings)
		}
		time.Sleep(31 * time.Minute)
		if status, _, _ := s.post(ping, used...); status != http.StatusNotFound {
			t.Errorf("the other one later: %d", status)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestQuietCall: a call that says nothing for long has a stream with an id to go on after.
func TestQuietCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, end := bubble(t, func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			time.Sleep(20 * time.Second) // of the bubble
			return echo(ctx, r, h)
		})
		session := s.initialize(latest, `{}`)
		ctx, hangUp := context.WithCancel(t.Context())
		lost := s.do(ctx, "POST", run(1, "quiet", ""), session...)
		if kind := lost.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("Content-Type %q", kind)
		}
		id, err := bufio.NewReader(lost.Body).ReadString('\n')
		if err != nil || !strings.HasPrefix(id, "id: ") {
			t.Fatalf("the stream begins with %q", id)
		}
		hangUp()
		event := "Last-Event-ID: " + strings.TrimSpace(strings.TrimPrefix(id, "id: "))
		time.Sleep(time.Minute)
		got := all(t, s.do(t.Context(), "GET", "", append([]string{event}, session...)...))
		if len(got) != 1 || !strings.Contains(got[0].text(), "quiet") {
			t.Errorf("later: %+v", got)
		}
		time.Sleep(5 * time.Minute)
		if r := s.do(t.Context(), "GET", "", append([]string{event}, session...)...); r.StatusCode != 400 {
			t.Errorf("much later: %d", r.StatusCode)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestForeignPages: the Host must be ours, and a page's Origin must be it, or allowed.
func TestForeignPages(t *testing.T) {
	s := serve(t, echo, func(c *streamable.Config) {
		c.Origins = []string{"https://app.example"}
		c.Hosts = append(c.Hosts, "bridge.example:8443")
	})
	host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), streamable.Path)
	_, port, _ := net.SplitHostPort(host)
	list := `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	session := s.initialize(latest, `{}`)
	for _, tc := range []struct {
		header string
		status int
	}{
		{"Host: evil.example", 403}, {"Host: evil.example:" + port, 403}, {"Host: localhost.evil.example", 403},
		{"Host: 127.0.0.1.evil.example", 403}, {"Host: [::2]:" + port, 403}, {"Host: bridge.example", 403},
		{"Host: localhost:" + port, 200}, {"Host: LOCALHOST", 200}, {"Host: [::1]:" + port, 200},
		{"Host: bridge.example:8443", 200},
		{"Origin: https://evil.example", 403}, {"Origin: null", 403}, {"Origin: http://localhost:1", 403},
		{"Origin: http://" + host + ".evil.example", 403}, {"Origin: file://", 403},
		{"Origin: https://app.example.evil", 403},
		{"Origin: http://" + host, 200}, {"Origin: https://app.example", 200},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
			if method != "POST" && tc.status != 403 {
				continue
			}
			r := s.do(t.Context(), method, list, append(session, tc.header)...)
			if r.StatusCode != tc.status {
				t.Errorf("%s %s: %d, want %d", method, tc.header, r.StatusCode, tc.status)
			}
			shared := r.Header.Get("Access-Control-Allow-Origin")
			if want := strings.TrimPrefix(tc.header, "Origin: "); (shared != "") != (want == "https://app.example") {
				t.Errorf("%s: may be read by %q", tc.header, shared)
			}
		}
	}
	r := s.do(t.Context(), "OPTIONS", "", "Origin: https://app.example",
		"Access-Control-Request-Headers: mcp-session-id")
	if r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Headers") != "mcp-session-id" {
		t.Errorf("a question before a call: %d %v", r.StatusCode, r.Header)
	}
}

// TestLargeRequests: a long body is refused before it is read, or once 16 MiB of it are, and so are
// many headers.
func TestLargeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, end := bubble(t, echo)
		const begin = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		spaces := strings.Repeat(" ", 64<<10)
		for _, tc := range []struct {
			name, begin, part, want string
			most                    int // bytes that are taken
		}{
			{"a length", begin + "Content-Length: 100000000\r\n\r\n", spaces, " 413 ", 1 << 20},
			{"no length", begin + "Transfer-Encoding: chunked\r\n\r\n",
				fmt.Sprintf("%x\r\n%s\r\n", len(spaces), spaces), " 413 ", 17 << 20},
			{"headers", begin, strings.Repeat("A: \r\n", 100), " 431 ", 64 << 10},
		} {
			c := p.dial()
			var sending sync.WaitGroup
			sent := 0
			sending.Go(func() {
				_, err := io.WriteString(c, tc.begin)
				for err == nil && sent < 100<<20 {
					var n int
					n, err = io.WriteString(c, tc.part)
					sent += n
				}
			})
			line, err := bufio.NewReader(c).ReadString('\n')
			c.Close()
			if sending.Wait(); !strings.Contains(line, tc.want) || sent > tc.most {
				t.Errorf("%s: %q %v, %d bytes were taken", tc.name, line, err, sent)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestManyStreams: a client that opens 1,000 streams gets those that the limit allows; another one
// is served, and what was taken is given back.
func TestManyStreams(t *testing.T) {
	s := serve(t, echo, users)
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":` +
		`{"toolsListChanged":true},"_meta":` + metaOf("") + `}}`
	headers := append(standard("subscriptions/listen", ""), "Authorization: Bearer greedy")
	ctx, hangUp := context.WithCancel(t.Context())
	var open, refused int
	for range 1000 {
		r := s.do(ctx, "POST", body, headers...)
		if r.Header.Get("Content-Type") == "text/event-stream" {
			open++
		} else {
			refused++
			r.Body.Close()
		}
	}
	if open != 256 || refused != 744 {
		t.Errorf("%d are open, %d refused", open, refused)
	}
	status, got, _ := s.post(run(1, "echo", metaOf("")),
		append(standard("tools/call", "run_python"), "Authorization: Bearer modest")...)
	if status != 200 || !strings.Contains(got[0].text(), "echo") {
		t.Errorf("another principal: %d %+v", status, got)
	}
	hangUp()
	for deadline := time.Now().Add(within); ; { // the server sees that they are gone when it does
		r := s.do(t.Context(), "POST", body, headers...)
		kind := r.Header.Get("Content-Type")
		r.Body.Close()
		if kind == "text/event-stream" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no stream can be had any more")
		}
		runtime.Gosched()
	}
}

// TestManyGets: of the streams that a client with a session opens the last one is served, and none
// of the others is left.
func TestManyGets(t *testing.T) {
	s := serve(t, echo, nil)
	session := s.initialize(latest, `{}`)
	last := s.do(t.Context(), "GET", "", session...)
	for range 1000 {
		next := s.do(t.Context(), "GET", "", session...)
		if next.StatusCode != 200 {
			t.Fatalf("a stream is answered with %d", next.StatusCode)
		}
		if got := all(t, last); len(got) > 0 {
			t.Errorf("a stream that was replaced has %+v", got)
		}
		last = next
	}
	s.changeTools()
	if m, _ := eventsOf(t, last).next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("the last stream has %+v", m)
	}
	status, got, _ := s.post(run(1, "echo", ""), session...)
	if status != 200 || !strings.Contains(got[0].text(), "echo") {
		t.Errorf("a call: %d %+v", status, got)
	}
}
