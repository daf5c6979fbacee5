package bridge

import (
	"context"
	"encoding/json"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// methods are MCP's names of what lists each kind: those that a policy has for it.
var methods = map[upstream.Kind]string{
	upstream.Resources: "resources/list", upstream.ResourceTemplates: "resources/templates/list", upstream.Prompts: "prompts/list",
}

// listing is the helper that lists one kind of what a server offers besides tools.
func listing(kind upstream.Kind) func(h *host, ctx context.Context, in helperInput) (any, error) {
	return func(h *host, ctx context.Context, in helperInput) (any, error) {
		s, err := h.server(in.Server)
		if err != nil {
			return nil, err
		}
		if err := h.permits.method(ctx, s, methods[kind], nil); err != nil {
			return nil, err
		}
		items, err := h.upstreams.List(ctx, s.name, kind)
		if err != nil {
			return nil, callError(ctx, s, err)
		}
		if items == nil {
			items = []json.RawMessage{}
		}
		return items, nil
	}
}

func (h *host) readResource(ctx context.Context, in helperInput) (any, error) {
	s, err := h.server(in.Server)
	if err != nil {
		return nil, err
	}
	if in.URI == "" {
		return nil, invalid("a resource is read by its uri; runtime.list_resources(%q) has those that server lists", s.name)
	}
	if err := h.permits.method(ctx, s, "resources/read", map[string]string{"uri": in.URI}); err != nil {
		return nil, err
	}
	result, err := h.upstreams.ReadResource(ctx, s.name, in.URI)
	if err != nil {
		return nil, callError(ctx, s, err)
	}
	return result, nil
}

func (h *host) getPrompt(ctx context.Context, in helperInput) (any, error) {
	s, err := h.server(in.Server)
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, invalid("a prompt is asked for by its name; runtime.list_prompts(%q) has those of that server", s.name)
	}
	args, err := object(in.Arguments)
	if err != nil {
		return nil, err
	}
	if err := h.permits.method(ctx, s, "prompts/get", map[string]any{"name": in.Name, "arguments": args}); err != nil {
		return nil, err
	}
	result, err := h.upstreams.GetPrompt(ctx, s.name, in.Name, args)
	if err != nil {
		return nil, callError(ctx, s, err)
	}
	return result, nil
}
