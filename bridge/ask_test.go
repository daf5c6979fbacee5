package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// asking is a bridge whose runs ask their client and print what came of it. The code is the method,
// and after a space the parameters.
func asking(t testing.TB) *Bridge {
	return running(t, func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
		method, text, _ := strings.Cut(r.Code, " ")
		var params any
		if text != "" {
			params = json.RawMessage(text)
		}
		raw, err := requestOf(ctx).asker.Ask(ctx, elicit.ByServer, method, params)
		if err != nil {
			return printed(fmt.Sprintf("error, none to ask %v: %v", errors.Is(err, elicit.ErrCannotAsk), err)), nil
		}
		return printed(string(raw)), nil
	})
}

// introduce sends initialize with capabilities.
func (p *peer) introduce(capabilities string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities)
	if f := p.next(); string(f.ID) != `"init"` || f.Error != nil {
		p.t.Fatalf("got %+v", f)
	}
}

func (p *peer) code(id int, code string) {
	p.t.Helper()
	args, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		p.t.Fatal(err)
	}
	p.run(id, string(args), "")
}

// How many questions of each asker a client has at a time, and in the course of one call.
const maxAsking, maxAsks = 4, 50

func TestAskClient(t *testing.T) {
	const form = `elicitation/create {"message":"May I?","requestedSchema":{"type":"object"}}`
	for _, tc := range []struct{ name, answer, want string }{
		{"an answer", `"id":%s,"result":{"action":"accept","content":{"n":9007199254740993}}`,
			`{"action":"accept","content":{"n":9007199254740993}}`},
		{"an error", `"id":%s,"error":{"code":-1,"message":"user rejected\u001b[2J"}`,
			`error, none to ask false: the client refused: user rejected[2J (code -1)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := connect(t, asking(t))
			p.introduce(`{"elicitation":{}}`)
			p.code(1, form)
			q := p.next()
			if q.Method != "elicitation/create" || q.Params.Message != "May I?" || q.ID == nil {
				t.Fatalf("the client was asked %+v", q)
			}
			p.send(`{"jsonrpc":"2.0","id":77,"result":{}}`) // of nothing
			p.send(`{"jsonrpc":"2.0",%s}`, fmt.Sprintf(tc.answer, q.ID))
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, q.ID) // too late
			if got := p.next().tool(t).Content[0].Text; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestClientThatCannotBeAsked: it isn't sent what it has not declared, and the error says what is
// missing.
func TestClientThatCannotBeAsked(t *testing.T) {
	const form, url = `elicitation/create {"message":"m"}`,
		`elicitation/create {"mode":"url","message":"m","url":"https://example.org"}`
	const sampling, roots = `sampling/createMessage {}`, `roots/list`
	for _, tc := range []struct {
		capabilities string
		can          []string
	}{
		{`{}`, nil},
		{`{"elicitation":null}`, nil},
		{`{"elicitation":{}}`, []string{form}},
		{`{"elicitation":{"form":{}},"sampling":{"tools":{}}}`, []string{form}},
		{`{"elicitation":{"url":{}}}`, []string{url}},
		{`{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`, []string{form, url, roots}},
	} {
		t.Run(tc.capabilities, func(t *testing.T) {
			p := connect(t, asking(t))
			p.introduce(tc.capabilities)
			var can []string
			for _, code := range []string{form, url, sampling, roots, "tasks/list"} {
				p.code(1, code)
				f := p.next()
				if f.Method != "" {
					can = append(can, code)
					p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID)
					p.next()
				} else if text := f.tool(t).Content[0].Text; !strings.Contains(text,
					"none to ask true: the client can't be asked: it has not declared the capability ") {
					t.Errorf("%s: got %s", code, text)
				}
			}
			if diff := cmp.Diff(tc.can, can); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoOneToAsk(t *testing.T) {
	b := asking(t)
	r, err := b.RunDirect(t.Context(), Direct{Code: "roots/list"})
	if err != nil || !strings.Contains(r.Result.Output[0].Text,
		"none to ask true: the client can't be asked: the code was not run for an MCP client") {
		t.Errorf("got %+v, %v", r.Result.Output, err)
	}
	p := connect(t, b)
	p.run(1, `{"code":"roots/list"}`, `{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`)
	if got := p.next().tool(t).Content[0].Text; !strings.Contains(got,
		"its version of the protocol has only elicitation") {
		t.Errorf("got %s", got)
	}
}

// TestCancelWhileAsking: the client is told that its answer isn't needed, and the run ends.
func TestCancelWhileAsking(t *testing.T) {
	p := connect(t, asking(t))
	p.introduce(`{"roots":{}}`)
	p.code(1, `roots/list`)
	q := p.next()
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if f := p.next(); f.Method != "notifications/cancelled" || string(f.Params.RequestID) != string(q.ID) {
		t.Errorf("got %+v, want a cancel of %s", f, q.ID)
	}
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, q.ID)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if f := p.next(); string(f.ID) != "2" {
		t.Errorf("the cancelled call was answered: %+v", f)
	}
}

// TestEndOfInputWhileAsking: a question ends with the connection.
func TestEndOfInputWhileAsking(t *testing.T) {
	p := connect(t, asking(t))
	p.introduce(`{"roots":{}}`)
	p.code(1, `roots/list`)
	p.next()
	p.in.Close()
	if err := <-p.served; err != nil {
		t.Error(err)
	}
}

func TestAskingIsBounded(t *testing.T) {
	t.Run("at a time", func(t *testing.T) {
		p := connect(t, asking(t))
		p.introduce(`{"roots":{}}`)
		for i := range maxAsking + 2 {
			p.code(i, "roots/list")
		}
		var ids []json.RawMessage
		for range maxAsking {
			ids = append(ids, p.next().ID)
		}
		p.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		if f := p.next(); string(f.ID) != `"p"` {
			t.Errorf("one more was asked: %+v", f)
		}
		for answers := 0; answers < maxAsking+2; {
			for _, id := range ids {
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			}
			ids = nil
			if f := p.next(); f.Method == "" {
				answers++
			} else {
				ids = append(ids, f.ID)
			}
		}
	})
	t.Run("in one call", func(t *testing.T) {
		p := connect(t, running(t, func(ctx context.Context, _ sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			for {
				if _, err := requestOf(ctx).asker.Ask(ctx, elicit.ByServer, "roots/list", nil); err != nil {
					return printed(err.Error()), nil
				}
			}
		}))
		p.introduce(`{"roots":{}}`)
		p.code(1, "x")
		asked, f := 0, p.next()
		for ; f.Method != ""; f = p.next() {
			asked++
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID)
		}
		if got := f.tool(t).Content[0].Text; asked != maxAsks || !strings.Contains(got, "was asked 50 times") {
			t.Errorf("asked %d times, then: %s", asked, got)
		}
	})
	t.Run("in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, asking(t))
			defer p.in.Close()
			p.introduce(`{"roots":{}}`)
			p.code(1, "roots/list")
			p.next()
			time.Sleep(elicit.Timeout + time.Second)
			if f := p.next(); f.Method != "notifications/cancelled" {
				t.Errorf("got %+v", f)
			}
			if got := p.next().tool(t).Content[0].Text; !strings.Contains(got, "no answer came within 5m0s") {
				t.Errorf("got %s", got)
			}
		})
	})
}

// TestServersDoNotUseUpConsent: with questions of servers unanswered, and with as many asked as
// there may be, the user is still asked for consent; and what waits for its turn has all of its
// time then.
func TestServersDoNotUseUpConsent(t *testing.T) {
	consent := json.RawMessage(`{"message":"May it?"}`)
	t.Run("turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, running(t, func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
				error) {
				by, params := elicit.ByServer, any(nil)
				if r.Code == "elicitation/create" {
					by, params = elicit.ByPolicy, consent
				}
				raw, err := requestOf(ctx).asker.Ask(ctx, by, r.Code, params)
				return printed(fmt.Sprintf("%s %v", raw, err)), nil
			}))
			defer p.in.Close()
			p.introduce(`{"roots":{},"elicitation":{}}`)
			for i := range maxAsking {
				p.code(i, "roots/list")
				p.next()
			}
			time.Sleep(time.Minute)
			p.code(maxAsking, "roots/list") // waits
			synctest.Wait()
			p.code(maxAsking+1, "elicitation/create")
			q := p.next()
			if q.Method != "elicitation/create" {
				t.Fatalf("got %+v", q)
			}
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, q.ID)
			if got := p.next().tool(t).Content[0].Text; got != "{} <nil>" {
				t.Errorf("got %s", got)
			}
			time.Sleep(elicit.Timeout - time.Minute + time.Second)
			var late frame
			for late.Method != "roots/list" { // among the ends of the others
				late = p.next()
			}
			time.Sleep(elicit.Timeout - 10*time.Second)
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{"late":1}}`, late.ID)
			for {
				if f := p.next(); f.Method == "" && string(f.ID) == fmt.Sprint(maxAsking) {
					if got := f.tool(t).Content[0].Text; got != `{"late":1} <nil>` {
						t.Errorf("the one that waited: %s", got)
					}
					break
				}
			}
		})
	})
	t.Run("number", func(t *testing.T) {
		p := connect(t, running(t, func(ctx context.Context, _ sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			for {
				if _, err := requestOf(ctx).asker.Ask(ctx, elicit.ByServer, "roots/list", nil); err != nil {
					raw, err := requestOf(ctx).asker.Ask(ctx, elicit.ByPolicy, "elicitation/create", consent)
					return printed(fmt.Sprintf("%s %v", raw, err)), nil
				}
			}
		}))
		p.introduce(`{"roots":{},"elicitation":{}}`)
		p.code(1, "x")
		f := p.next()
		for ; f.Method != ""; f = p.next() {
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID)
		}
		if got := f.tool(t).Content[0].Text; got != "{} <nil>" {
			t.Errorf("got %s", got)
		}
	})
}
