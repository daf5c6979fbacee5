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

// readHalf reads a pattern of one name: * stands for any characters, ? for one, \ takes the next
// one as it is. A server's ends at the first dot, and what is behind that is rest; dots of its name
// are written \. or within double quotes.
func readHalf(text string, server bool) (h half, rest string, dotted bool, err error) {
	var name, expr strings.Builder
	var quoted, escaped, wild bool
	for i, c := range text {
		this := regexp.QuoteMeta(string(c))
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
			continue
		case server && c == '"':
			quoted = !quoted
			continue
		case quoted:
		case server && c == '.':
			rest, dotted = text[i+1:], true
		case c == '*':
			this, wild = ".*", true
		case c == '?':
			this, wild = ".", true
		}
		if dotted {
			break
		}
		name.WriteRune(c)
		expr.WriteString(this)
	}
	switch {
	case escaped:
		return h, "", false, errors.New("ends with a backslash that stands before nothing")
	case quoted:
		return h, "", false, errors.New("has a quote that is not closed")
	}
	h.name = name.String()
	if wild {
		h.wild = regexp.MustCompile(`(?s)^` + expr.String() + `$`)
	}
	return h, rest, dotted, nil
}

// checkPattern returns why a text can't be a pattern, or nil.
func checkPattern(text string) error {
	switch {
	case len(text) > maxPattern:
		return fmt.Errorf("the pattern is %d bytes long; at most %d are allowed", len(text), maxPattern)
	case !utf8.ValidString(text):
		return errors.New("the pattern is not UTF-8")
	}
	return nil
}

// parseGlob reads a pattern. The first dot parts the server from the tool, as in "my.server".*
func parseGlob(text string) (glob, error) {
	g := glob{text: text}
	if err := checkPattern(text); err != nil {
		return g, err
	}
	server, rest, dotted, err := readHalf(text, true)
	if err == nil && !dotted {
		return g, fmt.Errorf("pattern %q has no dot: say SERVER.TOOL, such as %q for all tools of a server", text,
			strings.Trim(text, `"`)+".*")
	}
	var tool half
	if err == nil {
		tool, _, _, err = readHalf(rest, false)
	}
	switch {
	case err != nil:
		return g, fmt.Errorf("pattern %q %w", text, err)
	case server.name == "" || tool.name == "":
		return g, fmt.Errorf("pattern %q has nothing before or after its dot: say SERVER.TOOL, with * for any",
			text)
	}
	g.server, g.tool = server, tool
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
