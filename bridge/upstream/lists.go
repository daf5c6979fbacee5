package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// Kind is a kind of thing, other than tools, that servers list.
type Kind struct {
	method, key string
	name        string // for errors
}

// Method returns MCP's name of what lists the kind.
func (k Kind) Method() string { return k.method }

// The kinds that there are.
var (
	Resources         = Kind{string(mcp.MethodResourcesList), "resources", "resources"}
	ResourceTemplates = Kind{string(mcp.MethodResourcesTemplatesList), "resourceTemplates", "resource templates"}
	Prompts           = Kind{string(mcp.MethodPromptsList), "prompts", "prompts"}

	tools = Kind{string(mcp.MethodToolsList), "tools", "tools"}
)

// List returns all that a server lists of a kind, of all its pages, each as it was sent. A server
// that doesn't know the kind lists nothing. It is asked each time. The server is started if need
// be.
//
// The error is ErrUnknownServer, ErrClosed, or a *ServerError. It returns at once when ctx ends.
func (p *Pool) List(ctx context.Context, server string, kind Kind) ([]json.RawMessage, error) {
	return on(ctx, p, server, "listing its "+kind.name,
		func(ctx context.Context, s *session) ([]json.RawMessage, error) {
			all, _, err := s.pages(ctx, kind)
			return all, err
		})
}

// ReadResource returns a server's ReadResourceResult as it sent it. Its errors are those of Call.
func (p *Pool) ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error) {
	return p.ask(ctx, server, "reading the resource "+fmt.Sprintf("%q", uri), string(mcp.MethodResourcesRead),
		map[string]any{"uri": uri})
}

// GetPrompt returns a server's GetPromptResult as it sent it. args is a JSON object, or nil for
// none. Its errors are those of Call.
func (p *Pool) GetPrompt(
	ctx context.Context, server, name string, args json.RawMessage,
) (json.RawMessage, error) {
	params := map[string]any{"name": name}
	if len(args) > 0 {
		params["arguments"] = args
	}
	return p.ask(ctx, server, fmt.Sprintf("asking for the prompt %q", name), string(mcp.MethodPromptsGet),
		params)
}

// Complete returns a server's CompleteResult for a value that is being typed as it sent it. params
// are those of completion/complete. Its errors are those of Call.
func (p *Pool) Complete(ctx context.Context, server string, params map[string]any) (json.RawMessage, error) {
	return p.ask(ctx, server, "asking for completions", string(mcp.MethodCompletionComplete), params)
}

func (p *Pool) ask(
	ctx context.Context, server, op, method string, params map[string]any,
) (json.RawMessage, error) {
	return on(ctx, p, server, op, func(ctx context.Context, s *session) (json.RawMessage, error) {
		return s.work(ctx, method, params)
	})
}

// pages returns what a server lists of a kind, of all its pages, and how long that list is good. A
// server that doesn't know the method has none.
func (s *session) pages(
	ctx context.Context, kind Kind,
) (all []json.RawMessage, age time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.ListTimeout,
		fmt.Errorf("it did not list its %s within %v", kind.name, s.cfg.ListTimeout))
	defer cancel()
	cursors, size := map[string]bool{}, 0
	age = maxAge
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		raw, err := s.converse(ctx, kind.method, params)
		refusal, refused := errors.AsType[*RPCError](err)
		switch {
		case refused && refusal.Code == jsonrpc.CodeMethodNotFound && cursor == "":
			return nil, unheardAge, nil
		case errors.Is(err, context.DeadlineExceeded):
			return nil, 0, context.Cause(ctx)
		case err != nil:
			return nil, 0, err
		}
		var page map[string]json.RawMessage
		var items []json.RawMessage
		if err = json.Unmarshal(raw, &page); err == nil {
			err = json.Unmarshal(orNull(page[kind.key]), &items)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("its list of %s can't be read: %w", kind.name, err)
		}
		all, age = append(all, items...), min(age, ageOf(page))
		if size += len(raw); len(all) > maxTools || size > s.cfg.MaxList {
			return nil, 0, fmt.Errorf("its list of %s is beyond the limit of %d of them and %d bytes", kind.name,
				maxTools, s.cfg.MaxList)
		}
		if cursor = jsonrpc.TextOf(page["nextCursor"]); cursor == "" {
			return all, age, nil
		}
		if cursors[cursor] || len(cursors) >= maxPages {
			s.cfg.Log.Warn("a list doesn't end, and what came until now is used",
				"server", s.server.Name, "list", kind.name, "pages", len(cursors)+1)
			return all, age, nil
		}
		cursors[cursor] = true
	}
}
