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

// A member returns what the client is sent of one member of a server's request. Members are matched
// by their exact names and those without a function are left out: a client might take an unknown
// name, or another spelling of a known one, for something that the server chose.
type member func(json.RawMessage) (json.RawMessage, error)

// The members of a requestedSchema (MCP 2025-11-25), and anyOf, which describes nullable values.
var (
	choice = objectOf(map[string]member{
		"const": value, "title": label(maxLabel), "description": label(maxHelp), "type": exactly, "format": exactly,
		"minimum": number, "maximum": number, "minLength": number, "maxLength": number,
	})
	choices = listOf(maxChoices, choice)
	values  = listOf(maxChoices, value)
	input   = objectOf(map[string]member{
		"type": exactly, "title": label(maxLabel), "description": label(maxHelp), "format": exactly,
		"minimum": number, "maximum": number, "minLength": number, "maxLength": number,
		"minItems": number, "maxItems": number, "default": anyOf(value, values),
		"enum": values, "enumNames": listOf(maxChoices, label(maxLabel)), "oneOf": choices, "anyOf": choices,
		"items": objectOf(map[string]member{"type": exactly, "enum": values, "oneOf": choices, "anyOf": choices}),
	})
	form = objectOf(map[string]member{
		"type": exactly, "properties": inputs, "required": listOf(maxInputs, exactly),
	})
)

// Question returns a server's elicitation as the client is sent it: what MCP has for it and nothing
// else, under the server's name.
func Question(server string, params json.RawMessage) (map[string]json.RawMessage, error) {
	from, err := members(params)
	if err != nil {
		return nil, errors.New("its parameters are no object")
	}
	message, ok := text.FromJSON(from["message"])
	if !ok {
		return nil, errors.New("it has no message")
	}
	server = text.Safe(server)
	if message = text.Safe(message); len(message) > maxQuestionText {
		message = text.First(message, maxQuestionText) + " […]"
	}
	asked := map[string]json.RawMessage{
		"message": text.JSON(fmt.Sprintf("The MCP server %q asks, by way of mcp-bridge: %s", server, message)),
		"_meta":   text.JSON(map[string]string{"mcp-bridge/server": server}),
	}
	mode, _ := text.FromJSON(from["mode"])
	switch {
	case mode == mcp.ElicitationModeURL:
		return asked, addPage(asked, from)
	case mode != mcp.ElicitationModeForm && text.Given(from["mode"]) != nil:
		return nil, errors.New("its mode is neither form nor url")
	}
	asked["requestedSchema"] = json.RawMessage(`{"properties":{},"type":"object"}`)
	if schema := text.Given(from["requestedSchema"]); schema != nil {
		shown, err := form(schema)
		if err == nil && len(shown) > maxForm {
			err = fmt.Errorf("it is longer than %d bytes", maxForm)
		}
		if err != nil {
			return nil, fmt.Errorf("requestedSchema: %w", err)
		}
		asked["requestedSchema"] = shown
	}
	return asked, nil
}

// addPage adds the page that the server wants the user to open.
func addPage(asked, from map[string]json.RawMessage) error {
	address, _ := text.FromJSON(from["url"])
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return errors.New("its url is not an https URL")
	case u.User != nil:
		return errors.New("its url has a user in it, which looks like a host")
	case len(address) > maxPageURL || strings.ContainsFunc(address, isOdd):
		return fmt.Errorf("its url has other characters than those of URLs, or more than %d", maxPageURL)
	}
	asked["mode"], asked["url"] = text.JSON(mcp.ElicitationModeURL), text.JSON(address)
	if text.Given(from["elicitationId"]) == nil {
		return nil
	}
	id, err := exactly(from["elicitationId"])
	asked["elicitationId"] = id
	return err
}

// isOdd reports whether a URL has no such character, or one that is shown as something else.
func isOdd(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }

// members returns an object's members by their exact names.
func members(raw json.RawMessage) (m map[string]json.RawMessage, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &m) != nil {
		return nil, errors.New("it is no object")
	}
	return m, nil
}

// objectOf returns the member for an object of known members. Null is like a missing one.
func objectOf(known map[string]member) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		from, err := members(raw)
		if err != nil {
			return nil, err
		}
		to := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if text.Given(from[name]) == nil {
				continue
			}
			v, err := known[name](from[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			to[name] = v
		}
		return text.JSON(to), nil
	}
}

// inputs is the member for a form's inputs, whose names the server chooses.
func inputs(raw json.RawMessage) (json.RawMessage, error) {
	from, err := members(raw)
	if err == nil && len(from) > maxInputs {
		err = fmt.Errorf("there are more than %d", maxInputs)
	}
	to := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if err == nil {
			_, err = exactly(text.JSON(name))
		}
		if err == nil {
			to[name], err = input(from[name])
		}
	}
	return text.JSON(to), err
}

// listOf returns the member for a list of at most most values, none of them null.
func listOf(most int, each member) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		var from []json.RawMessage
		if json.Unmarshal(raw, &from) != nil || len(from) > most {
			return nil, fmt.Errorf("it is no list of at most %d", most)
		}
		to := make([]json.RawMessage, 0, len(from))
		for _, item := range from {
			v, err := each(item)
			if err == nil && text.Given(item) == nil {
				err = errors.New("one is null")
			}
			if err != nil {
				return nil, err
			}
			to = append(to, v)
		}
		return text.JSON(to), nil
	}
}

// anyOf returns the member for a value of one kind or another. An error is the usual one's.
func anyOf(usual, other member) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		v, err := usual(raw)
		if err == nil {
			return v, nil
		}
		if v, otherErr := other(raw); otherErr == nil {
			return v, nil
		}
		return nil, err
	}
}

// label returns the member for a text that is shown on one line, and of which too much isn't shown.
func label(most int) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		s, ok := text.FromJSON(raw)
		if !ok {
			return nil, errors.New("it is no text")
		}
		if s = text.Line(s); len(s) > most {
			s = text.First(s, most) + "…"
		}
		return text.JSON(s), nil
	}
}

// exactly is the member for a text that means something as it is. It is refused unless it can be
// shown so.
func exactly(raw json.RawMessage) (json.RawMessage, error) {
	s, ok := text.FromJSON(raw)
	if !ok || len(s) > maxLabel || text.Safe(s) != s {
		return nil, fmt.Errorf("it is no text of at most %d printable bytes", maxLabel)
	}
	return text.JSON(s), nil
}

// number is the member for a number.
func number(raw json.RawMessage) (json.RawMessage, error) {
	var n json.Number
	if json.Unmarshal(raw, &n) != nil || raw[0] == '"' || len(n) > maxLabel {
		return nil, errors.New("it is no number")
	}
	return text.JSON(n), nil
}

// value is the member for a value of an input.
func value(raw json.RawMessage) (json.RawMessage, error) {
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return text.JSON(b), nil
	}
	return anyOf(exactly, number)(raw)
}
