package bridge

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

// Bounds of what a server has to say to a person. Of longer texts the beginning is shown; of what is more otherwise, nothing.
const (
	maxQuestionText = 4000     // bytes of the message
	maxForm         = 32 << 10 // of the form as a whole
	maxLabel        = 200      // of a title, a name or a value in it
	maxHelp         = 1000     // of a description
	maxInputs       = 50       // inputs of a form
	maxChoices      = 200      // for one of them
	maxPageURL      = 2000     // bytes
)

// A member makes the value of one member of a server's request into what the client is sent of it. Members are told apart by their
// exact names, and those without a function are left out: what a client makes of a name that it doesn't know, or knows in another
// spelling, would be the server's choice.
type member func(json.RawMessage) (json.RawMessage, error)

// The values of forms: MCP 2025-11-25, requestedSchema. Also anyOf, with which a value that may be null is described.
var (
	choice = objectOf(map[string]member{
		"const": value, "title": label(maxLabel), "description": label(maxHelp), "type": exactly, "format": exactly,
		"minimum": number, "maximum": number, "minLength": number, "maxLength": number,
	})
	choices = listOf(maxChoices, choice)
	values  = listOf(maxChoices, value)
	input   = objectOf(map[string]member{
		"type": exactly, "title": label(maxLabel), "description": label(maxHelp), "default": anyOf(value, values), "format": exactly,
		"minimum": number, "maximum": number, "minLength": number, "maxLength": number, "minItems": number, "maxItems": number,
		"enum": values, "enumNames": listOf(maxChoices, label(maxLabel)), "oneOf": choices, "anyOf": choices,
		"items": objectOf(map[string]member{"type": exactly, "enum": values, "oneOf": choices, "anyOf": choices}),
	})
	form = objectOf(map[string]member{
		"type": exactly, "properties": inputs, "required": listOf(maxInputs, exactly),
	})
)

// question is a server's request as the client is sent it: what MCP has for it and nothing else, with the server's name.
func question(server string, params json.RawMessage) (map[string]json.RawMessage, error) {
	from, err := members(params)
	if err != nil {
		return nil, invalidQuestion("its parameters are no object")
	}
	asked, err := elicitation(server, from)
	if err != nil {
		return nil, invalidQuestion("%v", err)
	}
	asked["_meta"] = encode(map[string]string{"mcp-bridge/server": text.Safe(server)})
	return asked, nil
}

func elicitation(server string, from map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	message, ok := stringOf(from["message"])
	if !ok {
		return nil, errors.New("it has no message")
	}
	if message = text.Safe(message); len(message) > maxQuestionText {
		message = text.First(message, maxQuestionText) + " […]"
	}
	asked := map[string]json.RawMessage{"message": encode(fmt.Sprintf("The MCP server %q asks, by way of mcp-bridge: %s", text.Safe(server), message))}
	mode, _ := stringOf(from["mode"])
	switch {
	case mode == mcp.ElicitationModeURL:
		return asked, webPage(asked, from)
	case mode != mcp.ElicitationModeForm && given(from["mode"]) != nil:
		return nil, errors.New("its mode is neither form nor url")
	}
	asked["requestedSchema"] = json.RawMessage(`{"properties":{},"type":"object"}`)
	if schema := given(from["requestedSchema"]); schema != nil {
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

// webPage adds what is asked for by a page that the user opens.
func webPage(asked, from map[string]json.RawMessage) error {
	address, _ := stringOf(from["url"])
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return errors.New("its url is none of https")
	case u.User != nil:
		return errors.New("its url has a user in it, which looks like a host")
	case len(address) > maxPageURL || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return fmt.Errorf("its url has other characters than those of URLs, or more than %d", maxPageURL)
	}
	asked["mode"], asked["url"] = encode(mcp.ElicitationModeURL), encode(address)
	if given(from["elicitationId"]) == nil {
		return nil
	}
	id, err := exactly(from["elicitationId"])
	asked["elicitationId"] = id
	return err
}

// members is an object by its members' exact names.
func members(raw json.RawMessage) (m map[string]json.RawMessage, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &m) != nil {
		return nil, errors.New("it is no object")
	}
	return m, nil
}

// pick makes the known members of an object; null is as good as none.
func pick(from map[string]json.RawMessage, known map[string]member) (map[string]json.RawMessage, error) {
	to := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if given(from[name]) == nil {
			continue
		}
		v, err := known[name](from[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		to[name] = v
	}
	return to, nil
}

// objectOf is an object of known members.
func objectOf(known map[string]member) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		from, err := members(raw)
		if err != nil {
			return nil, err
		}
		to, err := pick(from, known)
		return encode(to), err
	}
}

// inputs are those of a form, by names of the server's choice.
func inputs(raw json.RawMessage) (json.RawMessage, error) {
	from, err := members(raw)
	if err == nil && len(from) > maxInputs {
		err = fmt.Errorf("there are more than %d", maxInputs)
	}
	to := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if err == nil {
			_, err = exactly(encode(name))
		}
		if err == nil {
			to[name], err = input(from[name])
		}
	}
	return encode(to), err
}

// listOf is a list of at most so many, none of them null.
func listOf(most int, each member) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		var from []json.RawMessage
		if json.Unmarshal(raw, &from) != nil || len(from) > most {
			return nil, fmt.Errorf("it is no list of at most %d", most)
		}
		to := make([]json.RawMessage, 0, len(from))
		for _, item := range from {
			v, err := each(item)
			if err == nil && given(item) == nil {
				err = errors.New("one is null")
			}
			if err != nil {
				return nil, err
			}
			to = append(to, v)
		}
		return encode(to), nil
	}
}

// anyOf is one or the other; an error is the first one's, which is the usual.
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

// label is a text in one line, of which too much isn't shown.
func label(most int) member {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		s, ok := stringOf(raw)
		if !ok {
			return nil, errors.New("it is no text")
		}
		if s = text.Line(s); len(s) > most {
			s = text.First(s, most) + "…"
		}
		return encode(s), nil
	}
}

// exactly is a text that means something as it is, so that it is refused where it can't be shown so.
func exactly(raw json.RawMessage) (json.RawMessage, error) {
	s, ok := stringOf(raw)
	if !ok || len(s) > maxLabel || text.Safe(s) != s {
		return nil, fmt.Errorf("it is no text of at most %d printable bytes", maxLabel)
	}
	return encode(s), nil
}

func number(raw json.RawMessage) (json.RawMessage, error) {
	var n json.Number
	if json.Unmarshal(raw, &n) != nil || raw[0] == '"' || len(n) > maxLabel {
		return nil, errors.New("it is no number")
	}
	return encode(n), nil
}

// value is one of what an input can have.
func value(raw json.RawMessage) (json.RawMessage, error) {
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return encode(b), nil
	}
	return anyOf(exactly, number)(raw)
}

// stringOf is a text; null is none.
func stringOf(raw json.RawMessage) (string, bool) {
	var s *string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}
