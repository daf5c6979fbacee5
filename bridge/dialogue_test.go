package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// askingResult is a result that asks.
type askingResult struct {
	Type     string `json:"resultType"`
	Requests map[string]struct {
		Method string
		Params struct{ Message string }
	} `json:"inputRequests"`
	State string `json:"requestState"`
	Meta  map[string]any
}

// modernRun sends a call of 2026-07-28, of a client that can be asked. More are further members of
// its parameters.
func (p *peer) modernRun(id int, code, token, more string) {
	p.t.Helper()
	if token != "" {
		token = `"progressToken":` + token + `,`
	}
	p.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python",`+
		`"arguments":{"code":%q},%s"_meta":{%s`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, id, code, more, token)
}

// again sends the call again, with the same answer to each question.
func (p *peer) again(id int, code, token string, in askingResult, answer string) {
	p.t.Helper()
	answers := map[string]json.RawMessage{}
	for key := range in.Requests {
		answers[key] = json.RawMessage(answer)
	}
	p.modernRun(id, code, token, fmt.Sprintf(`"requestState":%q,"inputResponses":%s,`, in.State,
		text.JSON(answers)))
}

func (f frame) inputs(t testing.TB, id string, questions int) (in askingResult) {
	t.Helper()
	if err := json.Unmarshal(f.Result, &in); err != nil || string(f.ID) != id {
		t.Fatalf("got %s for %s, error %+v, %v", f.Result, f.ID, f.Error, err)
	}
	if in.Type != "input_required" || in.State == "" || len(in.Requests) != questions {
		t.Fatalf("got %s, want %d questions", f.Result, questions)
	}
	return in
}

const yes = `{"action":"accept","content":{"answer":"once"}}`

// questioning is a bridge whose code asks as many questions at a time as its words have letters,
// one after the other. Begun counts the runs, ended those that came to their end, and how is the
// end of the last.
type questioning struct {
	begun, ended atomic.Int32
	how          chan error
}

func (q *questioning) bridge(t testing.TB, change func(*Config)) *Bridge {
	q.how = make(chan error, 100)
	return build(t, func(c *Config) {
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			q.begun.Add(1)
			defer func() { q.how <- context.Cause(ctx) }()
			var said []string
			for i, n := range strings.Fields(r.Code) {
				var all sync.WaitGroup
				answers := make([]string, len(n))
				for j := range n {
					all.Go(func() {
						raw, err := requestOf(ctx).asker.Ask(ctx, elicit.ByPolicy, "elicitation/create",
							map[string]any{"message": fmt.Sprintf("%d.%d", i, j)})
						if answers[j] = string(raw); err != nil {
							answers[j] = err.Error()
						}
					})
				}
				all.Wait()
				said = append(said, answers...)
			}
			if ctx.Err() != nil {
				return sandbox.Result{Status: sandbox.StatusCancelled}, nil
			}
			q.ended.Add(1)
			return printed(strings.Join(said, " ")), nil
		}}
		if change != nil {
			change(c)
		}
	})
}

// TestDialogue: questions at once come together, others one after the other, each answer reaches
// its own question, and the code runs once. The progress of the call goes to the request that
// attends it.
func TestDialogue(t *testing.T) {
	var q questioning
	p := connect(t, q.bridge(t, nil))
	p.modernRun(1, "111 1 11", "", "")
	for i, n := range []int{3, 1, 2} {
		in := p.next().inputs(t, fmt.Sprint(i+1), n)
		answers := map[string]json.RawMessage{"unknown": json.RawMessage(`{}`)}
		for key, r := range in.Requests {
			if r.Method != "elicitation/create" {
				t.Errorf("asked by %s", r.Method)
			}
			answers[key] = json.RawMessage(fmt.Sprintf(`{"action":"accept","n":9007199254740993,"to":%q}`,
				r.Params.Message))
		}
		// The same arguments, written otherwise.
		p.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"inputResponses":%s,"requestState":%q,`+
			`"arguments": { "code" : "111 1 \u00311"},"name":"run_python",`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, i+2, text.JSON(answers), in.State)
	}
	f := p.next()
	want := ""
	for _, to := range []string{"0.0", "0.1", "0.2", "1.0", "2.0", "2.1"} {
		want += fmt.Sprintf(` {"action":"accept","n":9007199254740993,"to":%q}`, to)
	}
	if got := f.tool(t).Content[0].Text; string(f.ID) != "4" || got != want[1:] || q.begun.Load() != 1 {
		t.Errorf("%d runs; got %s for %s, want %s", q.begun.Load(), got, f.ID, want[1:])
	}
}

// TestDialogueThatIsNotComplete: what was not answered is asked again, with another state.
func TestDialogueThatIsNotComplete(t *testing.T) {
	var q questioning
	p := connect(t, q.bridge(t, nil))
	p.modernRun(1, "11", "", "")
	first := p.next().inputs(t, "1", 2)
	p.modernRun(2, "11", "", fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":%s,"q2":null},`, first.State,
		yes))
	second := p.next().inputs(t, "2", 1)
	p.modernRun(3, "11", "", fmt.Sprintf(`"requestState":%q,`, second.State))
	third := p.next().inputs(t, "3", 1)
	p.again(4, "11", "", third, yes)
	if f := p.next(); f.tool(t).Content[0].Text != yes+" "+yes || q.begun.Load() != 1 {
		t.Errorf("%d runs, got %s", q.begun.Load(), f.Result)
	}
}

// TestStateOfAnother: a state serves once, for the call and the client that it was made for.
// Nothing runs for another.
func TestStateOfAnother(t *testing.T) {
	var q questioning
	b := q.bridge(t, nil)
	p, stranger := connect(t, b), connect(t, b)
	p.modernRun(1, "1 1", "", "")
	in := p.next().inputs(t, "1", 1)
	forged := in
	refused := func(who *peer, why string, in askingResult, code string) {
		t.Helper()
		who.again(9, code, "", in, yes)
		if f := who.next(); f.Error == nil || f.Error.Code != -32602 ||
			!strings.Contains(f.Error.Message, "requestState was not issued by this server to this client for this "+
				"call, was used before,") || string(f.ID) != "9" {
			t.Errorf("%s: got %s, %+v", why, f.Result, f.Error)
		}
	}
	for why, state := range map[string]string{
		"empty": "", "another": strings.Repeat("A", len(in.State)), "cut": in.State[:len(in.State)-1],
		"text behind it": in.State + "A",
	} {
		forged.State = state
		refused(p, why, forged, "1 1")
	}
	refused(p, "another call", in, "1 1 1")
	refused(stranger, "another client", in, "1 1")
	p.modernRun(9, "1 1", "", `"requestState":5,`)
	if f := p.next(); f.Error == nil || f.Error.Code != -32602 {
		t.Errorf("a number as state: got %s, %+v", f.Result, f.Error)
	}
	p.again(2, "1 1", "", in, yes)
	second := p.next().inputs(t, "2", 1)
	refused(p, "used", in, "1 1")
	p.again(3, "1 1", "", second, yes)
	p.next().tool(t)
	refused(p, "over", second, "1 1")
	if q.begun.Load() != 1 || q.ended.Load() != 1 {
		t.Errorf("%d runs begun, %d ended, want one", q.begun.Load(), q.ended.Load())
	}
}

// TestStateTwiceAtOnce: of two requests with one state, one goes on.
func TestStateTwiceAtOnce(t *testing.T) {
	var q questioning
	p := connect(t, q.bridge(t, nil))
	for range 50 {
		p.modernRun(1, "1", "", "")
		in := p.next().inputs(t, "1", 1)
		p.again(2, "1", "", in, yes)
		p.again(3, "1", "", in, yes)
		if a, b := p.next(), p.next(); (a.Error == nil) == (b.Error == nil) {
			t.Fatalf("got %s and %s", a.Result, b.Result)
		}
	}
	if q.begun.Load() != 50 || q.ended.Load() != 50 {
		t.Errorf("%d runs, %d ended", q.begun.Load(), q.ended.Load())
	}
}

// TestNoAnswer: a call that doesn't come again is ended and logged, and its state is told to be
// late.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q questioning
		log := &lines{}
		p := connect(t, q.bridge(t, func(c *Config) { c.Log = log.logger() }))
		defer p.in.Close()
		p.modernRun(1, "1", "", "")
		in := p.next().inputs(t, "1", 1)
		time.Sleep(elicit.Timeout - time.Second)
		if len(q.how) != 0 {
			t.Error("it was ended early")
		}
		time.Sleep(2 * time.Second)
		if err := <-q.how; !strings.Contains(err.Error(), "no answer came within 5m0s") || q.ended.Load() != 0 {
			t.Errorf("the run ended by %v", err)
		}
		synctest.Wait()
		log.mu.Lock()
		text := log.text.String()
		log.mu.Unlock()
		if !strings.Contains(text, "a parked call was ended") || !strings.Contains(text, `"status":"cancelled"`) {
			t.Errorf("the log says %s", text)
		}
		p.again(2, "1", "", in, yes)
		if f := p.next(); f.Error == nil || f.Error.Code != -32602 ||
			!strings.Contains(f.Error.Message, "no answer came within 5m0s") {
			t.Errorf("got %s, %+v", f.Result, f.Error)
		}
	})
}

// TestEndsOfDialogues: the client's cancel ends a call that comes again, the connection's end one
// that is parked.
func TestEndsOfDialogues(t *testing.T) {
	q := questioning{}
	p := connect(t, q.bridge(t, nil))
	p.modernRun(1, "1 1", "", "")
	in := p.next().inputs(t, "1", 1)
	p.modernRun(2, "1 1", "", fmt.Sprintf(`"requestState":%q,`, in.State))
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	p.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if f := p.next(); string(f.ID) != "3" { // asked again it can't be: that takes a while
		t.Errorf("the cancelled request was answered: %s", f.Result)
	}
	if err := <-q.how; err != jsonrpc.ErrCancelled {
		t.Errorf("the run ended by %v", err)
	}
	p.modernRun(4, "1", "", "")
	p.next().inputs(t, "4", 1)
	p.in.Close()
	if err := <-q.how; err != jsonrpc.ErrPeerGone || q.ended.Load() != 0 {
		t.Errorf("the run ended by %v", err)
	}
	if err := <-p.served; err != nil {
		t.Error(err)
	}
}

// TestParkedCallsAreBounded: one more than may wait isn't asked for.
func TestParkedCallsAreBounded(t *testing.T) {
	var q questioning
	p := connect(t, q.bridge(t, nil))
	var first askingResult
	for i := range 16 {
		p.modernRun(i, "1", "", "")
		if in := p.next().inputs(t, fmt.Sprint(i), 1); i == 0 {
			first = in
		}
	}
	p.modernRun(100, "1", "", "")
	if text := p.next().tool(t).Content[0].Text; !strings.Contains(text, "16 of its calls wait for answers") {
		t.Errorf("got %s", text)
	}
	p.again(101, "1", "", first, yes)
	p.next().tool(t)
	p.modernRun(102, "1", "", "")
	p.next().inputs(t, "102", 1)
}

// TestAskPolicyInResults: the user is asked by a policy, and by a server, in the call's result.
func TestAskPolicyInResults(t *testing.T) {
	rules, err := policy.Parse("policy.toml", []byte("default = \"ask\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	called := atomic.Int32{}
	b := forwards(t, false)
	u := b.cfg.Upstreams.(fakeUpstreams)
	inner := u.call
	u.call = func(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
		called.Add(1)
		return inner(ctx, server, tool, args)
	}
	b.cfg.Upstreams = u
	b.latest = catalog.New(catalog.Config{Policy: rules, Log: b.cfg.Log}, config().Servers, nil)
	p := connect(t, b)
	const code = `{"method":"elicitation/create","params":{"message":"Your name?",` +
		`"requestedSchema":{"type":"object","properties":{}}}}`
	p.modernRun(1, code, "", "")
	in := p.next().inputs(t, "1", 1)
	if text := in.Requests["q1"].Params.Message; !strings.Contains(text,
		`wants to call tool "me" of server "github"`) || called.Load() != 0 {
		t.Errorf("asked %q, called %d times", text, called.Load())
	}
	p.again(2, code, "", in, yes)
	in = p.next().inputs(t, "2", 1)
	if text := in.Requests["q2"].Params.Message; !strings.Contains(text,
		`The MCP server "github" asks, by way of mcp-bridge: Your name?`) {
		t.Errorf("asked %q", text)
	}
	p.again(3, code, "", in, `{"action":"accept","content":{"name":"Ada"}}`)
	if text := p.next().tool(t).Content[0].Text; !strings.Contains(text, "Ada") || called.Load() != 1 {
		t.Errorf("got %q, called %d times", text, called.Load())
	}
}

// TestProgressOfDialogue: reports go to the token of the request that attends the call, and none
// comes while it is parked.
func TestProgressOfDialogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, running(t, func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			for i := range 2 {
				r.Output(sandbox.Chunk{Stream: "stdout", Text: fmt.Sprintf("line %d\n", i)})
				time.Sleep(1500 * time.Millisecond)
				if i == 0 {
					_, _ = requestOf(ctx).asker.Ask(ctx, elicit.ByPolicy, "elicitation/create",
						map[string]any{"message": "?"})
				}
			}
			return printed("x"), nil
		}))
		defer p.in.Close()
		var in askingResult
		for i, token := range []string{`"one"`, `"two"`} {
			if i == 0 {
				p.modernRun(1, "x", token, "")
			} else {
				time.Sleep(time.Minute)
				if len(p.frames) != 0 {
					t.Errorf("a parked call reports: %+v", <-p.frames)
				}
				p.again(2, "x", token, in, yes)
			}
			last, reports := time.Time{}, 0
			f := p.next()
			for ; f.Method != ""; f = p.next() {
				if string(f.Params.Token) != token || !strings.HasSuffix(f.Params.Message, fmt.Sprintf("line %d", i)) ||
					strings.HasPrefix(f.Params.Message, "[6") {
					t.Errorf("request %d: got %s", i+1, f.raw)
				}
				last, reports = time.Now(), reports+1
			}
			if since := time.Since(last); since < progressQuiet || reports < 2 {
				t.Errorf("request %d: %d reports, the last %v before the answer", i+1, reports, since)
			}
			if i == 0 {
				in = f.inputs(t, "1", 1)
			}
		}
	})
}
