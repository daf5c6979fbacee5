//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// person is a client that answers by a function.
type person struct {
	can    Abilities
	answer func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
}

func (p *person) Abilities() Abilities { return p.can }

func (p *person) Answer(ctx context.Context, server, method string,
	params json.RawMessage) (json.RawMessage, error) {
	return p.answer(ctx, server, method, params)
}

// says returns a client that always answers so.
func says(result string, err error) *person {
	return &person{answer: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(result), err
	}}
}

type nameKey struct{}

// written is what was written to a log.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// questioned calls the fake's tool "question" for c and returns what the server was answered.
func questioned(ctx context.Context, p *Pool, c Client, args string) ([]string, error) {
	if c != nil {
		ctx = WithClient(ctx, c)
	}
	raw, err := p.Call(ctx, "fake", "question", json.RawMessage(args))
	if err != nil {
		return nil, err
	}
	var got []string
	return got, json.Unmarshal(raw, &got)
}

func TestQuestions(t *testing.T) {
	p := open(t, nil, fake("normal"))
	echo := &person{answer: func(ctx context.Context, server, method string,
		params json.RawMessage) (json.RawMessage, error) {
		return fmt.Appendf(nil, `[%q,%q,%q,%s]`, ctx.Value(nameKey{}), server, method, params), nil
	}}
	const form = `{"method":"elicitation/create","params":{"n":9007199254740993}}`
	for _, tt := range []struct {
		name   string
		client Client
		args   string
		want   string
	}{
		{"in the course of its call", echo, form, `["mine","fake","elicitation/create",{"n":9007199254740993}]`},
		{"no parameters", echo, `{"method":"roots/list"}`, `["mine","fake","roots/list",null]`},
		{"a model", echo, `{"method":"sampling/createMessage","params":{}}`,
			`{"code":-32601,"message":"the client doesn't support sampling/createMessage"}`},
		{"a refusal", says("", &RPCError{Code: -1, Message: "no"}), form, `{"code":-1,"message":"no"}`},
		{"an error", says("", errors.New("broken")), form, `{"code":-32603,"message":"broken"}`},
		{"no JSON", says("{", nil), form, `{"code":-32603,"message":"the client's answer is no JSON"}`},
		{"very long", echo, `{"method":"elicitation/create","params":{"m":"` + strings.Repeat("x", MaxQuestion) +
			`"}}`, `{"code":-32602,"message":"the request is longer than 1048576 bytes"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := questioned(context.WithValue(t.Context(), nameKey{}, "mine"), p, tt.client, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a panic is the error of its own request", func(t *testing.T) {
		var log written
		p := open(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }, fake("normal"))
		got, err := questioned(t.Context(), p, &person{answer: func(context.Context, string, string,
			json.RawMessage) (json.RawMessage, error) {
			panic("oh")
		}}, form)
		if want := []string{`{"code":-32603,"message":"the bridge has failed on this request"}`}; err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("got %s, %v", got, err)
		}
		if text := log.String(); !strings.Contains(text, "panic=oh") ||
			!strings.Contains(text, "questions_test.go") {
			t.Errorf("the log: %s", text)
		}
	})
}

func TestAbilitiesAreThoseOfTheFirstClient(t *testing.T) {
	for _, tt := range []struct {
		can  Abilities
		want string
	}{
		{Abilities{}, `{}`},
		{Abilities{Elicitation: true}, `{"elicitation":{"form":{}}}`},
		{Abilities{Elicitation: true, ElicitationURL: true, Roots: true},
			`{"roots":{},"elicitation":{"form":{},"url":{}}}`},
	} {
		p := open(t, nil, fake("normal"))
		raw, err := p.Call(WithClient(t.Context(), &person{can: tt.can}), "fake", "abilities", nil)
		if err != nil || string(raw) != tt.want {
			t.Errorf("%+v: the server is told %s, %v, want %s", tt.can, raw, err, tt.want)
		}
		if again := call(t, p, "abilities", ""); again != tt.want {
			t.Errorf("then it is told %s", again)
		}
	}
}

// TestQuestionReachesOneClient: with calls for two under way, or for one and for none, no client is
// asked.
func TestQuestionReachesOneClient(t *testing.T) {
	asked, another := says(`{}`, nil), WithClient(t.Context(), &person{})
	for name, other := range map[string]context.Context{"another": another, "none": t.Context()} {
		t.Run(name, func(t *testing.T) {
			p := open(t, nil, fake("normal"))
			ctx, cancel := context.WithCancel(other)
			done := begin(ctx, p, "fake", "never", nil)
			until(t, p, func(s seen) bool { return len(s.Waiting) > 0 })
			got, err := questioned(t.Context(), p, asked, `{"method":"roots/list"}`)
			if err != nil || !strings.Contains(got[0], "calls for several clients are under way") {
				t.Errorf("got %s, %v", got, err)
			}
			cancel()
			<-done
			if got, err = questioned(t.Context(), p, asked, `{"method":"roots/list"}`); err != nil || got[0] != `{}` {
				t.Errorf("with one client left: got %s, %v", got, err)
			}
		})
	}
}

// TestQuestionEnds with its call, and when the server takes it back.
func TestQuestionEnds(t *testing.T) {
	p := open(t, nil, fake("normal"))
	begun, ended := make(chan struct{}), make(chan struct{})
	slow := &person{answer: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := questioned(ctx, p, slow, `{"method":"roots/list"}`)
		result <- err
	}()
	<-begun
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended // only now is the server answered
	go func() {
		got, err := questioned(t.Context(), p, slow, `{"method":"roots/list","id":"w","withdraw":true}`)
		if err == nil && len(got) != 0 {
			err = fmt.Errorf("the server was answered %s", got)
		}
		result <- err
	}()
	<-begun
	<-ended
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// TestQuestionsAreBounded: beyond the limit they are refused, and the others are answered all the
// same.
func TestQuestionsAreBounded(t *testing.T) {
	p := open(t, nil, fake("normal"))
	begun, release := make(chan struct{}, 100), make(chan struct{})
	go func() {
		for range maxQuestions {
			<-begun
		}
		close(release)
	}()
	got, err := questioned(t.Context(), p, &person{answer: func(context.Context, string, string,
		json.RawMessage) (json.RawMessage, error) {
		begun <- struct{}{}
		<-release
		return json.RawMessage(`{}`), nil
	}}, fmt.Sprintf(`{"method":"roots/list","times":%d}`, 2*maxQuestions))
	answered, refused := strings.Count(strings.Join(got, ""), "{}"), strings.Count(strings.Join(got, ""),
		"which is the limit")
	// Those that came after the first had been answered found room.
	if err != nil || answered < maxQuestions || answered+refused != 2*maxQuestions {
		t.Errorf("%d were answered, %d refused: %v", answered, refused, err)
	}
}

// ask asks the client and answers with what it said.
func (s *server) ask(r request) {
	var got []string
	for i, method := range []string{"ping", "sampling/createMessage", "roots/list", "elicitation/create",
		"nonsense"} {
		id := strconv.Itoa(i)
		if i%2 == 1 {
			id = `"s` + id + `"`
		}
		c := make(chan request, 1)
		s.mu.Lock()
		s.asked[id] = c
		s.mu.Unlock()
		s.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, id, method)
		a := <-c
		got = append(got, method+": "+string(a.Result)+string(a.Error))
	}
	b, _ := json.Marshal(got)
	s.result(r, string(b))
}

// question sends the client what the arguments say, as often as they say, and answers with what
// came back. Withdraw: it takes the question back at once.
func (s *server) question(r request) {
	var a struct {
		Method, ID string
		Params     json.RawMessage
		Times      int
		Withdraw   bool
	}
	_ = json.Unmarshal(r.Params.Arguments, &a)
	answers := make(chan request, max(1, a.Times))
	for i := range max(1, a.Times) {
		id := fmt.Sprintf("%q", a.ID+strconv.Itoa(i))
		s.mu.Lock()
		s.asked[id] = answers
		s.mu.Unlock()
		s.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, a.Method, orNull(a.Params))
		if a.Withdraw {
			s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		}
	}
	got := []string{}
	for range max(1, a.Times) {
		if a.Withdraw { // what is taken back is not answered: the pong comes alone
			s.send(`{"jsonrpc":"2.0","id":"w0","method":"ping"}`)
			if pong := <-answers; string(pong.Result) == "{}" {
				continue
			}
		}
		answer := <-answers
		got = append(got, string(answer.Result)+string(answer.Error))
	}
	b, _ := json.Marshal(got)
	s.result(r, string(b))
}
