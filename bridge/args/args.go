// Package args decodes what a caller passes to one of the bridge's tools. Its errors are sentences
// for a model: what is wrong with which argument, and what to pass.
package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// MaxEcho bounds how much of a name that a caller made up an error repeats, in characters.
const MaxEcho = 200

// An Error says in one sentence what is wrong with a call's arguments and what to do.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// Errorf returns an Error.
func Errorf(format string, a ...any) error { return Error(fmt.Sprintf(format, a...)) }

// Fields returns the arguments of a tool by name. It leaves out those that are null and refuses a
// name that is repeated or isn't among names.
func Fields(raw json.RawMessage, tool string, names []string) (map[string]json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return given, nil
	case !json.Valid(raw):
		return nil, Errorf(`the arguments are no valid JSON; pass an object such as {%q: "…"}`, names[0])
	case raw[0] != '{':
		return nil, Errorf(`the arguments must be an object such as {%q: "…"}, not %s`, names[0], Kind(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // the brace; the rest is valid too
	seen := map[string]bool{}
	for dec.More() {
		t, _ := dec.Token()
		name, _ := t.(string)
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, Errorf("argument %q can't be read: %v", text.Brief(name, MaxEcho), err)
		}
		if !slices.Contains(names, name) {
			takes := names[len(names)-1]
			if others := names[:len(names)-1]; len(others) > 0 {
				takes = strings.Join(others, ", ") + " and " + takes
			}
			return nil, Errorf("%s has no argument %q%s; it takes %s", tool, text.Brief(name, MaxEcho),
				text.DidYouMean(name, names), takes)
		}
		if seen[name] {
			return nil, Errorf("argument %q is given twice; give it once", name)
		}
		seen[name] = true
		if string(v) != "null" {
			given[name] = v
		}
	}
	return given, nil
}

// Digits returns the text of a number, also of one that is a string, as some models write it.
func Digits(v json.RawMessage) string {
	var quoted string
	if json.Unmarshal(v, &quoted) == nil {
		return quoted
	}
	return string(v)
}

// Integer returns a whole number, or absent where v is nil.
func Integer(name string, v json.RawMessage, absent int64) (int64, error) {
	if v == nil {
		return absent, nil
	}
	n, err := strconv.ParseInt(Digits(v), 10, 64)
	if err != nil {
		return 0, Errorf("argument %q must be a whole number such as %d, not %.40s", name, max(absent, 1), v)
	}
	return n, nil
}

// Kind returns the JSON type of a valid value with its article, such as "a list".
func Kind(v json.RawMessage) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
