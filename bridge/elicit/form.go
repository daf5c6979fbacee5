package elicit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Bounds of a server's question. Of longer texts the beginning is shown; a form that goes beyond
// another bound is refused.
const (
	maxQuestionText = 4000     // bytes of the message
	maxForm         = 32 << 10 // of the form as a whole
	maxLabel        = 200      // of a title, a name or a value in it
	maxHelp         = 1000     // of a description
	maxInputs       = 50       // inputs of a form
	maxChoices      = 200      // for one of them
	maxPageURL      = 2000     // bytes
)

// Question returns a server's elicitation as the client is sent it: what MCP has for it and nothing
// else, under the server's name.
func Question(server string, params json.RawMessage) (map[string]any, error) {
	var from map[string]any
	decoder := json.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	if decoder.Decode(&from) != nil || from == nil {
		return nil, errors.New("its parameters are no object")
	}
	message, ok := from["message"].(string)
	if !ok {
		return nil, errors.New("it has no message")
	}
	server = text.Safe(server)
	if message = text.Safe(message); len(message) > maxQuestionText {
		message = text.First(message, maxQuestionText) + " […]"
	}
	asked := map[string]any{
		"message": fmt.Sprintf("The MCP server %q asks, by way of mcp-bridge: %s", server, message),
		"_meta":   map[string]string{"mcp-bridge/server": server},
	}
	switch from["mode"] {
	case mcp.ElicitationModeURL:
		return asked, addPage(asked, from)
	case mcp.ElicitationModeForm, nil:
	default:
		return nil, errors.New("its mode is neither form nor url")
	}
	asked["requestedSchema"] = map[string]any{"properties": map[string]any{}, "type": "object"}
	if schema := from["requestedSchema"]; schema != nil {
		form, err := members(schema, member)
		if err == nil && len(text.JSON(form)) > maxForm {
			err = fmt.Errorf("it is longer than %d bytes", maxForm)
		}
		if err != nil {
			return nil, fmt.Errorf("requestedSchema: %w", err)
		}
		asked["requestedSchema"] = form
	}
	return asked, nil
}

// addPage adds the page that the server wants the user to open.
func addPage(asked, from map[string]any) error {
	address, _ := from["url"].(string)
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return errors.New("its url is not an https URL")
	case u.User != nil:
		return errors.New("its url has a user in it, which looks like a host")
	case len(address) > maxPageURL || strings.ContainsFunc(address, isOdd):
		return fmt.Errorf("its url has other characters than those of URLs, or more than %d", maxPageURL)
	}
	asked["mode"], asked["url"] = mcp.ElicitationModeURL, address
	if from["elicitationId"] == nil {
		return nil
	}
	asked["elicitationId"], err = exactly(from["elicitationId"])
	return err
}

// isOdd reports whether a URL has no such character, or one that is shown as something else.
func isOdd(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }

// member returns what the client is sent of a member of a requestedSchema (MCP 2025-11-25), of its
// inputs or of their choices. Members are matched by their exact names, and unknown ones are left
// out: a client might take one for something that the server chose. anyOf describes nullable
// values.
func member(name string, v any) (any, error) {
	switch name {
	case "title":
		return label(v, maxLabel)
	case "description":
		return label(v, maxHelp)
	case "type", "format":
		return exactly(v)
	case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
		if _, ok := v.(json.Number); !ok {
			return nil, errors.New("it is no number")
		}
		return value(v)
	case "const":
		return value(v)
	case "default":
		if _, ok := v.([]any); ok {
			return list(v, maxChoices, value)
		}
		return value(v)
	case "enum":
		return list(v, maxChoices, value)
	case "enumNames":
		return list(v, maxChoices, func(v any) (any, error) { return label(v, maxLabel) })
	case "required":
		return list(v, maxInputs, exactly)
	case "oneOf", "anyOf":
		return list(v, maxChoices, func(v any) (any, error) { return members(v, member) })
	case "properties": // whose names the server chooses
		if all, _ := v.(map[string]any); len(all) > maxInputs {
			return nil, fmt.Errorf("there are more than %d", maxInputs)
		}
		return members(v, func(name string, v any) (any, error) {
			if _, err := exactly(name); err != nil {
				return nil, err
			}
			return members(v, member)
		})
	case "items":
		return members(v, member)
	}
	return nil, nil
}

// members returns an object with what keep returns of its members. Null is like a missing one.
func members(v any, keep func(name string, v any) (any, error)) (any, error) {
	from, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	to := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if from[name] == nil {
			continue
		}
		kept, err := keep(name, from[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Line(name), err)
		}
		if kept != nil {
			to[name] = kept
		}
	}
	return to, nil
}

// list returns a list of at most most values, none of them null, with what keep returns of each.
func list(v any, most int, keep func(any) (any, error)) (any, error) {
	from, ok := v.([]any)
	if !ok || len(from) > most {
		return nil, fmt.Errorf("it is no list of at most %d", most)
	}
	to := make([]any, 0, len(from))
	for _, item := range from {
		if item == nil {
			return nil, errors.New("one is null")
		}
		kept, err := keep(item)
		if err != nil {
			return nil, err
		}
		to = append(to, kept)
	}
	return to, nil
}

// label returns a text as it is shown on one line, and of a long one the beginning.
func label(v any, most int) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, errors.New("it is no text")
	}
	if s = text.Line(s); len(s) > most {
		s = text.First(s, most) + "…"
	}
	return s, nil
}

// exactly returns a text that means something as it is, and refuses one that can't be shown so.
func exactly(v any) (any, error) {
	if s, ok := v.(string); !ok || len(s) > maxLabel || text.Safe(s) != s {
		return nil, fmt.Errorf("it is no text of at most %d printable bytes", maxLabel)
	}
	return v, nil
}

// value returns a value of an input.
func value(v any) (any, error) {
	switch n := v.(type) {
	case bool:
		return v, nil
	case json.Number:
		if len(n) <= maxLabel {
			return v, nil
		}
	}
	return exactly(v)
}
