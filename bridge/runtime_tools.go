package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// runtimeInput is what the runtime's helpers take; each takes a part of it.
type runtimeInput struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Query     string          `json:"query"`
	Limit     int             `json:"limit"`
	Detail    string          `json:"detail"`
	URI       string          `json:"uri"`
	Name      string          `json:"name"`
	Argument  string          `json:"argument"`
	Value     string          `json:"value"`
}

// runtimeTools are the tools of the built-in provider "runtime". Those that need a server take it
// from the input.
var runtimeTools = map[string]func(h *host, ctx context.Context, in runtimeInput) (any, error){
	// load_server {server}: an entrypoint.Provider with its tools.
	"load_server": func(h *host, ctx context.Context, in runtimeInput) (any, error) {
		return h.loadServer(ctx, in.Server)
	},
	// describe_server {server}: its name, alias and description, and whether this run may call it.
	"describe_server": func(h *host, _ context.Context, in runtimeInput) (any, error) {
		return h.view.Describe(in.Server)
	},
	// query_tool_docs {server, tool?, detail?}: a list with the documentation of each.
	"query_tool_docs": func(h *host, ctx context.Context, in runtimeInput) (any, error) {
		return h.view.Docs(ctx, in.Server, in.Tool, in.Detail)
	},
	// search_tool_docs {query, limit?, detail?}: the best of them among all servers, and which servers
	// were left out.
	"search_tool_docs": func(h *host, ctx context.Context, in runtimeInput) (any, error) {
		return h.view.SearchDocs(ctx, in.Query, in.Detail, in.Limit)
	},
	// list_resources, list_resource_templates, list_prompts {server}: what the server lists, as it
	// lists it.
	"list_resources":          listing(upstream.Resources),
	"list_resource_templates": listing(upstream.ResourceTemplates),
	"list_prompts":            listing(upstream.Prompts),
	// read_resource {server, uri}: the ReadResourceResult.
	"read_resource": (*host).readResource,
	// get_prompt {server, name, arguments?}: the GetPromptResult.
	"get_prompt": (*host).getPrompt,
	// complete {server, name or uri, argument, value, arguments?}: what a server proposes for an
	// argument of a prompt, or of a resource template, the CompleteResult's completion.
	"complete": (*host).complete,
}

// maxName bounds a server's or tool's name that a helper is given, in bytes, as the sandbox bounds
// those of calls.
const maxName = 4 << 10

// runtimeTool answers a call of the provider "runtime".
func (h *host) runtimeTool(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
	run, ok := runtimeTools[c.Tool]
	if !ok {
		names := slices.Sorted(maps.Keys(runtimeTools))
		return nil, invalid("the runtime has no helper %q%s; it has: %s",
			c.Tool, text.DidYouMean(c.Tool, names), strings.Join(names, ", "))
	}
	input, err := object(c.Input)
	if err != nil {
		return nil, err
	}
	var in runtimeInput
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, invalid("bad arguments for runtime.%s: %s", c.Tool, misfit(err))
	}
	for _, name := range []string{in.Server, in.Tool} {
		if len(name) > maxName {
			return nil, invalid("bad arguments for runtime.%s: a name of %d bytes, and none has more than %d",
				c.Tool, len(name), maxName)
		}
	}
	v, err := run(h, ctx, in)
	if err != nil {
		return nil, err
	}
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding what runtime.%s found: %w", c.Tool, err)
	}
	return b, nil
}

// misfit returns why arguments couldn't be decoded, in the words of those who wrote them and not of
// Go's types.
func misfit(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	needs := "a string"
	switch wrong.Type.Kind() {
	case reflect.Int:
		needs = "a whole number"
	case reflect.Bool:
		needs = "a boolean"
	}
	is, known := map[string]string{
		"string": "a string", "bool": "a boolean", "array": "a list", "object": "an object",
	}[wrong.Value]
	if !known {
		is = "a " + wrong.Value // such as: number 1.5
	}
	return fmt.Sprintf("%s must be %s, not %s", wrong.Field, needs, is)
}

func (h *host) loadServer(ctx context.Context, name string) (any, error) {
	s, err := h.view.Server(name)
	if err != nil {
		return nil, err
	}
	t, err := h.tools(ctx, s)
	if err != nil {
		return nil, err
	}
	return t.Provider()
}
