package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPattern bounds one pattern, in bytes.
const maxPattern = 1 << 10

// glob is a pattern SERVER.TOOL, of two halves that are matched each with its own name. So nothing
// in one half ever reaches over the dot into the other: g* is no pattern, and g*.read can't match
// tool "x" of server "g.read".
type glob struct {
	text         string
	line         int // of the key in the file that has it; 0 where it is of none
	server, tool []element
}

// element is one character of a pattern.
type element struct {
	kind byte // 0: this very character; '*': any number of any; '?': any one
	char rune
}

// parseGlob reads a pattern: * stands for any characters, ? for one, \ takes the next one as it is.
// The first dot parts the server from the tool; dots of a server's name are written \. or within
// double quotes, as in "my.server".*
func parseGlob(text string) (glob, error) {
	g := glob{text: text}
	switch {
	case len(text) > maxPattern:
		return g, fmt.Errorf("the pattern is %d bytes long; at most %d are allowed", len(text), maxPattern)
	case !utf8.ValidString(text):
		return g, errors.New("the pattern is not UTF-8")
	}
	halves := [][]element{nil}
	var quoted, escaped bool
	for _, c := range text {
		last := &halves[len(halves)-1]
		switch {
		case escaped:
			*last, escaped = append(*last, element{char: c}), false
		case c == '\\':
			escaped = true
		case len(halves) == 1 && c == '"':
			quoted = !quoted
		case quoted:
			*last = append(*last, element{char: c})
		case c == '.' && len(halves) == 1:
			halves = append(halves, nil)
		case c == '*' && len(*last) > 0 && (*last)[len(*last)-1].kind == '*': // says nothing more
		case c == '*', c == '?':
			*last = append(*last, element{kind: byte(c)})
		default:
			*last = append(*last, element{char: c})
		}
	}
	switch {
	case escaped:
		return g, fmt.Errorf("pattern %q ends with a backslash that stands before nothing", text)
	case quoted:
		return g, fmt.Errorf("pattern %q has a quote that is not closed", text)
	case len(halves) == 1:
		return g, fmt.Errorf("pattern %q has no dot: say SERVER.TOOL, such as %q for all tools of a server", text,
			strings.Trim(text, `"`)+".*")
	case len(halves[0]) == 0 || len(halves[1]) == 0:
		return g, fmt.Errorf("pattern %q has nothing before or after its dot: say SERVER.TOOL, with * for any",
			text)
	}
	g.server, g.tool = halves[0], halves[1]
	return g, nil
}

func (g glob) match(t Tool) bool { return match(g.server, t.Server) && match(g.tool, t.Name) }

// match takes time in proportion to the product of both lengths at most: after a mismatch only the
// last star takes one more.
func match(pattern []element, name string) bool {
	chars := []rune(name)
	p, c, star, from := 0, 0, -1, 0
	for c < len(chars) {
		switch {
		case p < len(pattern) && pattern[p].kind == '*':
			star, from = p, c
			p++
		case p < len(pattern) && (pattern[p].kind == '?' || pattern[p].kind == 0 && pattern[p].char == chars[c]):
			p, c = p+1, c+1
		case star >= 0:
			from++
			p, c = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p].kind == '*' {
		p++
	}
	return p == len(pattern)
}

// Literal returns the pattern that matches this tool and no other.
func Literal(t Tool) string {
	escape := func(s, special string) string {
		var b strings.Builder
		for _, c := range s {
			if strings.ContainsRune(special, c) {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
		}
		return b.String()
	}
	return escape(t.Server, `*?\".`) + "." + escape(t.Name, `*?\`)
}

// ErrPattern says of a text that it is for any number of tools.
var ErrPattern = errors.New("it is a pattern, not the name of one tool")

// Exact returns the one tool that a pattern such as Literal's has; the error is ErrPattern where it has
// * or ?, which stand for any.
func Exact(pattern string) (Tool, error) {
	g, err := parseGlob(pattern)
	if err != nil {
		return Tool{}, err
	}
	server, ok := exact(g.server)
	tool, also := exact(g.tool)
	if !ok || !also {
		return Tool{}, ErrPattern
	}
	return Tool{Server: server, Name: tool}, nil
}

// exact returns the only name that half of a pattern matches; false where there are others.
func exact(half []element) (string, bool) {
	var b strings.Builder
	for _, e := range half {
		if e.kind != 0 {
			return "", false
		}
		b.WriteRune(e.char)
	}
	return b.String(), true
}

// Matcher returns which tools a pattern has.
func Matcher(pattern string) (func(Tool) bool, error) {
	g, err := parseGlob(pattern)
	return g.match, err
}
