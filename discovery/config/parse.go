package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const maxDepth = 200 // of nested objects and arrays: the parser recurses

// IsYAML reports whether a name is of a YAML file.
func IsYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Parse returns the object that a file of that name holds, whether it is standard JSON (or not JSON
// at all), or why it holds none. JSON may have comments and trailing commas. A refusal quotes no
// more of the file than one character.
func Parse(name string, data []byte) (root Object, standard bool, bad Refusal) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	blank := len(bytes.TrimSpace(data)) == 0
	utf16 := bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
	switch {
	case utf16:
		return nil, false, Refusal{"it is written in UTF-16", "save it as UTF-8"}
	case bytes.IndexByte(data, 0) >= 0:
		return nil, false, Refusal{"it has a NUL byte" + at(data, bytes.IndexByte(data, 0)),
			"save it as UTF-8 text"}
	case !utf8.Valid(data):
		return nil, false, Refusal{"it is not UTF-8" + at(data, bytes.IndexRune(data, utf8.RuneError)),
			"save it as UTF-8"}
	case strings.HasSuffix(name, ".toml"):
		root, bad = parseTOML(data)
		return root, true, bad
	case IsYAML(name):
		root, bad = parseYAML(data)
		return root, true, bad
	case blank:
		return nil, false, Refusal{"it is empty", "write {} into it, or remove it"}
	}
	return parseJSON(data)
}

func parseJSON(data []byte) (root Object, standard bool, bad Refusal) {
	if i := tooDeep(data); i >= 0 {
		return nil, false, Refusal{fmt.Sprintf("it nests more than %d levels deep%s", maxDepth, at(data, i)),
			"correct it there"}
	}
	v, err := hujson.Parse(data)
	if err != nil {
		what, where := syntax(err)
		return nil, false, Refusal{"it is not valid JSON: " + what + where, "correct it there"}
	}
	root, ok := FromJSON(v).Object()
	if !ok {
		return nil, false, Refusal{"it holds " + FromJSON(v).Kind() + ", not an object",
			`write {"mcpServers": {…}}`}
	}
	return root, v.IsStandard(), Refusal{}
}

// nonstandard returns where plain JSON ends in a file that has comments or trailing commas.
func nonstandard(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var e *json.SyntaxError
	if err := json.Unmarshal(data, new(any)); errors.As(err, &e) && e.Offset > 0 {
		return at(data, int(e.Offset)-1)
	}
	return ""
}

// syntax returns an error of the parser without its quotes from the file: a malformed literal may
// be a secret.
func syntax(err error) (what, where string) {
	var line, column int
	if _, e := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); e == nil {
		where = fmt.Sprintf(" at line %d, column %d", line, column)
	}
	inner := errors.Unwrap(err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early", where
	case inner != nil && strings.HasPrefix(inner.Error(), "invalid character "):
		return text.Escape(inner.Error()), where
	}
	return "a value is malformed", where
}

// at returns a position as editors count it: lines and bytes of a line, from one.
func at(data []byte, offset int) string {
	before := data[:offset]
	return fmt.Sprintf(" at line %d, column %d", 1+bytes.Count(before, []byte("\n")),
		offset-bytes.LastIndexByte(before, '\n'))
}

// tooDeep returns where data nests deeper than maxDepth, -1 if nowhere. It reads strings and
// comments as the parser does, which has no such limit and would run out of stack.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			end := ""
			switch {
			case bytes.HasPrefix(data[i:], []byte("//")):
				end = "\n"
			case bytes.HasPrefix(data[i:], []byte("/*")):
				end = "*/"
			default:
				return -1 // the parser stops here
			}
			n := bytes.Index(data[i+2:], []byte(end))
			if n < 0 {
				return -1
			}
			i += 2 + n + len(end) - 1
		}
	}
	return -1
}
