package policy

import (
	"errors"
	"fmt"
	"regexp"
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
	server, tool half
}

// half is a pattern for one name.
type half struct {
	name string         // the only one that it matches, where wild is nil
	wild *regexp.Regexp // whose matching takes time in proportion to the name's length
}

func (h half) match(name string) bool {
	if h.wild == nil {
		return h.name == name
	}
	return h.wild.MatchString(name)
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
	var names, exprs [2]strings.Builder
	var wild [2]bool
	var quoted, escaped bool
	i := 0 // which half is read
	for _, c := range text {
		expr := regexp.QuoteMeta(string(c))
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
			continue
		case i == 0 && c == '"':
			quoted = !quoted
			continue
		case quoted:
		case i == 0 && c == '.':
			i = 1
			continue
		case c == '*':
			expr, wild[i] = ".*", true
		case c == '?':
			expr, wild[i] = ".", true
		}
		names[i].WriteRune(c)
		exprs[i].WriteString(expr)
	}
	switch {
	case escaped:
		return g, fmt.Errorf("pattern %q ends with a backslash that stands before nothing", text)
	case quoted:
		return g, fmt.Errorf("pattern %q has a quote that is not closed", text)
	case i == 0:
		return g, fmt.Errorf("pattern %q has no dot: say SERVER.TOOL, such as %q for all tools of a server", text,
			strings.Trim(text, `"`)+".*")
	case exprs[0].Len() == 0 || exprs[1].Len() == 0:
		return g, fmt.Errorf("pattern %q has nothing before or after its dot: say SERVER.TOOL, with * for any",
			text)
	}
	for i, h := range []*half{&g.server, &g.tool} {
		h.name = names[i].String()
		if wild[i] {
			h.wild = regexp.MustCompile(`(?s)^` + exprs[i].String() + `$`)
		}
	}
	return g, nil
}

func (g glob) match(t Tool) bool { return g.server.match(t.Server) && g.tool.match(t.Name) }

// Literal returns the pattern that matches this tool and no other.
func Literal(t Tool) string {
	server := strings.NewReplacer(`*`, `\*`, `?`, `\?`, `\`, `\\`, `"`, `\"`, `.`, `\.`)
	tool := strings.NewReplacer(`*`, `\*`, `?`, `\?`, `\`, `\\`)
	return server.Replace(t.Server) + "." + tool.Replace(t.Name)
}

// ErrPattern says of a text that it is for any number of tools.
var ErrPattern = errors.New("it is a pattern, not the name of one tool")

// Exact returns the one tool that a pattern such as Literal's has; the error is ErrPattern where it
// has * or ?, which stand for any.
func Exact(pattern string) (Tool, error) {
	g, err := parseGlob(pattern)
	if err == nil && (g.server.wild != nil || g.tool.wild != nil) {
		err = ErrPattern
	}
	if err != nil {
		return Tool{}, err
	}
	return Tool{Server: g.server.name, Name: g.tool.name}, nil
}

// Matcher returns which tools a pattern has.
func Matcher(pattern string) (func(Tool) bool, error) {
	g, err := parseGlob(pattern)
	return g.match, err
}
