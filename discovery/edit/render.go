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

// JSON returns a value as JSON, in a line.
func JSON(v config.Value) string { return new(document).renderJSON(v, "", "", false) }

func scalar(v config.Value) string {
	if s, ok := v.Text(); ok {
		return quote(s)
	}
	text, _ := v.Literal()
	return text
}

// renderMember returns a member, or a value without a name, as JSON.
func (d *document) renderMember(m config.Member, indent, unit string, manyLines bool) string {
	text := d.renderJSON(m.Value, indent, unit, manyLines)
	if m.Name == "" {
		return text
	}
	return quote(m.Name) + ": " + text
}

// renderJSON returns a value as JSON, whose lines but the first are indented. Arrays stand in a
// line.
func (d *document) renderJSON(v config.Value, indent, unit string, manyLines bool) string {
	if list, ok := v.Array(); ok {
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = d.renderJSON(e, indent, unit, false)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	o, ok := v.Object()
	switch {
	case !ok:
		return scalar(v)
	case len(o) == 0:
		return "{}"
	}
	parts := make([]string, len(o))
	for i, m := range o {
		parts[i] = quote(m.Name) + ": " + d.renderJSON(m.Value, indent+unit, unit, manyLines)
	}
	if !manyLines {
		return "{" + strings.Join(parts, ", ") + "}"
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

// renderTOML returns a value as TOML, in a line.
func renderTOML(v config.Value) string {
	if list, ok := v.Array(); ok {
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = renderTOML(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	o, ok := v.Object()
	if !ok {
		return scalar(v)
	}
	parts := make([]string, len(o))
	for i, m := range o {
		parts[i] = tomlKey(m.Name) + " = " + renderTOML(m.Value)
	}
	if len(parts) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
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
	return name + " " + flowYAML(m.Value) + d.newline
}

// flowYAML returns a value in a line.
func flowYAML(v config.Value) string {
	if s, ok := v.Text(); ok {
		return yamlString(s)
	}
	if list, ok := v.Array(); ok {
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = flowYAML(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	o, ok := v.Object()
	if !ok {
		return scalar(v)
	}
	parts := make([]string, len(o))
	for i, m := range o {
		parts[i] = yamlString(m.Name) + ": " + flowYAML(m.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
