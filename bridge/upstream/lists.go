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
	ctx, unpin := p.Pin(ctx)
	defer unpin()
	s, err := p.session(ctx, server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.ListTimeout,
		fmt.Errorf("it did not list its %s within %v", kind.name, s.cfg.ListTimeout))
	defer cancel()
	var all []json.RawMessage
	_, err = s.pages(ctx, kind, func(item json.RawMessage) int {
		all = append(all, item)
		return len(all)
	})
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return nil, s.wrap("listing its "+kind.name, err)
	}
	return all, nil
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
	ctx, unpin := p.Pin(ctx)
	defer unpin()
	s, err := p.session(ctx, server)
	if err != nil {
		return nil, err
	}
	result, err := s.work(ctx, method, params)
	if err != nil {
		return nil, s.wrap(op, err)
	}
	return result, nil
}

// pages reads all pages of a list and hands each item to take, which returns how many it has kept.
// It returns how long the list is good. A server that doesn't know the method has none.
func (s *session) pages(
	ctx context.Context, kind Kind, take func(item json.RawMessage) int,
) (age time.Duration, err error) {
	cursors, size := map[string]bool{}, 0
	age = maxAge
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		raw, err := s.converse(ctx, kind.method, params)
		var refusal *RPCError
		if errors.As(err, &refusal) && refusal.Code == jsonrpc.CodeMethodNotFound && cursor == "" {
			return unheardAge, nil
		}
		if err != nil {
			return 0, err
		}
		var page map[string]json.RawMessage
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &page); err != nil {
			return 0, fmt.Errorf("its list of %s can't be read: %w", kind.name, err)
		}
		if err := json.Unmarshal(orNull(page[kind.key]), &items); err != nil {
			return 0, fmt.Errorf("its list of %s can't be read: %w", kind.name, err)
		}
		age = min(age, ageOf(page))
		kept := 0
		for _, item := range items {
			kept = take(item)
		}
		if size += len(raw); kept > maxTools || size > s.cfg.MaxList {
			return 0, fmt.Errorf("its list of %s is beyond the limit of %d of them and %d bytes", kind.name,
				maxTools, s.cfg.MaxList)
		}
		if cursor = textOf(orNull(page["nextCursor"])); cursor == "" {
			return age, nil
		}
		if cursors[cursor] || len(cursors) >= maxPages {
			s.cfg.Log.Warn("a list doesn't end, and what came until now is used",
				"server", s.server.Name, "list", kind.name, "pages", len(cursors)+1)
			return age, nil
		}
		cursors[cursor] = true
	}
}
