//go:build conformance

// Package bridge has here what the conformance suite's own example server has. test/conformance/run
// compiles this file as one of the package bridge, in the place of conformance_off.go.
package bridge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

// The tools, resources and prompts below are those of the suite's example server, word for word.
const (
	testImage = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5E" +
		"rkJggg=="
	testAudio = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

	testSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
		`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},` +
		`"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},` +
		`"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},` +
		`"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
		`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},` +
		`"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

	defaultsSchema = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},` +
		`"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},` +
		`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},` +
		`"verified":{"type":"boolean","default":true}}}`

	enumsSchema = `{"type":"object","properties":{` +
		`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},` +
		`{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],` +
		`"enumNames":["Option One","Option Two","Option Three"]},` +
		`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
		`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},` +
		`{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`

	userSchema = `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},` +
		`"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`
)

func conformanceOptions() []server.ServerOption {
	return []server.ServerOption{server.WithLogging(), server.WithResourceCapabilities(true, true)}
}

// conform answers what mcp-go can't, or returns nil.
func (s *session) conform(_ context.Context, r *client.Request) mcp.JSONRPCMessage {
	switch {
	case !r.Modern && (r.Method() == "resources/subscribe" || r.Method() == "resources/unsubscribe" ||
		r.Method() == "logging/setLevel"):
		return mcp.NewJSONRPCResultResponse(mcp.RequestId{}, struct{}{})
	case r.Calls("test_missing_capability") && r.HasMeta() && !declares(r, "sampling"):
		return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, Error: mcp.NewJSONRPCErrorDetails(
			mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client has not declared sampling",
			map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}})}
	case r.Calls("test_input_required_result_tampered_state"),
		r.Calls("test_input_required_result_request_state"):
		var p struct {
			State *string `json:"requestState"`
		}
		if json.Unmarshal(r.Params(), &p) == nil && p.State != nil && !genuine(*p.State) {
			return client.Refuse(mcp.INVALID_PARAMS, "the requestState was not issued by this server")
		}
	}
	return nil
}

func declares(r *client.Request, capability string) bool {
	var can map[string]json.RawMessage
	return json.Unmarshal(r.Capabilities, &can) == nil && can[capability] != nil
}

// signed returns a state that only we can have issued.
func signed(state string) string {
	sum := hmac.New(sha256.New, []byte(testImage))
	sum.Write([]byte(state))
	return state + "." + hex.EncodeToString(sum.Sum(nil))
}

func genuine(state string) bool {
	plain, _, _ := strings.Cut(state, ".")
	return hmac.Equal([]byte(signed(plain)), []byte(state))
}

type answerTool = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)

func always(content ...mcp.Content) answerTool {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

// asks asks the client what it is sent, and says what came back.
func asks(method string, params func(mcp.CallToolRequest) any, say func(json.RawMessage) string) answerTool {
	return func(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := requestOf(ctx)
		if r.Modern || !declares(r.Request, strings.Split(method, "/")[0]) {
			return mcp.NewToolResultError("the client can't be asked"), nil
		}
		result, err := r.Call(ctx, method, params(call))
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(say(result)), nil
	}
}

func elicits(message, schema string) func(mcp.CallToolRequest) any {
	return func(call mcp.CallToolRequest) any {
		return map[string]any{
			"message": call.GetString("message", message), "requestedSchema": json.RawMessage(schema),
		}
	}
}

func elicited(begin string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var answer struct {
			Action  string
			Content json.RawMessage
		}
		_ = json.Unmarshal(raw, &answer)
		return fmt.Sprintf("%s: action=%s, content=%s", begin, answer.Action, answer.Content)
	}
}

func sampled(raw json.RawMessage) string {
	var answer struct{ Content struct{ Text string } }
	_ = json.Unmarshal(raw, &answer)
	return "LLM response: " + answer.Content.Text
}

// form returns what asks for one value of a type.
func form(message, name, kind string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{name: map[string]any{"type": kind}},
		"required": []string{name},
	}}
}

func sample(text string, tokens int) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{MaxTokens: tokens, Messages: []mcp.SamplingMessage{
		{Role: mcp.RoleUser, Content: mcp.TextContent{Type: "text", Text: text}},
	}}
}

// given returns a value of the answer to a form, or nothing.
func given(responses mcp.InputResponses, key, name string) string {
	answer := server.ElicitationResponse(responses, key)
	if answer == nil || answer.Action != "accept" {
		return ""
	}
	content, _ := answer.Content.(map[string]any)
	if content[name] == nil {
		return ""
	}
	return fmt.Sprint(content[name])
}

func addConformance(s *server.MCPServer, clients *client.Clients) {
	embedded := mcp.NewEmbeddedResource(mcp.TextResourceContents{
		URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
	})
	mixed := mcp.NewEmbeddedResource(mcp.TextResourceContents{
		URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
	})
	image := mcp.NewImageContent(testImage, "image/png")
	message := mcp.WithString("message", mcp.Required())
	prompt := mcp.WithString("prompt", mcp.Required())
	add := func(name string, answer answerTool, options ...mcp.ToolOption) {
		options = append(options, mcp.WithDescription("for the conformance suite"))
		s.AddTool(mcp.NewTool(name, options...), answer)
	}
	add("test_simple_text", always(mcp.NewTextContent("This is a simple text response for testing.")))
	add("test_image_content", always(image))
	add("test_audio_content", always(mcp.NewAudioContent(testAudio, "audio/wav")))
	add("test_embedded_resource", always(embedded))
	add("test_multiple_content_types", always(mcp.NewTextContent("Multiple content types test:"), image, mixed))
	add("test_missing_capability", always(mcp.NewTextContent("done")))
	add("test_streaming_elicitation", stages(nil))
	add("test_logging_tool", stages(nil))
	add("test_reconnection", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(3 * time.Second) // until the answer's stream begins
		return mcp.NewToolResultText("done"), nil
	})
	add("test_error_handling", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	add("test_trigger_tool_change", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		clients.Changed(string(mcp.MethodNotificationToolsListChanged))
		return mcp.NewToolResultText("done"), nil
	})
	add("test_tool_with_logging", stages(func(ctx context.Context, stage int) error {
		said := []string{"Tool execution started", "Tool processing data", "Tool execution completed"}
		return requestOf(ctx).Notify(ctx, "notifications/message",
			map[string]any{"level": "info", "logger": "conformance", "data": said[stage]})
	}))
	add("test_tool_with_progress", func(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult,
		error) {
		return stages(func(ctx context.Context, stage int) error {
			if call.Params.Meta == nil || call.Params.Meta.ProgressToken == nil {
				return nil
			}
			return requestOf(ctx).Notify(ctx, "notifications/progress", map[string]any{
				"progressToken": call.Params.Meta.ProgressToken, "progress": 50 * stage, "total": 100})
		})(ctx, call)
	})
	add("test_sampling", asks("sampling/createMessage", func(call mcp.CallToolRequest) any {
		return sample(call.GetString("prompt", ""), 100)
	}, sampled), prompt)
	add("test_elicitation",
		asks("elicitation/create", elicits("", userSchema), elicited("User response")), message)
	add("test_elicitation_sep1034_defaults",
		asks("elicitation/create", elicits("Your details", defaultsSchema), elicited("Elicitation completed")))
	add("test_elicitation_sep1330_enums",
		asks("elicitation/create", elicits("Your choice", enumsSchema), elicited("Elicitation completed")))
	s.AddTool(mcp.NewToolWithRawSchema("json_schema_2020_12_tool",
		"Tool with JSON Schema 2020-12 features", json.RawMessage(testSchema)), always(mcp.NewTextContent("done")))
	addRounds(add)
	addConformanceResources(s)
	addConformancePrompts(s)
}

// stages returns a tool of three stages, which calls do at each.
func stages(do func(ctx context.Context, stage int) error) answerTool {
	return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for stage := range 3 {
			if stage > 0 {
				time.Sleep(50 * time.Millisecond) // as the suite asks
			}
			if do == nil {
				continue
			}
			if err := do(ctx, stage); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("done"), nil
	}
}

// addRounds adds the tools that ask in their results.
func addRounds(add func(string, answerTool, ...mcp.ToolOption)) {
	name := form("What is your name?", "name", "string")
	ask := server.NewInputRequestBuilder
	type toolResult = mcp.CallToolResult
	rounds := func(tool string,
		answer func(ctx context.Context, state string, in mcp.InputResponses) (*toolResult, string)) {
		name := "test_input_required_result_" + tool
		add(name, func(ctx context.Context, call mcp.CallToolRequest) (*toolResult, error) {
			if !requestOf(ctx).Modern {
				return nil, errors.New("this tool is for 2026-07-28")
			}
			result, text := answer(ctx, call.Params.RequestState, call.Params.InputResponses)
			if result == nil {
				result = mcp.NewToolResultText(text)
			}
			return result, nil
		})
	}
	rounds("elicitation", func(_ context.Context, _ string, in mcp.InputResponses) (*toolResult, string) {
		if said := given(in, "user_name", "name"); said != "" {
			return nil, "Hello, " + said + "!"
		}
		return ask("").Elicit("user_name", name).ToolResult(), ""
	})
	rounds("sampling", func(_ context.Context, _ string, in mcp.InputResponses) (*toolResult, string) {
		if said := server.SamplingResponse(in, "capital_question"); said != nil {
			text, _ := said.Content.(mcp.TextContent)
			return nil, "The answer: " + text.Text
		}
		return ask("").Sample("capital_question", sample("What is the capital of France?", 100)).ToolResult(), ""
	})
	rounds("list_roots", func(_ context.Context, _ string, in mcp.InputResponses) (*toolResult, string) {
		if said := server.RootsResponse(in, "client_roots"); said != nil {
			return nil, fmt.Sprintf("Roots: %v", said.Roots)
		}
		return ask("").Roots("client_roots").ToolResult(), ""
	})
	confirm := func(_ context.Context, state string, in mcp.InputResponses) (*toolResult, string) {
		if state != "" && given(in, "confirm", "ok") != "" {
			return nil, "state-ok"
		}
		return ask(signed("confirm")).Elicit("confirm", form("Please confirm", "ok", "boolean")).ToolResult(), ""
	}
	rounds("request_state", confirm)
	rounds("tampered_state", confirm)
	rounds("multiple_inputs", func(_ context.Context, _ string, in mcp.InputResponses) (*toolResult, string) {
		said := given(in, "user_name", "name")
		if said != "" && server.SamplingResponse(in, "greeting") != nil &&
			server.RootsResponse(in, "client_roots") != nil {
			return nil, "All is there, " + said
		}
		return ask("multiple").Elicit("user_name", name).Sample("greeting", sample("Generate a greeting", 50)).
			Roots("client_roots").ToolResult(), ""
	})
	rounds("multi_round", func(_ context.Context, state string, in mcp.InputResponses) (*toolResult, string) {
		switch {
		case state == "one" && given(in, "step1", "name") != "":
			next := form("Step 2: What is your favorite color?", "color", "string")
			return ask("two").Elicit("step2", next).ToolResult(), ""
		case state == "two" && given(in, "step2", "color") != "":
			return nil, "All rounds are over"
		}
		return ask("one").Elicit("step1", form("Step 1: What is your name?", "name", "string")).ToolResult(), ""
	})
	rounds("capabilities", func(ctx context.Context, _ string, in mcp.InputResponses) (*toolResult, string) {
		if len(in) > 0 {
			return nil, "done"
		}
		all, r := ask(""), requestOf(ctx).Request
		if declares(r, "elicitation") {
			all.Elicit("user_name", name)
		}
		if declares(r, "sampling") {
			all.Sample("greeting", sample("Generate a greeting", 50))
		}
		return all.ToolResult(), ""
	})
}

func addConformanceResources(s *server.MCPServer) {
	s.AddResource(mcp.NewResource("test://static-text", "static-text", mcp.WithMIMEType("text/plain")),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain",
				Text: "This is the content of the static text resource."}}, nil
		})
	s.AddResource(mcp.NewResource("test://static-binary", "static-binary", mcp.WithMIMEType("image/png")),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png",
				Blob: testImage}}, nil
		})
	s.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template"),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json",
				Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)}}, nil
		})
}

func addConformancePrompts(s *server.MCPServer) {
	says := func(content ...mcp.Content) *mcp.GetPromptResult {
		var messages []mcp.PromptMessage
		for _, c := range content {
			messages = append(messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: c})
		}
		return &mcp.GetPromptResult{Messages: messages}
	}
	add := func(name string, answer func(mcp.GetPromptRequest) *mcp.GetPromptResult, arguments ...string) {
		options := []mcp.PromptOption{mcp.WithPromptDescription("for the conformance suite")}
		for _, a := range arguments {
			options = append(options, mcp.WithArgument(a, mcp.ArgumentDescription("one"), mcp.RequiredArgument()))
		}
		s.AddPrompt(mcp.NewPrompt(name, options...),
			func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return answer(r), nil })
	}
	add("test_simple_prompt", func(mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewTextContent("This is a simple prompt for testing."))
	})
	add("test_prompt_with_arguments", func(r mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'",
			r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])))
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(r mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: r.Params.Arguments["resourceUri"],
			MIMEType: "text/plain", Text: "Embedded resource content for testing."}),
			mcp.NewTextContent("Please process the embedded resource above."))
	}, "resourceUri")
	add("test_prompt_with_image", func(mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewImageContent(testImage, "image/png"),
			mcp.NewTextContent("Please analyze the image above."))
	})
	add("test_input_required_result_prompt", func(r mcp.GetPromptRequest) *mcp.GetPromptResult {
		if said := given(r.Params.InputResponses, "user_context", "context"); said != "" {
			return says(mcp.NewTextContent("In the context of " + said))
		}
		return server.NewInputRequestBuilder("").
			Elicit("user_context", form("What context should the prompt use?", "context", "string")).PromptResult()
	})
}
