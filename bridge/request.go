package bridge

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is as much of a JSON-RPC message as it takes to route it. What a client may get wrong stays raw, so that a mistake
// there doesn't keep the rest from being read.
type message struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		Version   string          `json:"protocolVersion"` // of initialize
		Abilities json.RawMessage `json:"capabilities"`    // of the client, in initialize
		Client    json.RawMessage `json:"clientInfo"`      // in initialize
		RequestID json.RawMessage `json:"requestId"`
		Name      json.RawMessage `json:"name"`         // of a tool
		State     json.RawMessage `json:"requestState"` // of a call that comes again with answers
		Meta      struct {
			Token     json.RawMessage `json:"progressToken"`
			Version   string          `json:"io.modelcontextprotocol/protocolVersion"` // from 2026-07-28 on
			Abilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
			Client    json.RawMessage `json:"io.modelcontextprotocol/clientInfo"`
		} `json:"_meta"`
	} `json:"params"`
}

// firstWithLinks is the first version of the protocol whose results may hold resource links. Clients of older ones refuse a whole
// result for a kind of content that they don't know.
const firstWithLinks = "2025-06-18"

// caller is what a client says of itself: in initialize, or since 2026-07-28 in each request.
type caller struct {
	modern bool // its protocol has no requests of a server
	old    bool // its protocol has no resource links
	gemini bool // it is Gemini CLI
	can    abilities
}

// introduced returns the caller that sends initialize.
func introduced(m message) caller {
	p := m.Params
	return caller{old: p.Version < firstWithLinks, gemini: isGemini(p.Client), can: declared(p.Abilities)}
}

// described returns the caller of a request of 2026-07-28 or later. Of what it can, only elicitation is used: the rest is
// deprecated there.
func described(m message) caller {
	meta := m.Params.Meta
	can := declared(meta.Abilities)
	return caller{modern: true, gemini: isGemini(meta.Client), can: abilities{form: can.form, url: can.url}}
}

func isGemini(clientInfo json.RawMessage) bool {
	var info struct{ Name string }
	return json.Unmarshal(clientInfo, &info) == nil && strings.HasPrefix(info.Name, "gemini-cli")
}

// exchange is one request of the client and how to answer it.
type exchange struct {
	caller
	id     json.RawMessage
	token  json.RawMessage // for progress; nil when the client wants none
	silent bool            // a notification: it gets no answer
	wire   *wire
	cancel context.CancelCauseFunc
	code   int // of an error as which the request is answered; 0 for the one that it has

	client    *asks                // which client it is; our requests to it, where its protocol has those
	questions questioner           // how the client is asked; nil when it can't be
	asked     [askers]atomic.Int32 // how many questions there were in the course of this one

	order    arrival   // among the calls of run_python
	progress *progress // of a run_python that reports; nil for none

	after []func() // what there is to do once it is answered
}

type exchangeKey struct{}

// converses reports whether the call of run_python is one whose client can be asked in its results. What mcp-go refuses isn't.
func (x *exchange) converses(m message) bool {
	meta := m.Params.Meta
	return x.modern && mcp.IsValidProtocolVersion(meta.Version) && json.Unmarshal(meta.Abilities, &mcp.ClientCapabilities{}) == nil &&
		(x.can.form || x.can.url || given(m.Params.State) != nil)
}

// fit returns an answer as the caller can take it. Gemini CLI parses a first text as JSON and refuses the result where that is no
// object: there an empty text comes first.
func (x *exchange) fit(m mcp.JSONRPCMessage) mcp.JSONRPCMessage {
	r, _ := m.(mcp.JSONRPCResponse)
	result, ok := r.Result.(*mcp.CallToolResult)
	if !x.gemini || !ok || len(result.Content) == 0 {
		return m
	}
	text, ok := result.Content[0].(mcp.TextContent)
	if s := strings.TrimSpace(text.Text); !ok || strings.HasPrefix(s, "{") || !json.Valid([]byte(s)) {
		return m
	}
	result.Content = append([]mcp.Content{mcp.NewTextContent("")}, result.Content...)
	return m
}
