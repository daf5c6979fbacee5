package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// console is the socket over which the user works on the sandboxes of a bridge that is running. It
// is there from the first sandbox on, for this user alone.
type console struct {
	once   sync.Once
	cancel context.CancelFunc // nil before there is a socket
	work   sync.WaitGroup
}

// open makes the socket, once. What keeps it from being made is logged: the bridge works without.
func (c *console) open(p *parts) {
	c.once.Do(func() {
		path, err := consolePath(os.Getpid())
		if err == nil {
			err = c.listen(p, path)
		}
		if err != nil {
			p.log.Warn("mcp-bridge sandbox can't reach this bridge", "err", err)
		}
	})
}

func (c *console) listen(p *parts, path string) error {
	if conn, err := net.Dial("unix", path); err == nil {
		return errors.Join(fmt.Errorf("another process listens to %s", path), conn.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a dead bridge with our PID
		return err
	}
	forget := p.guard.File(path)
	l, err := net.Listen("unix", path) // in a directory of the user's alone
	if err != nil {
		forget()
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		forget()
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.work.Go(func() {
		p.bridge.ServeUser(ctx, l)
		l.Close() // which removes the file
		forget()
	})
	return nil
}

// close ends the socket and what is done over it.
func (c *console) close() {
	c.once.Do(func() {}) // none is made any more
	if c.cancel != nil {
		c.cancel()
		c.work.Wait()
	}
}

// consolePlace returns the directory of sockets, and what the names of ours begin with. The name of
// a directory for state is in it, so that bridges of other settings have others.
func consolePlace() (dir, name string, err error) {
	state := stateDir()
	sum := sha256.Sum256([]byte(state))
	name = fmt.Sprintf("mcp-bridge.sandboxes.%x.", sum[:4])
	if dir = os.Getenv("XDG_RUNTIME_DIR"); dir != "" && trust.System().OwnDirectory(dir) == nil {
		return dir, name, nil
	}
	if state == "" {
		return "", "", errors.New("there is no place for its socket; set XDG_RUNTIME_DIR or HOME")
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", "", err
	}
	return state, name, trust.System().OwnDirectory(state)
}

func consolePath(pid int) (string, error) {
	dir, name, err := consolePlace()
	return filepath.Join(dir, name+strconv.Itoa(pid)+".sock"), err
}

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
func dialBridges(ctx context.Context, printed func(m *jsonrpc.Message)) (all []*bridgeConn, err error) {
	dir, name, err := consolePlace()
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
