package bridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// A Login has the user log in to a server at a page, which agree has the client show, and keeps what that gives. The scope is one that
// the server has asked for; empty for none. about says in words who takes part. It ends soon after ctx, and when agree fails.
type Login func(ctx context.Context, s discovery.Server, scope string, agree func(ctx context.Context, page, about string) error) error

var errNotAgreed = errors.New("the user did not agree to log in")

// withLogin does what a server may refuse for want of a login. Where it does, and the client can show a page, the user is asked to log in,
// once in a run for each scope of a server, and it is done once more.
func withLogin[T any](ctx context.Context, h *host, s entry, do func() (T, error)) (T, error) {
	result, err := do()
	var wants *upstream.LoginError
	if h.login == nil || !errors.As(err, &wants) || !canOpenPages(ctx) {
		return result, err
	}
	try, _ := h.logins.LoadOrStore(s.name+" "+wants.Scope, sync.OnceValue(func() error { return h.logIn(ctx, s, wants.Scope) }))
	if try.(func() error)() != nil {
		return result, err // it names the command
	}
	return do()
}

func (h *host) logIn(ctx context.Context, s entry, scope string) error {
	defer sandbox.OffClock(ctx)() // also while the user is at the page
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := h.login(ctx, h.catalog.definitions[s.name], scope, func(ctx context.Context, page, about string) error {
		raw, err := askClient(ctx, policyAsks, string(mcp.MethodElicitationCreate), map[string]any{
			"mode": mcp.ElicitationModeURL, "url": page, "elicitationId": rand.Text(),
			"message": fmt.Sprintf("The MCP server %q wants you to log in. %s", s.name, about),
		})
		var r struct {
			Action string `json:"action"`
		}
		if err == nil && (json.Unmarshal(raw, &r) != nil || r.Action != "accept") {
			err = errNotAgreed
		}
		return err
	})
	if err != nil {
		h.log.Info("not logged in", "server", s.name, "err", err)
	}
	return err
}

// canOpenPages reports whether the client of the call that ctx belongs to shows pages to the user.
func canOpenPages(ctx context.Context) bool {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x != nil && x.questions != nil && x.questions.able().url
}
