package client

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	// firstWithLinks is the first version with resource links. Clients of older ones refuse a whole
	// result for a kind of content that they don't know.
	firstWithLinks = "2025-06-18"

	// onlyWithBatches is the version in which a server must take several messages in one.
	onlyWithBatches = "2025-03-26"
)

// params are the parameters that are read here. What a client may get wrong stays raw, so that a
// mistake there doesn't keep the rest from being read.
type params struct {
	Version      string          `json:"protocolVersion"` // of initialize
	Capabilities json.RawMessage `json:"capabilities"`    // of the client, in initialize
	Client       json.RawMessage `json:"clientInfo"`      // in initialize
	Name         json.RawMessage `json:"name"`            // of a tool
	Cursor       json.RawMessage `json:"cursor"`          // of a list
	URI          json.RawMessage `json:"uri"`             // of a resource
	Meta         struct {
		Token        json.RawMessage `json:"progressToken"`
		Version      json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"` // from 2026-07-28 on
		Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		Client       json.RawMessage `json:"io.modelcontextprotocol/clientInfo"`
	} `json:"_meta"`
}

// version returns the protocol version that a request names, as those of 2026-07-28 and later do.
func (p *params) version() string {
	v, _ := text.FromJSON(p.Meta.Version)
	return v
}

// Caller is what a client says of itself: in initialize, or since 2026-07-28 in each request.
type Caller struct {
	Capabilities json.RawMessage
	Name         string // its first maxName bytes, on one line; empty where it gives none
	Modern       bool   // its protocol is 2026-07-28 or later, and has no requests of a server
	NoLinks      bool   // its protocol has no resource links

	batches bool // its protocol has batches
}

// maxName bounds a client's name, which each line of the audit has.
const maxName = 64

// nameOf returns the name in what a client says of itself, or nothing.
func nameOf(clientInfo json.RawMessage) string {
	var info struct{ Name string }
	if json.Unmarshal(clientInfo, &info) != nil {
		return ""
	}
	return text.First(text.Line(info.Name), maxName)
}

// Request is one request of a client. Its methods are called by its handler, on one goroutine,
// unless they say otherwise. Those of a nil *Request do what there is to do without a client.
type Request struct {
	Caller
	params   params
	rpc      *jsonrpc.Request
	conn     *Conn
	out      Writer    // of what belongs to the request beside its answer
	missing  bool      // what it asks for is a resource that isn't there
	progress *Progress // nil for none

	// Of a detached request.
	detached bool
	ctx      context.Context
	cancel   context.CancelCauseFunc
	after    []func()
}

// Calls reports whether the request is a call of a tool.
func (r *Request) Calls(tool string) bool {
	name, _ := text.FromJSON(r.params.Name)
	return r.rpc.Method == string(mcp.MethodToolsCall) && name == tool
}

// Principal returns to whom what the request makes belongs.
func (r *Request) Principal() string {
	if r == nil {
		return Local
	}
	return r.conn.Principal
}

// Session returns what the log names the request's client by, or nothing.
func (r *Request) Session() string {
	if r == nil {
		return ""
	}
	return r.conn.Session
}

// LogName returns what the log names the request by, or nothing. What carries its answer says so by
// a method of that name.
func (r *Request) LogName() string {
	if r == nil {
		return ""
	}
	named, _ := r.rpc.Carrier().(interface{ LogName() string })
	if named == nil {
		return ""
	}
	return named.LogName()
}

// Text returns the whole message.
func (r *Request) Text() []byte { return r.rpc.Raw }

// Turn returns the request's place among the calls of Config.Ordered.
func (r *Request) Turn() jsonrpc.Turn {
	if r == nil {
		return jsonrpc.Turn{}
	}
	return r.rpc.Turn
}

// Afterwards calls do once the request is answered, or is over without an answer; of a detached
// one, once what the answer is has been told.
func (r *Request) Afterwards(do func()) {
	switch {
	case r == nil:
		do()
	case r.detached:
		r.after = append(r.after, do)
	default:
		r.rpc.Afterwards(do)
	}
}

// NotFound makes the answer one for a resource that isn't there: mcp-go calls every
// error of a handler an internal one.
func (r *Request) NotFound() {
	if r != nil {
		r.missing = true
	}
}

// HasMeta reports whether a request of 2026-07-28 has the _meta that it must have. mcp-go refuses
// others.
func (r *Request) HasMeta() bool {
	return r.Modern && mcp.IsValidProtocolVersion(r.params.version()) && text.Given(r.Capabilities) != nil &&
		json.Unmarshal(r.Capabilities, &mcp.ClientCapabilities{}) == nil
}

// answer handles the request.
func (r *Request) answer(ctx context.Context) (any, error) {
	var m mcp.JSONRPCMessage
	method := r.rpc.Method
	listens := method == string(mcp.MethodSubscriptionsListen)
	switch {
	case (listens || method == string(mcp.MethodServerDiscover)) && r.params.version() == "":
		m = Refuse(mcp.INVALID_PARAMS, "params._meta must hold "+mcp.MetaKeyProtocolVersion+", a string")
	case listens && r.HasMeta():
		return r.listen(ctx)
	default:
		m = r.conn.handle(ctx, r)
	}
	switch m := m.(type) {
	case mcp.JSONRPCResponse:
		return r.fitted(m.Result), nil
	case mcp.JSONRPCError:
		e := &jsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message}
		if m.Error.Data != nil {
			e.Data, _ = json.Marshal(m.Error.Data)
		}
		return nil, e
	}
	return nil, jsonrpc.ErrNoAnswer
}

// Refuse returns an error as the answer to a request.
func Refuse(code int, message string) mcp.JSONRPCMessage {
	return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, Error: mcp.NewJSONRPCErrorDetails(code, message, nil)}
}

// wrongType finds the type of a value and its place in mcp-go's error for parameters that it can't
// read.
var wrongType = regexp.MustCompile(
	`^unparsable \S+ request: json: cannot unmarshal (\w+).* into Go struct field \S*?\b(params\S*) of type`)

// Dispatch lets mcp-go answer the request. Where its error describes its own internals, the answer
// says what is wrong with the request.
func (r *Request) Dispatch(ctx context.Context) mcp.JSONRPCMessage {
	cfg := r.conn.clients.cfg
	answer := cfg.Server.HandleMessage(ctx, r.rpc.Raw)
	e, ok := answer.(mcp.JSONRPCError)
	said := e.Error.Message
	switch {
	case !ok:
		return answer
	case r.missing || strings.HasSuffix(said, server.ErrResourceNotFound.Error()):
		if r.missing {
			e.Error.Code = mcp.RESOURCE_NOT_FOUND
			if r.Modern {
				e.Error.Code = mcp.INVALID_PARAMS
			}
		}
		if uri, ok := text.FromJSON(r.params.URI); ok {
			e.Error.Data = map[string]string{"uri": uri}
		}
	case strings.HasPrefix(said, "unparsable "):
		e.Error.Message = "params can't be read"
		if m := wrongType.FindStringSubmatch(said); m != nil {
			e.Error.Message = fmt.Sprintf("%s must not be a JSON %s", m[2], m[1])
		}
	case e.Error.Code != mcp.INVALID_PARAMS:
	case r.rpc.Method == string(mcp.MethodToolsCall) && strings.HasSuffix(said, server.ErrToolNotFound.Error()):
		name, _ := text.FromJSON(r.params.Name)
		e.Error.Message = fmt.Sprintf("there is no tool %.60q; there are %s", name, cfg.Tools)
	case text.Given(r.params.Cursor) != nil && strings.HasSuffix(r.rpc.Method, "/list"):
		e.Error.Message = "the cursor was not issued by this server: leave it out to start with the first page"
	}
	return e
}

// fitted returns a result as the caller can take it. Gemini CLI parses a first text as JSON and
// refuses the result where that is no object: there an empty text comes first.
func (r *Request) fitted(result any) any {
	tool, ok := result.(*mcp.CallToolResult)
	if !strings.HasPrefix(r.Name, "gemini-cli") || !ok || len(tool.Content) == 0 {
		return result
	}
	first, ok := tool.Content[0].(mcp.TextContent)
	if s := strings.TrimSpace(first.Text); !ok || strings.HasPrefix(s, "{") || !json.Valid([]byte(s)) {
		return result
	}
	tool.Content = append([]mcp.Content{mcp.NewTextContent("")}, tool.Content...)
	return tool
}

// Detach returns a request like r that goes on when r has been answered. Another one is answered
// with its result: see Adopt.
func (r *Request) Detach() *Request {
	d := *r
	d.detached = true
	d.ctx, d.cancel = context.WithCancelCause(r.conn.rpc.Context())
	return &d
}

// Go handles a detached request on a goroutine that ends soon after Cancel or with the client, and
// tells what the answer is. It doesn't block.
func (r *Request) Go(handle Handler, finished func(mcp.JSONRPCMessage)) {
	r.conn.runs.Go(func() {
		defer r.cancel(nil)
		finished(r.recovered(handle))
		for _, do := range r.after {
			do()
		}
	})
}

func (r *Request) recovered(handle Handler) (answer mcp.JSONRPCMessage) {
	defer func() {
		if value := recover(); value != nil {
			stack := debug.Stack()
			r.Afterwards(func() { r.conn.logPanic(value, stack) })
			answer = Refuse(jsonrpc.CodeInternal, failure(value))
		}
	}()
	return handle(r.ctx, r)
}

// Cancel ends the handler of a detached request.
func (r *Request) Cancel(why error) { r.cancel(why) }
