package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// A bridgeConn is the user's connection to a bridge that is running.
type bridgeConn struct {
	pid  int
	rpc  *jsonrpc.Conn
	end  context.CancelFunc
	done chan struct{}
}

const consoleMessage = 32 << 20 // bytes of one message

// dialBridges connects to all bridges of the user's that have had a sandbox. printed takes what
// commands print.
func dialBridges(ctx context.Context, state string,
	printed func(m *jsonrpc.Message)) (all []*bridgeConn, err error) {
	dir, name, err := place(state)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		number, is := strings.CutPrefix(e.Name(), name)
		pid, err := strconv.Atoi(strings.TrimSuffix(number, ".sock"))
		if !is || err != nil {
			continue
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, e.Name()))
		if err != nil {
			continue // the bridge has ended, or is about to
		}
		all = append(all, newBridgeConn(ctx, pid, conn, printed))
	}
	return all, nil
}

func newBridgeConn(ctx context.Context, pid int, conn net.Conn,
	printed func(m *jsonrpc.Message)) *bridgeConn {
	ctx, end := context.WithCancel(ctx)
	lines := jsonrpc.NewLines(conn, 0, nil)
	b := &bridgeConn{pid: pid, end: end, done: make(chan struct{})}
	b.rpc = jsonrpc.NewConn(ctx, lines, jsonrpc.Options{
		MaxRequests: 1, Notified: printed,
		Accept: func(*jsonrpc.Request) jsonrpc.Handler {
			return func(context.Context) (any, error) { return nil, jsonrpc.ErrNoAnswer }
		},
		Panicked: func(_ *jsonrpc.Request, value any, _ []byte) error { return fmt.Errorf("%v", value) },
	})
	go func() {
		defer close(b.done)
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
		_ = b.rpc.Serve(jsonrpc.NewReader(conn, consoleMessage), lines, 0) // a call says what went wrong
	}()
	return b
}

// listTime bounds how long a bridge may take to list its sandboxes: it may be stopped.
const listTime = 5 * time.Second

// list returns the sandboxes of the bridge.
func (b *bridgeConn) list(ctx context.Context) (all []bridge.UserSandbox, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	raw, err := b.rpc.Call(ctx, b.rpc.NewID(), bridge.UserList, nil)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	return all, err
}

func (b *bridgeConn) close() {
	b.end()
	<-b.done
}
