package edit

import (
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// json returns the splices that make a change in JSON.
func (d *document) json(c Change) ([]splice, error) {
	if strings.TrimSpace(d.text) == "" {
		text := d.renderJSON(nested(c.Path, element(c)), "", d.unit(), true) + d.newline
		return []splice{{0, len(d.text), text}}, nil
	}
	at, err := hujson.Parse([]byte(d.text))
	if err != nil {
		return nil, err // Apply has parsed it before
	}
	for i, name := range c.Path {
		o, ok := at.Value.(*hujson.Object)
		if !ok { // null
			return d.replace(at, nested(c.Path[i:], element(c))), nil
		}
		m := member(o, name)
		switch {
		case m < 0:
			return d.insert(at, &config.Member{Name: name, Value: nested(c.Path[i+1:], element(c))}), nil
		case i+1 == len(c.Path) && c.Value.Is("nothing"):
			return d.cut(at, m), nil
		}
		at = o.Members[m].Value
	}
	if _, isArray := at.Value.(*hujson.Array); c.Add && isArray {
		return d.insert(at, &config.Member{Value: c.Value}), nil
	}
	list, wanted := c.Value.Array()
	if a, ok := at.Value.(*hujson.Array); ok && wanted && len(list) == len(a.Elements)-1 {
		if i := removed(a, list); i >= 0 {
			return d.cut(at, i), nil
		}
	}
	return d.replace(at, element(c)), nil
}

// element returns what a change sets where there is nothing yet.
func element(c Change) config.Value {
	if c.Add {
		return config.List([]config.Value{c.Value})
	}
	return c.Value
}

func member(o *hujson.Object, name string) int {
	for i, m := range o.Members {
		if text, ok := m.Name.Value.(hujson.Literal); ok && text.String() == name {
			return i
		}
	}
	return -1
}

// removed returns the element that a list lacks of those of an array, -1 where they differ
// otherwise.
func removed(a *hujson.Array, list []config.Value) int {
	values := make([]config.Value, len(a.Elements))
	for i, e := range a.Elements {
		values[i] = config.FromJSON(e)
	}
	at := 0
	for at < len(list) && values[at].Equal(list[at]) {
		at++
	}
	if !config.List(values[at+1:]).Equal(config.List(list[at:])) {
		return -1
	}
	return at
}

// An item is a member of an object, or an element of an array.
type item struct {
	before     hujson.Extra // blanks and comments before it
	start, end int
	comma      int // the offset of the comma behind it, -1 for none
}

func items(v hujson.Value) (all []item) {
	add := func(before hujson.Extra, start int, value hujson.Value, last bool) {
		comma := value.EndOffset + len(value.AfterExtra)
		if last && value.AfterExtra == nil {
			comma = -1
		}
		all = append(all, item{before, start, value.EndOffset, comma})
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		for i, m := range v.Members {
			add(m.Name.BeforeExtra, m.Name.StartOffset, m.Value, i == len(v.Members)-1)
		}
	case *hujson.Array:
		for i, e := range v.Elements {
			add(e.BeforeExtra, e.StartOffset, e, i == len(v.Elements)-1)
		}
	}
	return all
}

// insert puts a member, or an element where it has no name, behind the last one of v.
func (d *document) insert(v hujson.Value, m *config.Member) []splice {
	all, open, end := items(v), v.StartOffset+1, v.EndOffset-1
	outer, manyLines := d.indent(v.StartOffset), strings.Contains(d.text[open:end], "\n")
	var made []splice
	at, after := open, ""
	if len(all) == 0 {
		whole := strings.TrimSpace(d.text)
		manyLines = manyLines || m.Name != "" && (whole == "{}" || strings.Contains(whole, "\n"))
	} else if last := all[len(all)-1]; last.comma >= 0 {
		at, after = last.comma+1, ","
	} else {
		at = last.end
		made = append(made, splice{at, at, ","})
	}
	at += len(strings.TrimRight(d.text[at:end], " \t\r\n")) // comments stay where they are
	inner := d.childIndent(all, outer)
	text := d.renderJSON(m.Value, inner, d.unitOf(outer, inner), manyLines)
	if m.Name != "" {
		text = quote(m.Name) + ": " + text
	}
	switch {
	case manyLines:
		text = d.newline + inner + text + after
		if len(all) == 0 && !strings.Contains(d.text[at:end], "\n") {
			text += d.newline + outer
		}
	case len(all) > 0:
		text = " " + text + after
	}
	return append(made, splice{at, at, text})
}

// cut removes an item of v with one comma, and leaves the comments.
func (d *document) cut(v hujson.Value, i int) []splice {
	all, open, shut := items(v), v.StartOffset+1, v.EndOffset-1
	it := all[i]
	if rest := d.text[open:it.start] + d.text[max(it.end, it.comma+1):shut]; len(all) == 1 &&
		strings.TrimSpace(rest) == "" {
		return []splice{{open, shut, ""}}
	}
	kept := strings.TrimRight(string(it.before), " \t\r\n")
	start, end := it.start-len(it.before)+len(kept), max(it.end, it.comma+1)
	behind := strings.TrimLeft(d.text[end:], " \t\r")
	lastLine := kept[strings.LastIndexByte(kept, '\n')+1:]
	if strings.Contains(lastLine, "//") && !strings.HasPrefix(behind, "\n") {
		start = d.lineStart(it.start) // what follows is not to become a part of the comment
	}
	made := []splice{{start, it.end, ""}}
	switch {
	case it.comma >= 0:
		made = append(made, splice{it.comma, it.comma + 1, ""})
	case i > 0:
		made = append(made, splice{all[i-1].comma, all[i-1].comma + 1, ""})
	}
	return made
}

func (d *document) replace(v hujson.Value, with config.Value) []splice {
	outer := d.indent(v.StartOffset)
	text := d.renderJSON(with, outer, d.unit(), strings.Contains(d.text, "\n"))
	return []splice{{v.StartOffset, v.EndOffset, text}}
}

// childIndent returns the indentation of the items of a value that is indented by outer.
func (d *document) childIndent(all []item, outer string) string {
	for _, it := range all {
		if line := strings.LastIndexByte(string(it.before), '\n'); line >= 0 {
			return d.indent(it.start)
		}
	}
	return outer + d.unit()
}

// unitOf returns what a level is indented by.
func (d *document) unitOf(outer, inner string) string {
	if unit, ok := strings.CutPrefix(inner, outer); ok && unit != "" {
		return unit
	}
	return d.unit()
}

// unit returns what the document indents its first level by.
func (d *document) unit() string {
	for line := range strings.Lines(d.text) {
		blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if rest := strings.TrimSpace(line); blanks != "" && strings.HasPrefix(rest, `"`) {
			return blanks
		}
	}
	return "  "
}
