package bridge

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// unread is a log each line of which waits until somebody reads it. It has no lock, on which a
// bubble could not see that all wait.
type unread struct {
	slog.Handler
	lines chan map[string]any
}

func (u unread) Handle(_ context.Context, r slog.Record) error {
	line := map[string]any{"msg": r.Message}
	r.Attrs(func(a slog.Attr) bool {
		line[a.Key] = a.Value.Any()
		return true
	})
	u.lines <- line
	return nil
}

// blocked is such a log, and how to read it.
func blocked() (log *slog.Logger, lines <-chan map[string]any) {
	u := unread{slog.NewTextHandler(io.Discard, nil), make(chan map[string]any)}
	return slog.New(u), u.lines
}

// maxLogging is how many lines wait for a log that is not read.
const maxLogging = 64

// TestLogThatIsNotRead: calls are answered, however they end and however many there are, though the
// log isn't read. Its later reader is told how each of the first ended, and how many lines are
// missing.
func TestLogThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, read := blocked()
		b := build(t, func(c *Config) {
			c.Log = log
			c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
				error) {
				switch r.Code {
				case "panics":
					panic("oh")
				case "waits":
					<-ctx.Done()
					return sandbox.Result{Status: sandbox.StatusCancelled}, nil
				}
				return printed(r.Code), nil
			}}
		})
		p := connect(t, b)
		p.run(0, `{"code":"panics"}`, "")
		if f := receive(p); f.Error.Message != "the bridge has failed on this request: oh" {
			t.Errorf("got %+v", f)
		}
		p.run(1, `{"code":"waits"}`, "")
		synctest.Wait()
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_tools",` +
			`"arguments":{"query":"x"}}}`)
		receive(p)
		synctest.Wait()
		const more = 3
		for i := range maxLogging + more {
			p.run(3+i, fmt.Sprintf(`{"code":"%d"}`, i), "")
			if r := receive(p).tool(t); r.Content[0].Text != fmt.Sprint(i) {
				t.Fatalf("got %q for the code %d", r.Content[0].Text, i)
			}
			synctest.Wait()
		}
		// The panic's call has one place for both its lines, and the second of them comes once
		// there are others again.
		said := map[string]int{}
		lost := int64(0)
		next := func() {
			l := <-read
			said[fmt.Sprint(l["msg"], " ", cmp.Or(l["status"], l["panic"], l["ok"]))]++
			n, _ := l["lines_lost"].(int64)
			lost += n
		}
		for range maxLogging {
			next()
		}
		synctest.Wait()
		p.run(1000, `{"code":"last"}`, "")
		receive(p)
		for range 2 { // the last, and the panic's second, in either order
			next()
		}
		// What else took a place is the panic, the cancelled call and the search.
		want := map[string]int{"run_python panic": 1, "a request has panicked oh": 1, "run_python cancelled": 1,
			"search_tools true": 1, "run_python ok": maxLogging - 3 + 1}
		if fmt.Sprint(said) != fmt.Sprint(want) || lost != more+3 {
			t.Errorf("logged %v with %d lines lost\nwant %v with %d", said, lost, want, more+3)
		}
	})
}

// TestHangUpWithoutALogReader: a client that is gone doesn't keep the bridge for the sake of lines
// that the log doesn't take.
func TestHangUpWithoutALogReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, read := blocked()
		b := build(t, func(c *Config) { c.Log = log })
		in, client := io.Pipe()
		answers, out := io.Pipe()
		served := make(chan error)
		go func() { served <- b.Serve(t.Context(), in, out) }()
		fmt.Fprintln(client, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python",`+
			`"arguments":{"code":"x"}}}`)
		if _, err := bufio.NewReader(answers).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		client.Close()
		if err := <-served; err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("Serve has returned %v after %v, want nil after %v", err, time.Since(began), 3*time.Second)
		}
		<-read // the line is written when somebody reads it
	})
}

// TestMessageAfterTheEnd: the Read that Serve can't interrupt may still bring a message, which is
// not worked on, and is the last one read.
func TestMessageAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := build(t, func(c *Config) {
			c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
				error) {
				ran++
				return printed(r.Code), nil
			}}
		})
		in, client := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- b.Serve(ctx, in, io.Discard) }()
		call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python",` +
			`"arguments":{"code":"x"}}}` + "\n"
		fmt.Fprintf(client, call, 1)
		synctest.Wait()
		cancel()
		<-served
		fmt.Fprintf(client, call, 2)
		synctest.Wait() // and the bubble ends only when all readers have ended
		if ran != 1 {
			t.Errorf("%d calls were worked on, want the one before the end", ran)
		}
	})
}
