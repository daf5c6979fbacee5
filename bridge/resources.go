package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// offered makes a request for what a server offers besides tools, if the policy allows it, and
// records it. It returns the server's answer as it came.
func offered[T any](
	ctx context.Context, h *host, server, method string, params any,
	do func(ctx context.Context, server string) (T, error),
) (result any, err error) {
	args, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters of %s: %w", method, err)
	}
	return recorded(ctx, h, server, method, func(ctx context.Context, r *audit.Record) (any, error) {
		h.auditor.arguments(r, args)
		s, err := h.view.Server(server)
		if err != nil {
			return nil, err
		}
		r.Server = s.Name
		if err := h.allowed(ctx, s); err != nil {
			return nil, err
		}
		d, _ := h.catalog.JudgeMethod(s.Name, method)
		if err := h.permits.decide(ctx, r, s, upstream.Tool{Name: method}, args, d); err != nil {
			return nil, err
		}
		result, err := upstreamSpan(ctx, h.telemetry, s.Name, method, "", func(ctx context.Context) (T, error) {
			return do(ctx, s.Name)
		})
		if err != nil {
			failed := callError(ctx, s, err)
			refusal, _ := errors.AsType[*upstream.RPCError](err)
			if refusal != nil && listers[method] != "" && slices.Contains(unknownName, refusal.Code) {
				failed.Message += fmt.Sprintf("; runtime.%s(%q) says which there are", listers[method], s.Name)
			}
			return nil, failed
		}
		r.ResultBytes = received(result)
		return result, nil
	})
}

// listers are the helpers that list what a method asks for by its name, which may be a wrong one.
var listers = map[string]string{
	catalog.MethodReadResource: "list_resources", catalog.MethodGetPrompt: "list_prompts",
}

// unknownName are the codes with which a server answers that it knows no such name.
var unknownName = []int{mcp.INVALID_PARAMS, mcp.RESOURCE_NOT_FOUND}

// received returns the number of bytes that a server sent.
func received(result any) (n int) {
	switch v := result.(type) {
	case json.RawMessage:
		n = len(v)
	case []json.RawMessage:
		for _, item := range v {
			n += len(item)
		}
	}
	return n
}

// listing returns the helper that lists one kind of what a server offers besides tools.
func listing(kind upstream.Kind) func(h *host, ctx context.Context, in runtimeInput) (any, error) {
	return func(h *host, ctx context.Context, in runtimeInput) (any, error) {
		list := func(ctx context.Context, server string) ([]json.RawMessage, error) {
			items, err := h.upstreams.List(ctx, server, kind)
			if items == nil {
				items = []json.RawMessage{}
			}
			return items, err
		}
		return offered(ctx, h, in.Server, kind.Method(), nil, list)
	}
}

func (h *host) readResource(ctx context.Context, in runtimeInput) (any, error) {
	if in.URI == "" {
		return nil, invalid("a resource is read by its uri; runtime.list_resources(%q) has those that server lists",
			in.Server)
	}
	params := map[string]string{"uri": in.URI}
	read := func(ctx context.Context, server string) (json.RawMessage, error) {
		return h.upstreams.ReadResource(ctx, server, in.URI)
	}
	return offered(ctx, h, in.Server, catalog.MethodReadResource, params, read)
}

func (h *host) getPrompt(ctx context.Context, in runtimeInput) (any, error) {
	if in.Name == "" {
		return nil, invalid("a prompt is asked for by its name; runtime.list_prompts(%q) has those of that server",
			in.Server)
	}
	args, err := object(in.Arguments)
	if err != nil {
		return nil, err
	}
	params := map[string]any{"name": in.Name, "arguments": args}
	get := func(ctx context.Context, server string) (json.RawMessage, error) {
		return h.upstreams.GetPrompt(ctx, server, in.Name, args)
	}
	return offered(ctx, h, in.Server, catalog.MethodGetPrompt, params, get)
}

// complete asks for the completions of an argument of a prompt or of a resource template. The
// input's Arguments are those that are known already.
func (h *host) complete(ctx context.Context, in runtimeInput) (any, error) {
	ref := map[string]string{"type": "ref/prompt", "name": in.Name}
	if in.URI != "" {
		ref = map[string]string{"type": "ref/resource", "uri": in.URI}
	}
	if (in.Name == "") == (in.URI == "") || in.Argument == "" {
		return nil, invalid("completions are asked for with the name of a prompt, or the uri of a resource " +
			"template, and the argument's name")
	}
	params := map[string]any{"ref": ref, "argument": map[string]string{"name": in.Argument, "value": in.Value}}
	if known, err := object(in.Arguments); err != nil {
		return nil, err
	} else if string(known) != "{}" {
		params["context"] = map[string]any{"arguments": known}
	}
	complete := func(ctx context.Context, server string) (json.RawMessage, error) {
		return h.upstreams.Complete(ctx, server, params)
	}
	return offered(ctx, h, in.Server, catalog.MethodComplete, params, complete)
}
