//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// askedFor is a result that asks.
func askedFor(requests, state string) string {
	return fmt.Sprintf(`{"resultType":"input_required","inputRequests":%s,"requestState":%s}`, requests, state)
}

// TestQuestionsInResults: what a server asks in a result goes to the client of the call, in the
// order of the names, and the call is made again with the answers and with what the server wants to
// be told.
func TestQuestionsInResults(t *testing.T) {
	p := open(t, nil, fake("modern"))
	var mu sync.Mutex
	var heard []string
	client := &person{can: Abilities{Elicitation: true, Roots: true},
		answer: func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprintf("%s %s %s %s", ctx.Value(nameKey{}), server, method, params))
			return json.RawMessage(fmt.Sprintf(`{"n":%d}`, len(heard))), nil
		}}
	const can = `"can":{"roots":{},"elicitation":{"form":{}}}`
	form := `{"method":"elicitation/create","params":{"n":9007199254740993}}`
	for _, tt := range []struct {
		name   string
		rounds []string
		heard  []string
		want   string
	}{
		{"nothing", nil, nil, `{"resultType":"complete","answers":null,"state":null,` + can + `}`},
		{"a form, and a state", []string{askedFor(`{"f":`+form+`}`, `"a\u0000\ud800<&>"`)},
			[]string{`mine fake elicitation/create {"n":9007199254740993}`},
			`{"resultType":"complete","answers":{"f":{"n":1}},"state":"a\u0000\ud800\u003c\u0026\u003e",` + can + `}`},
		{"several at once", []string{askedFor(`{"b":{"method":"roots/list"},"a":`+form+`}`, "null")},
			[]string{`mine fake elicitation/create {"n":9007199254740993}`, `mine fake roots/list null`},
			`{"resultType":"complete","answers":{"a":{"n":1},"b":{"n":2}},"state":null,` + can + `}`},
		{"one after the other", []string{askedFor(`{"a":`+form+`}`, `"1"`),
			askedFor(`{"b":{"method":"roots/list"}}`, "null")},
			[]string{`mine fake elicitation/create {"n":9007199254740993}`, `mine fake roots/list null`},
			`{"resultType":"complete","answers":{"b":{"n":2}},"state":null,` + can + `}`},
		{"put off", []string{askedFor("null", `"later"`), askedFor("{}", `"later still"`)}, nil,
			`{"resultType":"complete","answers":null,"state":"later still",` + can + `}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heard = nil
			ctx := WithClient(context.WithValue(t.Context(), nameKey{}, "mine"), client)
			raw, err := p.Call(ctx, "fake", "input", json.RawMessage(`{"rounds":[`+strings.Join(tt.rounds, ",")+`]}`))
			if err != nil || string(raw) != tt.want {
				t.Errorf("the call ended with\n%s, %v, want\n%s", raw, err, tt.want)
			}
			if !slices.Equal(heard, tt.heard) {
				t.Errorf("the client heard %q, want %q", heard, tt.heard)
			}
		})
	}
}

// TestQuestionsInResultsRefused: the call fails with the reason, in words that are not taken for
// the server's own.
func TestQuestionsInResultsRefused(t *testing.T) {
	p := open(t, nil, fake("modern"))
	for _, tt := range []struct {
		name   string
		client Client
		want   string
	}{
		{"a refusal", says("", &RPCError{Code: -32601, Message: "it has not declared roots"}),
			"to go on it asks for roots/list, which is refused: it has not declared roots"},
		{"an error", says("", errors.New("broken")), "to go on it asks for roots/list, which is refused: broken"},
		{"no answer", says("", nil),
			"to go on it asks for roots/list, which is refused: the client's answer is no JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			if tt.client != nil {
				ctx = WithClient(ctx, tt.client)
			}
			_, err := p.Call(ctx, "fake", "demand always", nil)
			var refusal *RPCError
			if e := serverError(t, err); e.Err.Error() != tt.want || errors.As(err, &refusal) {
				t.Errorf("got %q, want %q", e.Err, tt.want)
			}
		})
	}
	t.Run("a session that only says so", func(t *testing.T) { // of the older protocol, where it means nothing
		p := open(t, nil, fake("normal"))
		if got := call(t, p, "input", `{"rounds":[`+askedFor("null", `"s"`)+`]}`); got != askedFor("null", `"s"`) {
			t.Errorf("got %s", got)
		}
	})
}

// TestQuestionInAResultEnds with its call, and with the session.
func TestQuestionInAResultEnds(t *testing.T) {
	begun := make(chan struct{})
	slow := &person{answer: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	p := open(t, nil, fake("modern"))
	result := make(chan error, 1)
	ask := func(ctx context.Context) {
		_, err := p.Call(WithClient(ctx, slow), "fake", "demand always", nil)
		result <- err
	}
	ctx, cancel := context.WithCancel(t.Context())
	go ask(ctx)
	<-begun
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	go ask(t.Context())
	<-begun
	_, _ = p.Call(t.Context(), "fake", "die", nil)
	if err := <-result; err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

// modernOnly refuses the older handshake, as a server does that knows only the newer protocol.
func modernOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") != mcp.LATEST_PROTOCOL_VERSION {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported protocol version"}}`)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestRealServerAsksInResults: one made with mcp-go, over the newer protocol and HTTP, for a tool
// and a prompt.
func TestRealServerAsksInResults(t *testing.T) {
	s := mcpserver.NewMCPServer("real", "1", mcpserver.WithToolCapabilities(true),
		mcpserver.WithPromptCapabilities(true))
	ask := func() *mcpserver.InputRequestBuilder {
		return mcpserver.NewInputRequestBuilder("state-1").Elicit("name",
			mcp.ElicitationParams{Message: "Your name?", RequestedSchema: map[string]any{"type": "object"}})
	}
	answer := func(p mcp.MultiRoundTripParams) string {
		a := mcpserver.ElicitationResponse(p.InputResponses, "name")
		return fmt.Sprintf("%s %v %s", a.Action, a.Content, p.RequestState)
	}
	s.AddTool(mcp.NewTool("greet"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.InputResponses == nil {
			return ask().ToolResult(), nil
		}
		return mcp.NewToolResultText(answer(r.Params.MultiRoundTripParams)), nil
	})
	s.AddPrompt(mcp.NewPrompt("greet"), func(_ context.Context,
		r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if r.Params.InputResponses == nil {
			return ask().PromptResult(), nil
		}
		return mcp.NewGetPromptResult(answer(r.Params.MultiRoundTripParams), nil), nil
	})
	srv, _ := web(t, discovery.HTTP, "/mcp", modernOnly(mcpserver.NewStreamableHTTPServer(s)))
	p := open(t, nil, srv)
	ctx := WithClient(t.Context(), &person{can: Abilities{Elicitation: true},
		answer: func(_ context.Context, _, _ string, params json.RawMessage) (json.RawMessage, error) {
			if !strings.Contains(string(params), "Your name?") {
				return nil, fmt.Errorf("asked %s", params)
			}
			return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
		}})
	const want = "accept map[name:Ada] state-1"
	if raw, err := p.Call(ctx, "fake", "greet", nil); err != nil || !strings.Contains(string(raw), want) {
		t.Errorf("the tool: %s, %v", raw, err)
	}
	if raw, err := p.GetPrompt(ctx, "fake", "greet", nil); err != nil || !strings.Contains(string(raw), want) {
		t.Errorf("the prompt: %s, %v", raw, err)
	}
}
