package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
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
		Cursor    json.RawMessage `json:"cursor"`       // of a list
		URI       json.RawMessage `json:"uri"`          // of a resource
		Meta      struct {
			Token     json.RawMessage `json:"progressToken"`
			Version   json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"` // from 2026-07-28 on
			Abilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
			Client    json.RawMessage `json:"io.modelcontextprotocol/clientInfo"`
		} `json:"_meta"`
	} `json:"params"`
}

// version returns the protocol version that a request names, as those of 2026-07-28 and later do.
func (m message) version() string {
	v, _ := stringOf(m.Params.Meta.Version)
	return v
}

// firstWithLinks is the first version of the protocol whose results may hold resource links. Clients of older ones refuse a whole
// result for a kind of content that they don't know.
const firstWithLinks = "2025-06-18"

// onlyWithBatches is the version of the protocol in which a server must take several messages in one.
const onlyWithBatches = "2025-03-26"

// caller is what a client says of itself: in initialize, or since 2026-07-28 in each request.
type caller struct {
	modern  bool // its protocol has no requests of a server
	old     bool // its protocol has no resource links
	batches bool // its protocol has batches
	gemini  bool // it is Gemini CLI
	can     abilities
}

// introduced returns the caller that sends initialize.
func introduced(m message) caller {
	p := m.Params
	return caller{old: p.Version < firstWithLinks, batches: p.Version == onlyWithBatches, gemini: isGemini(p.Client), can: declared(p.Abilities)}
}

// described returns the caller of a request of 2026-07-28 or later. Only elicitation is used of its
// capabilities: the others are deprecated.
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
	batch  *batch // that it came in and is answered in; nil for none
	cancel context.CancelCauseFunc
	code   int // of the error for a resource that isn't there; 0 where mcp-go's is right

	client    *asks                // which client it is; our requests to it, where its protocol has those
	questions questioner           // how the client is asked; nil when it can't be
	asked     [askers]atomic.Int32 // how many questions there were in the course of this one

	order    arrival   // among the calls of run_python
	progress *progress // of a run_python that reports; nil for none

	after []func() // what there is to do once it is answered
}

type exchangeKey struct{}

// within returns the context of the request's handler, which x.cancel ends.
func (x *exchange) within(ctx context.Context) context.Context {
	ctx, x.cancel = context.WithCancelCause(context.WithValue(ctx, exchangeKey{}, x))
	return ctx
}

// reply sends the request's answer. That it can't be sent is seen by Serve.
func (x *exchange) reply(m mcp.JSONRPCMessage) {
	m = withID(x.fit(m), x.id)
	if x.batch != nil {
		x.batch.add(m)
		return
	}
	_ = x.wire.send(nil, m)
}

// sound reports whether the request has the _meta that 2026-07-28 requires. mcp-go refuses others.
func (x *exchange) sound(m message) bool {
	can := given(m.Params.Meta.Abilities)
	return x.modern && mcp.IsValidProtocolVersion(m.version()) && can != nil && json.Unmarshal(can, &mcp.ClientCapabilities{}) == nil
}

// handler returns what handles a message that c doesn't handle by itself.
func (c *conn) handler(base context.Context, x *exchange, m message, text []byte) func(context.Context) mcp.JSONRPCMessage {
	switch {
	case (m.Method == string(mcp.MethodServerDiscover) || m.Method == string(mcp.MethodSubscriptionsListen)) && m.version() == "":
		return func(context.Context) mcp.JSONRPCMessage {
			return rpcError(mcp.INVALID_PARAMS, "params._meta must hold "+mcp.MetaKeyProtocolVersion+", a string")
		}
	case m.Method == string(mcp.MethodSubscriptionsListen) && x.sound(m):
		return func(ctx context.Context) mcp.JSONRPCMessage { return c.listen(ctx, x, text) }
	case x.calls(m, runPythonName) && x.sound(m) && (x.can.form || x.can.url || given(m.Params.State) != nil):
		return func(ctx context.Context) mcp.JSONRPCMessage { return c.converse(base, ctx, x, m, text) }
	}
	return func(ctx context.Context) mcp.JSONRPCMessage { return x.plainer(c.server.HandleMessage(ctx, text), m) }
}

// calls reports whether the request is a call of a tool.
func (x *exchange) calls(m message, tool string) bool {
	name, _ := stringOf(m.Params.Name)
	return m.Method == string(mcp.MethodToolsCall) && name == tool
}

// plainer returns an answer whose error says what was wrong with the request, where mcp-go's error
// describes its own internals.
func (x *exchange) plainer(answer mcp.JSONRPCMessage, m message) mcp.JSONRPCMessage {
	e, ok := answer.(mcp.JSONRPCError)
	switch {
	case !ok:
		return answer
	case x.code != 0 || strings.HasSuffix(e.Error.Message, server.ErrResourceNotFound.Error()):
		if x.code != 0 {
			e.Error.Code = x.code
		}
		if uri, ok := stringOf(m.Params.URI); ok {
			e.Error.Data = map[string]string{"uri": uri}
		}
	case e.Error.Code != mcp.INVALID_PARAMS:
	case m.Method == string(mcp.MethodToolsCall) && strings.HasSuffix(e.Error.Message, server.ErrToolNotFound.Error()):
		name, _ := stringOf(m.Params.Name)
		e.Error.Message = fmt.Sprintf("there is no tool %.60q; there are %s, %s and %s", name, runPythonName, searchToolsName, output.ReadTool)
	case given(m.Params.Cursor) != nil && strings.HasSuffix(m.Method, "/list"):
		e.Error.Message = "the cursor was not issued by this server: leave it out to start with the first page"
	}
	return e
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
