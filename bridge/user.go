package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxtools"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// The methods by which the bridge's own user works on sandboxes from another process.
const (
	UserList    = "sandboxes"      // returns all, as a list of UserSandbox
	UserCall    = "sandboxes/call" // takes a UserTool, returns a CallToolResult
	UserPrinted = "sandboxes/out"  // tells of output meanwhile: a sandbox.Chunk
)

// UserTool is a call of one of the tools of sandboxes, or of run_python.
type UserTool struct {
	Tool      string          `json:"tool"`
	Sandbox   string          `json:"sandbox"`
	Arguments json.RawMessage `json:"arguments"`
}

// UserSandbox is a sandbox as the bridge's own user sees it.
type UserSandbox struct {
	ID       string            `json:"id"`
	Name     string            `json:"name,omitempty"`
	Status   string            `json:"status"`         // as sandbox_info has it
	Busy     bool              `json:"busy,omitempty"` // a call is under way
	Size     int64             `json:"size,omitempty"` // bytes of the file of one that was saved
	Template string            `json:"template"`
	Calls    int               `json:"calls"`
	Created  time.Time         `json:"created"`
	Used     time.Time         `json:"used"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

const (
	userClient   = "mcp-bridge sandbox" // in the record
	userMessage  = 32 << 20             // bytes of one message: a file in base64
	userRequests = 8
	userGrace    = time.Second
	userRetry    = 100 * time.Millisecond // after a connection could not be accepted
	userStall    = 10 * time.Second       // that what is printed may stay unread
)

// ServeUser answers the bridge's own user over the connections of l, which is closed when ctx has
// ended. Who can connect may use all sandboxes. It returns when all calls have ended.
func (b *Bridge) ServeUser(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for failed := false; ; {
		conn, err := l.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if conn != nil {
				conn.Close()
			}
			return
		}
		if err != nil { // such as that no descriptor is left
			if !failed {
				b.cfg.Log.Warn("mcp-bridge sandbox can't connect", "err", err)
			}
			failed = true
			select {
			case <-time.After(userRetry):
			case <-ctx.Done():
			}
			continue
		}
		failed = false
		conns.Go(func() {
			defer conn.Close()
			hangUp := context.AfterFunc(ctx, func() { conn.Close() })
			defer hangUp()
			b.serveUser(ctx, conn)
		})
	}
}

func (b *Bridge) serveUser(ctx context.Context, conn net.Conn) {
	// A terminal that is stopped must not stop the command, which a call of the model may wait for.
	lines := jsonrpc.NewLines(conn, userStall, func() { conn.Close() })
	u := userConn{bridge: b}
	u.rpc = jsonrpc.NewConn(ctx, lines, jsonrpc.Options{
		MaxRequests: userRequests,
		Accept: func(r *jsonrpc.Request) jsonrpc.Handler {
			return func(ctx context.Context) (any, error) { return u.answer(ctx, r) }
		},
		Panicked: func(_ *jsonrpc.Request, value any, stack []byte) error {
			b.cfg.Log.Error("a request of the user has panicked", "panic", fmt.Sprint(value), "stack", string(stack))
			return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("the bridge has failed: %v", value)}
		},
	})
	_ = u.rpc.Serve(jsonrpc.NewReader(conn, userMessage), lines, userGrace) // the other side is gone
}

// userConn is a connection of the bridge's own user.
type userConn struct {
	bridge *Bridge
	rpc    *jsonrpc.Conn
}

// answer answers one request.
func (u *userConn) answer(ctx context.Context, r *jsonrpc.Request) (any, error) {
	b := u.bridge
	switch r.Method {
	case UserList:
		return userSandboxes(b.cfg.Sandboxes.All()), nil
	case UserCall:
		var t UserTool
		err := json.Unmarshal(r.Params, &t)
		if err != nil || t.Tool != runPythonName && !slices.Contains(sandboxtools.Names(), t.Tool) {
			return nil, &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: "there is no such tool"}
		}
		owner, ok := b.cfg.Sandboxes.Owner(t.Sandbox)
		if !ok {
			return nil, &jsonrpc.Error{Code: mcp.INVALID_PARAMS,
				Message: fmt.Sprintf("there is no sandbox %.20q", t.Sandbox)}
		}
		printed := func(c sandbox.Chunk) { _ = u.rpc.Notify(ctx, UserPrinted, c) }
		if t.Tool == runPythonName {
			return u.run(ctx, t, owner, printed), nil
		}
		res, afterwards := b.inside(ctx, t.Tool, t.Arguments, request{}, userClient, sandboxtools.Caller{
			Owner: owner, Output: b.outputs.store.Of(Local), Wait: func(context.Context) error { return nil },
			Pass: func() {}, Progress: func(string) {}, MostRead: sandbox.MaxReadFile, User: true, Printed: printed,
		})
		r.Afterwards(afterwards)
		return res, nil
	}
	return nil, &jsonrpc.Error{Code: mcp.METHOD_NOT_FOUND, Message: "there is no such method"}
}

// run runs code of the user's in a sandbox, with the longest time that code may have. It can call
// no tools: what the model may do by them isn't the user's to decide here.
func (u *userConn) run(ctx context.Context, t UserTool, owner string,
	printed func(sandbox.Chunk)) *mcp.CallToolResult {
	b := u.bridge
	ctx, c, release := b.pin(ctx)
	defer release()
	r := b.newRun(request{clock: &sandbox.Clock{}}, t.Arguments)
	r.args = arguments{catalog: c, timeout: b.limits.MaxTimeout, most: b.limits.MaxTimeout}
	var given map[string]json.RawMessage
	err := json.Unmarshal(t.Arguments, &given)
	if err == nil {
		r.args.code, err = decodeCode(given["code"])
	}
	if err == nil {
		err = b.unready(ctx)
	}
	if err == nil {
		r.box, err = b.cfg.Sandboxes.Enter(ctx, owner, t.Sandbox, nil)
	}
	if err != nil {
		return mcp.NewToolResultError(text.Hinted(err))
	}
	defer r.box.Leave()
	req := r.sandboxRequest()
	req.Sandboxes, req.Output, req.Progress = true, printed, func(string) {}
	res, _, err := r.inEnvironment(ctx, req)
	var o output.Outcome
	if err != nil {
		o = r.failed(ctx, err)
	} else {
		o = r.outcome(res, directBytes)
	}
	r.auditor.client = userClient
	r.record(ctx, o)
	return o.Result(true)
}

// userSandboxes returns what the user is told of sandboxes.
func userSandboxes(infos []sandboxes.Info) []UserSandbox {
	all := []UserSandbox{}
	for _, i := range infos {
		s := UserSandbox{ID: i.ID, Name: i.Settings.Name, Status: i.Status(), Busy: i.Busy, Size: i.Size,
			Template: "base", Calls: i.Calls, Created: i.Created, Used: i.Used, Metadata: i.Settings.Metadata}
		if i.Environment != nil {
			s.Template = i.Environment.Name
		}
		all = append(all, s)
	}
	return all
}
