//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

var update = flag.Bool("update", false, "rewrite the table in docs/upstreams.md")

// misbehave are the tools of the fake that do what no server should.
func (s *server) misbehave(r request) {
	switch r.Params.Name {
	case "video":
		s.result(r, `{"content":[{"type":"video","data":"…"}]}`)
	case "structured only":
		s.result(r, `{"structuredContent":{"n":9007199254740993}}`)
	case "null result":
		s.result(r, "null")
	case "half a line": // and die
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[`, r.ID)
		os.Exit(5)
	case "chatter": // on both streams, between the messages
		fmt.Print("loading…\r\n", strings.Repeat("=", 100_000), "\n{\"level\":\"info\"}\n\xff\xfe\n")
		fmt.Fprint(os.Stderr, strings.Repeat("log ", 1<<18))
		s.result(r, `{}`)
	case "notifications":
		for i := range 4000 {
			s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"n":%d}}`, i)
			s.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%d"}}`, i)
		}
		s.result(r, `{}`)
	case "wrong progress":
		s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b-99","progress":1}}`)
		s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":[]}`)
		s.result(r, `{}`)
	case "not jsonrpc":
		s.send(`{"id":%s,"result":{"version":"none"}}`, r.ID)
	case "foreign id":
		s.send(`{"jsonrpc":"2.0","id":{"a":1},"result":{}}`)
		s.send(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`)
	case "byte order mark":
		s.send("\xef\xbb\xbf"+`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\r", r.ID)
	case "ask and close output":
		s.send(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		_ = os.Stdout.Close()
	case "stuck":
		park() // the only goroutine that reads
	case "stopped":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	default:
		s.demand(r)
	}
}

// bad is one server that misbehaves: by its mode, or in a call of a tool, or in what play does.
type bad struct {
	what, mode, tool, args string
	bound                  func(*Config)
	// nil: call the tool, or list the tools where there isn't one
	play func(ctx context.Context, p *Pool) (string, error)
	next bool // the next call has to work
}

// shortly is a context for calls that only end with their own time.
func shortly(f func(ctx context.Context, p *Pool) (string, error)) func(context.Context,
	*Pool) (string, error) {
	return func(ctx context.Context, p *Pool) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return f(ctx, p)
	}
}

func calling(tool, args string) func(context.Context, *Pool) (string, error) {
	return func(ctx context.Context, p *Pool) (string, error) {
		raw, err := p.Call(ctx, "fake", tool, json.RawMessage(args))
		return string(raw), err
	}
}

func listed(ctx context.Context, p *Pool) (string, error) {
	tools, err := p.Tools(ctx, "fake")
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return fmt.Sprintf("tools %s", strings.Join(names, ", ")), err
}

// startSoon is as long as the good server may need, beside other tests.
func startSoon(c *Config) { c.StartTimeout = 5 * time.Second }

func listSoon(c *Config) { c.ListTimeout = 300 * time.Millisecond }

func readSoon(c *Config) { c.StallTimeout = 300 * time.Millisecond }

func answerSoon(c *Config) { c.CallTimeout, c.PingTimeout = 500*time.Millisecond, 500*time.Millisecond }

func small(c *Config) { c.MaxLine, c.MaxList = 1<<20, 1<<20 }

// TestMisbehaviour has each bad server beside a good one, which must be answered throughout, and
// prints what became of it: the table in docs/upstreams.md.
func TestMisbehaviour(t *testing.T) {
	rows := make([]string, len(misbehaviours))
	var wg sync.WaitGroup
	limit := make(chan struct{}, 4)
	for i, b := range misbehaviours {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			t.Run(b.what, func(t *testing.T) { rows[i] = b.run(t) })
		})
	}
	wg.Wait()
	table := "| the server … | its caller gets | the next call |\n| --- | --- | --- |\n" + strings.Join(rows, "")
	t.Log("\n" + table)
	document(t, "../../docs/upstreams.md", table)
}

func (b bad) run(t *testing.T) string {
	good := fake("normal")
	good.Name = "good"
	g := &groups{}
	p := NewPool(func() Config {
		c := Config{Servers: append([]discovery.Server{good}, fake(b.mode)), Guard: g,
			CloseTimeout: 3 * time.Second}
		if b.bound != nil {
			b.bound(&c)
		}
		return c
	}())
	neighbour := func(when string) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if raw, err := p.Call(ctx, "good", "echo", json.RawMessage(`{"a":1}`)); err != nil ||
			string(raw) != `{"a":1}` {
			t.Errorf("the good server %s: %s, %v", when, raw, err)
		}
	}
	neighbour("before")
	type outcome struct {
		said string
		err  error
	}
	done := make(chan outcome, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		said, err := b.played()(ctx, p)
		done <- outcome{said, err}
	}()
	neighbour("meanwhile")
	got := <-done
	neighbour("afterwards")
	next := b.after(t, p)
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := g.now.Load(); n != 0 {
		t.Errorf("%d process groups are left", n)
	}
	return fmt.Sprintf("| %s | %s | %s |\n", b.what, cell(got.said, got.err), next)
}

func (b bad) played() func(context.Context, *Pool) (string, error) {
	switch {
	case b.play != nil:
		return b.play
	case b.tool != "":
		return calling(b.tool, b.args)
	}
	return listed
}

// after says how the next call goes.
func (b bad) after(t *testing.T, p *Pool) string {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := p.Call(ctx, "fake", "echo", nil)
	// it may have been dying still
	if err != nil && strings.Contains(err.Error(), "the next call starts it again") {
		_, err = p.Call(ctx, "fake", "echo", nil)
	}
	if (err == nil) != b.next {
		t.Errorf("the next call: %v", err)
	}
	if err != nil {
		return "fails with the reason"
	}
	return "works"
}

// varying is what isn't the same each time, or with each Go.
var varying = regexp.MustCompile(`json: .*|(left )\d+( bytes)`)

// cell is an outcome in one line. No secret may be in it.
func cell(said string, err error) string {
	var e *ServerError
	if errors.As(err, &e) {
		said = "error: " + e.Err.Error()
		if e.Stderr != "" {
			last := e.Stderr[strings.LastIndexByte(e.Stderr, '\n')+1:]
			said += "; stderr: " + last[:min(len(last), 80)]
		}
	} else if err != nil {
		said = "error: " + err.Error()
	}
	if strings.Contains(said, "s3cr3t") {
		return "A SECRET"
	}
	if len(said) > 1000 {
		said = fmt.Sprintf("%s… (%d bytes)", said[:60], len(said))
	}
	said = varying.ReplaceAllString(said, "${1}…${2}")
	return strings.NewReplacer("|", "\\|", "\n", " ", os.Args[0], "its command").Replace(said)
}

// document compares the table with the one in a file, between two marks, or puts it there.
func document(t *testing.T, path, table string) {
	t.Helper()
	const begin, end = "<!-- table -->\n", "<!-- end -->"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	was, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(was, table); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update:\n%s", path, diff)
	}
}
