package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Bounds of what a server has to say to a client's model, beside upstream.MaxQuestion for all of it.
const (
	maxMessages   = 500 // of a conversation, and blocks in one of these
	maxModelTools = 200 // that a model is given
	maxPlainDepth = 100 // lists and objects in each other, in what has no shape of its own
)

// samplingMembers are those of sampling/createMessage. Of includeContext and metadata nothing is sent: the one would have the client
// give the server what others have said, the other means something to a model's provider that nobody here knows.
var samplingMembers = map[string]member{
	"messages": messages(block),
	"modelPreferences": objectOf(map[string]member{
		"hints":        listOf(maxChoices, objectOf(map[string]member{"name": exactly})),
		"costPriority": number, "speedPriority": number, "intelligencePriority": number,
	}),
	"systemPrompt": words, "temperature": number, "maxTokens": number, "stopSequences": listOf(maxChoices, words),
}

// withTools are the same where the model is given tools: it may use them, and what came of that is told to it with the next request.
// What a model wants called goes to the server that asked; the client calls nothing.
var withTools = with(samplingMembers, map[string]member{
	"messages": messages(toolBlock),
	"tools": listOf(maxModelTools, objectOf(map[string]member{
		"name": exactly, "title": label(maxLabel), "description": words, "inputSchema": plainObject,
	})),
	"toolChoice": objectOf(map[string]member{"mode": exactly}),
})

func with[T any](members, others map[string]T) map[string]T {
	all := maps.Clone(members)
	maps.Copy(all, others)
	return all
}

func messages(block member) member {
	return listOf(maxMessages, objectOf(map[string]member{"role": exactly, "content": anyOf(block, listOf(maxMessages, block))}))
}

// samplingQuestion names the server in the system prompt too, where people see it who look at what their model is to answer.
func samplingQuestion(server string, from map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	known := samplingMembers
	if givesTools(from) {
		known = withTools
	}
	asked, err := pick(from, known)
	if err != nil {
		return nil, err
	}
	if asked["messages"] == nil {
		return nil, errors.New("it has no messages")
	}
	prompt, _ := stringOf(asked["systemPrompt"])
	asked["systemPrompt"] = encode(strings.TrimRight(fmt.Sprintf("The MCP server %q asks this, by way of mcp-bridge.\n\n%s", text.Safe(server), prompt), "\n"))
	return asked, nil
}

// givesTools says whether a model is to be given tools, for which clients have a capability of its own.
func givesTools(sampling map[string]json.RawMessage) bool {
	return given(sampling["tools"]) != nil || given(sampling["toolChoice"]) != nil
}

// The parts of a message for a model, by their types: a text, or an image or sound; and beside them a model's use of a tool, or what came
// of one.
var (
	block, toolBlock = blockOf(blocks), blockOf(with(blocks, toolBlocks))

	blocks = map[string]map[string]member{
		"text":  {"type": exactly, "text": words},
		"image": {"type": exactly, "data": data, "mimeType": exactly},
		"audio": {"type": exactly, "data": data, "mimeType": exactly},
	}
	toolBlocks = map[string]map[string]member{
		"tool_use": {"type": exactly, "id": exactly, "name": exactly, "input": plainObject},
		"tool_result": {
			"type": exactly, "toolUseId": exactly, "isError": truth, "structuredContent": plainObject, "content": listOf(maxMessages, block),
		},
	}
)

// blockOf is a part of a message, of one of these types.
func blockOf(types map[string]map[string]member) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		from, err := members(raw)
		if err != nil {
			return nil, err
		}
		t, _ := stringOf(from["type"])
		if types[t] == nil {
			return nil, errors.New("it is no text, image or audio")
		}
		to, err := pick(from, types[t])
		return encode(to), err
	}
}

// plainObject is an object of whatever shape, such as a schema: its texts show what they say, and so do its names.
func plainObject(raw json.RawMessage) (json.RawMessage, error) {
	if _, err := members(raw); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.New("it can't be read")
	}
	v, err := plain(v, maxPlainDepth)
	return encode(v), err
}

func plain(v any, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("there are more than %d lists and objects in each other", maxPlainDepth)
	}
	var err error
	switch v := v.(type) {
	case string:
		return text.Safe(v), nil
	case json.Number:
		if len(v) > maxLabel {
			return nil, fmt.Errorf("a number in it has more than %d digits", maxLabel)
		}
	case []any:
		for i := range v {
			if v[i], err = plain(v[i], depth-1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if text.Safe(name) != name {
				return nil, errors.New("a name in it can't be shown")
			}
			if v[name], err = plain(v[name], depth-1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// words are a text for a model, which people may look at.
func words(raw json.RawMessage) (json.RawMessage, error) {
	s, ok := stringOf(raw)
	if !ok {
		return nil, errors.New("it is no text")
	}
	return encode(text.Safe(s)), nil
}

func truth(raw json.RawMessage) (json.RawMessage, error) {
	var b bool
	if json.Unmarshal(raw, &b) != nil {
		return nil, errors.New("it is neither true nor false")
	}
	return encode(b), nil
}

// data is bytes in base64, bounded by the whole request.
func data(raw json.RawMessage) (json.RawMessage, error) {
	var b []byte
	if json.Unmarshal(raw, &b) != nil {
		return nil, errors.New("it is no base64")
	}
	return encode(b), nil
}
