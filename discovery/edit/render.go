package edit

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// quote returns a string as JSON has it, which TOML and YAML take too.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	text := strings.TrimSuffix(b.String(), "\n")
	return strings.ReplaceAll(text, "\x7f", `\u007f`) // which TOML takes only so
}

// A dialect is how a language has a value in a line.
type dialect struct {
	key, text      func(string) string
	is, open, shut string
}

var (
	inJSON = dialect{quote, quote, ": ", "{", "}"}
	inTOML = dialect{tomlKey, quote, " = ", "{ ", " }"}
	inYAML = dialect{yamlString, yamlString, ": ", "{", "}"}
)

// JSON returns a value as JSON, in a line.
func JSON(v config.Value) string { return inJSON.line(v) }

// line returns a value in a line.
func (l dialect) line(v config.Value) string {
	if s, ok := v.Text(); ok {
		return l.text(s)
	}
	var parts []string
	if list, ok := v.Array(); ok {
		for _, e := range list {
			parts = append(parts, l.line(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	o, ok := v.Object()
	switch {
	case !ok:
		text, _ := v.Literal()
		return text
	case len(o) == 0:
		return "{}"
	}
	for _, m := range o {
		parts = append(parts, l.member(m))
	}
	return l.open + strings.Join(parts, ", ") + l.shut
}

func (l dialect) member(m config.Member) string { return l.key(m.Name) + l.is + l.line(m.Value) }

// renderJSON returns a value as JSON, whose lines but the first are indented, or in a line. Arrays
// stand in a line.
func (d *document) renderJSON(v config.Value, indent, unit string, manyLines bool) string {
	o, _ := v.Object()
	if !manyLines || len(o) == 0 {
		return inJSON.line(v)
	}
	parts := make([]string, len(o))
	for i, m := range o {
		parts[i] = quote(m.Name) + ": " + d.renderJSON(m.Value, indent+unit, unit, true)
	}
	line := d.newline + indent
	return "{" + line + unit + strings.Join(parts, ","+line+unit) + line + "}"
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return quote(name)
}

func tomlKeys(path []string) string {
	keys := make([]string, len(path))
	for i, name := range path {
		keys[i] = tomlKey(name)
	}
	return strings.Join(keys, ".")
}

// plainYAML matches strings that YAML takes for strings without quotes.
var plainYAML = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./-]*$`)

// yamlWords are what YAML takes for something else than a string.
var yamlWords = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null|\.nan|[.]inf|\.+)$`)

func yamlString(s string) string {
	if plainYAML.MatchString(s) && !yamlWords.MatchString(s) && !strings.HasPrefix(s, ".") {
		return s
	}
	return quote(s)
}

// renderYAML returns a member as lines of a block mapping.
func (d *document) renderYAML(m config.Member, indent string) string {
	name := indent + yamlString(m.Name) + ":"
	if o, ok := m.Value.Object(); ok && len(o) > 0 {
		text := name + d.newline
		for _, inner := range o {
			text += d.renderYAML(inner, indent+"  ")
		}
		return text
	}
	return name + " " + inYAML.line(m.Value) + d.newline
}
