package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A Login logs the user in to a server at a page, which agree shows in the client, and keeps the
// tokens. The scope is one that the server has asked for, or empty. about names the parties in
// words. Login returns soon after ctx ends, and when agree fails.
type Login func(ctx context.Context, s discovery.Server, scope string,
	agree func(ctx context.Context, page, about string) error) error

// logins are the logins of one run. They end with the run's context, not with that of the call
// which came first.
type logins struct {
	run  context.Context
	work sync.WaitGroup // one per login under way

	mu  sync.Mutex
	all map[string]*login // by server and scope
}

// login is one login, which several calls may wait for.
type login struct {
	done chan struct{}
	err  error // read after done
}

// start begins a login with logIn unless there was one of that key in this run.
func (l *logins) start(key string, logIn func(ctx context.Context) error) *login {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.all[key]; old != nil {
		return old
	}
	n := &login{done: make(chan struct{})}
	l.all[key] = n
	l.work.Go(func() {
		defer close(n.done)
		n.err = logIn(l.run)
	})
	return n
}

// withLogin calls do, and again after a login if the server wants one and the client can show a
// page. The user is asked once in a run for each scope of a server.
func withLogin[T any](ctx context.Context, h *host, s catalog.Server, do func() (T, error)) (T, error) {
	result, err := do()
	var wants *upstream.LoginError
	if h.login == nil || !errors.As(err, &wants) || !h.asker.OpensPages() {
		return result, err
	}
	resume := h.clock.Stop() // also while the user is at the page
	defer resume()
	l := h.logins.start(s.Name+" "+wants.Scope, func(ctx context.Context) error {
		return h.logIn(ctx, s, wants.Scope)
	})
	select {
	case <-ctx.Done():
		return result, context.Cause(ctx)
	case <-l.done:
	}
	if l.err != nil {
		return result, err // it names the command
	}
	resume()
	return do()
}

// logIn has the user log in. A panic is an error: this isn't a goroutine of a call.
func (h *host) logIn(ctx context.Context, s catalog.Server, scope string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the login has panicked: %v", r)
			h.auditor.log.Error("a login has panicked", "server", s.Name, "err", err, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, elicit.Timeout)
	defer cancel()
	agree := func(ctx context.Context, page, about string) error {
		return h.asker.OpenPage(ctx, page, fmt.Sprintf("The MCP server %q wants you to log in. %s", s.Name, about))
	}
	err = h.login(ctx, h.catalog.Definitions()[s.Name], scope, agree)
	if err != nil {
		h.auditor.log.Info("not logged in", "server", s.Name, "err", err)
	}
	return err
}
