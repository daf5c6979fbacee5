package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// held returns how many bytes the bridge says that it holds.
func (s *served) held() int {
	r, err := http.NewRequest("GET", strings.Replace(s.url, "/mcp", "/metrics", 1), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Who", "metrics")
	got, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	text, _ := io.ReadAll(got.Body)
	_, after, found := strings.Cut(string(text), "\nmcp_bridge_http_held_bytes ")
	n := -1
	if _, err := fmt.Sscan(after, &n); !found || err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	return n
}

// rawPost sends a POST that says to have a body of a length.
func rawPost(c net.Conn, length int, body string, headers ...string) {
	fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n"+
		"Content-Length: %d\r\n\r\n%s", strings.Join(headers, "\r\n"), length, body)
}

// TestManyBodies: bodies of a principal that come slowly take no more room than there is, and none
// before they come.
func TestManyBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, end := bubble(t, echo, byHeader)
		const length = 16 << 20
		statuses := make(chan string, 100)
		var conns []net.Conn
		for range 40 {
			c := p.dial()
			conns = append(conns, c)
			rawPost(c, length, "", "X-Who: greedy")
			go func() {
				line, _ := bufio.NewReader(c).ReadString('\n')
				statuses <- line
			}()
		}
		call := func(who, code string) int {
			status, _, _ := s.post(run(1, code, metaOf("")),
				append(standard("tools/call", "run_python"), "X-Who: "+who)...)
			return status
		}
		synctest.Wait()
		if got := s.held(); got > 1<<20 {
			t.Errorf("%d bytes are held of bodies that haven't come", got)
		}
		long := strings.Repeat("#", 10_000)
		if status := call("greedy", long); status != http.StatusOK {
			t.Errorf("meanwhile: %d", status)
		}
		for _, c := range conns {
			go func() { _, _ = c.Write(bytes.Repeat([]byte(" "), length-1)) }()
		}
		synctest.Wait()
		if got := s.held(); got < 40<<20 || got > 80<<20 {
			t.Errorf("%d bytes are held", got)
		}
		if len(statuses) == 0 || !strings.Contains(<-statuses, "429") {
			t.Error("none was refused")
		}
		if status := call("greedy", long); status != http.StatusTooManyRequests {
			t.Errorf("one more: %d", status)
		}
		if status := call("greedy", "short"); status != http.StatusOK {
			t.Errorf("a short one: %d", status)
		}
		if status := call("modest", long); status != http.StatusOK {
			t.Errorf("another principal: %d", status)
		}
		for _, c := range conns {
			c.Close()
		}
		synctest.Wait()
		if got := s.held(); got != 0 {
			t.Errorf("%d bytes are never given back", got)
		}
		if status := call("greedy", long); status != http.StatusOK {
			t.Errorf("afterwards: %d", status)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// files is code that leaves a file of 8 MiB.
func files(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
	res := printed("")
	res.Artifacts = []sandbox.Artifact{{
		Name: "f.bin", Mime: "application/octet-stream", Data: bytes.Repeat([]byte("x"), 8<<20),
	}}
	return res, nil
}

// leave has a run leave a file, and returns its URI.
func (s *served) leave(session []string) string {
	s.t.Helper()
	_, got, _ := s.post(run(1, "x", ""), session...)
	_, after, found := strings.Cut(string(got[0].Result), "mcp-bridge://runs/")
	id, _, _ := strings.Cut(after, "/")
	if !found {
		s.t.Fatalf("there is no file in %.300s", got[0].Result)
	}
	return "mcp-bridge://runs/" + id + "/f.bin"
}

// TestSlowReader: a client that reads an answer slowly, and never stops, is given up as well.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, end := bubble(t, files)
		session := s.initialize(latest, `{}`)
		c := p.dial()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`,
			s.leave(session))
		rawPost(c, len(body), body, session...)
		began, part, got := time.Now(), make([]byte, 64<<10), 0
		for {
			n, err := io.ReadFull(c, part)
			if got += n; err != nil {
				break
			}
			time.Sleep(20 * time.Second) // of the bubble
		}
		if took := time.Since(began); took > 5*time.Minute || got >= 8<<20 {
			t.Errorf("it was given %v, and %d bytes", took, got)
		}
		c.Close()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadAnswers: long answers that a principal doesn't read are bounded, and given up; neither
// another principal nor the end of the server waits for them.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, end := bubble(t, files, byHeader)
		session := s.initialize(latest, `{}`, "X-Who: greedy")
		uri := s.leave(session)
		ask := func(meta string, headers ...string) net.Conn {
			c := p.dial()
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"resources/read","params":{"uri":%q%s}}`,
				fmt.Sprint(len(headers), meta, time.Now()), uri, meta)
			rawPost(c, len(body), body, headers...)
			return c
		}
		var conns []net.Conn
		askAll := func() {
			for range 6 {
				conns = append(conns,
					ask("", append([]string{"Accept: application/json, text/event-stream"}, session...)...),
					ask(`,"_meta":`+metaOf(""), append(standard("resources/read", uri), "X-Who: greedy")...))
				time.Sleep(time.Millisecond) // of the bubble, so that ids differ
			}
			synctest.Wait()
		}
		askAll()
		if got := s.held(); got < 40<<20 || got > 90<<20 {
			t.Errorf("%d bytes are held", got)
		}
		status, _, _ := s.post(run(1, "x", metaOf("")),
			append(standard("tools/call", "run_python"), "X-Who: modest")...)
		if status != http.StatusOK {
			t.Errorf("another principal: %d", status)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := s.held(); got > 1<<20 {
			t.Errorf("%d bytes are held for readers that have stopped", got)
		}
		askAll()
		began := time.Now()
		if err := end(); err != nil || time.Since(began) > 40*time.Second { // calls are waited for
			t.Errorf("it has ended after %v: %v", time.Since(began), err)
		}
		for _, c := range conns {
			c.Close()
		}
	})
}
