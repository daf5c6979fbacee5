package stubs

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

const (
	lineWidth      = 110
	maxLine        = 300     // characters of a note
	maxDescription = 8 << 10 // bytes of a tool's description
)

// quote returns s as a Python string literal on one line. What doesn't print, or is taken for a
// line's end or a change of direction, is escaped: Go's escapes are Python's too.
func quote(s string) string { return text.Escape(strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))) }

// docstring returns text between triple quotes, each of its lines after the first indented. It ends
// where it should whatever the text holds.
func docstring(s, indent string) string {
	s = strings.ReplaceAll(text.Safe(s), `\`, `\\`)
	body := strings.TrimRight(s, `"`)
	s = strings.ReplaceAll(body, `"""`, `\"\"\"`) + strings.Repeat(`\"`, len(s)-len(body))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " \t")
		if i > 0 && line != "" {
			line = indent + line
		}
		lines[i] = line
	}
	end := `"""`
	if len(lines) > 1 {
		end = "\n" + indent + end
	}
	return `"""` + strings.Join(lines, "\n") + end
}

// oneLine returns foreign text on one line, of at most n characters.
func oneLine(s string, n int) string { return text.Brief(text.Line(s), n) }

// compact returns a JSON value on one line; empty once the budget is spent.
func (d *document) compact(v any) string {
	if d.left < 0 {
		return ""
	}
	encoded := encode(v)
	if !d.spendText(len(encoded)) {
		return ""
	}
	return oneLine(string(encoded), 100)
}

func encode(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	encodeTo(&out, e, v)
	return out.Bytes()
}

func encodeTo(out *bytes.Buffer, e *json.Encoder, v any) {
	switch v := v.(type) {
	case *object:
		out.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				out.WriteString(", ")
			}
			encodeTo(out, e, key)
			out.WriteString(": ")
			encodeTo(out, e, v.get(key))
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteString(", ")
			}
			encodeTo(out, e, item)
		}
		out.WriteByte(']')
	default:
		if e.Encode(v) == nil { // it always is: a scalar that came out of a decoder
			out.Truncate(out.Len() - 1) // the line's end
		}
	}
}

// bounds are the keywords that say more than a type can, in the order in which they are told.
var bounds = []string{
	"format", "pattern", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
}

// remark returns what a schema says besides its type: its description and bounds, on one line.
func (d *document) remark(schema any) string {
	s, ok := schema.(*object)
	if !ok {
		return ""
	}
	s = d.effective(s)
	about, _ := s.get("description").(string)
	if !d.spendText(len(about)) {
		return ""
	}
	var also []string
	for _, key := range bounds {
		switch v := s.get(key).(type) {
		case string, json.Number, bool:
			if shown := d.compact(v); v != false && shown != "" {
				also = append(also, key+" "+shown)
			}
		}
	}
	return joinNotes(oneLine(about, maxLine), strings.Join(also, ", "))
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " (" + b + ")"
}

// documentation returns a tool's docstring: what the server says of it, and of each parameter what
// the signature doesn't show.
func documentation(alias string, t entrypoint.Tool, parameters []parameter) string {
	said := strings.TrimSpace(t.Description)
	if len(said) > maxDescription {
		said = text.First(said, maxDescription) + " […]"
	}
	if t.OriginalName != "" && t.OriginalName != alias {
		own := quote(oneLine(t.OriginalName, maxLine))
		said = strings.TrimSpace(said + "\n\nThe server's own name of it is " + own + ".")
	}
	var lines []string
	for _, p := range parameters {
		name := p.name
		if p.name != p.property {
			name += " (" + quote(oneLine(p.property, maxLine)) + ")"
		}
		if p.notes != "" || p.name != p.property {
			lines = append(lines, strings.TrimRight("    "+name+": "+p.notes, " "))
		}
	}
	if lines == nil {
		return said
	}
	return strings.TrimSpace(said + "\n\nParameters:\n" + strings.Join(lines, "\n"))
}
