package stubs

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parameter is one argument of a tool.
type parameter struct {
	name     string // as it is written before a "="
	property string // as the server knows it
	typ      pyType
	required bool
	standard string // the default as Python text; "None" for none
	schema   any
	notes    string // what the signature doesn't show, on one line
}

// declared returns the parameter as it stands in a signature.
func (p parameter) declared() string {
	switch {
	case p.required:
		return p.name + ": " + p.typ.text()
	case p.standard == "None" && !p.typ.none && !p.typ.has("Any"):
		return p.name + ": " + p.typ.text() + " | None = None"
	}
	return p.name + ": " + p.typ.text() + " = " + p.standard
}

// parameters returns a tool's arguments, required ones first, both in the order of the schema, and
// the name for further ones.
func (b *builder) parameters(input any) ([]parameter, string) {
	s, ok := input.(*object)
	if !ok {
		return nil, "kwargs"
	}
	s = b.document.alternatives(b.document.effective(s))
	more := open(s) || b.document.left < 0 // what wasn't read may have others
	properties, required := s.child("properties"), setOf(s.strings("required"))
	var first, then []string
	for _, name := range properties.keys {
		if required[name] {
			first = append(first, name)
		} else {
			then = append(then, name)
		}
	}
	for _, name := range s.strings("required") {
		if !properties.has(name) && required[name] {
			first = append(first, name)
			required[name] = false
		}
	}
	names := nameSet{}
	var out []parameter
	for i, property := range append(slices.Clone(first), then...) {
		if len(out) == maxParameters {
			return out, names.free("kwargs")
		}
		p := parameter{
			name:     names.free(identifier(property)),
			property: property,
			required: i < len(first),
			schema:   properties.get(property),
		}
		p.typ = b.typeOf(p.schema, property, 0)
		if p.required {
			p.notes = b.document.remark(p.schema)
		} else {
			p.notes = p.standardOf(b.document)
		}
		out = append(out, p)
	}
	if more {
		return out, names.free("kwargs")
	}
	return out, ""
}

// standardOf sets the default, where Python text can hold it and the type allows it, and gives the
// notes.
func (p *parameter) standardOf(d *document) string {
	p.standard = "None"
	notes := d.remark(p.schema)
	s, ok := p.schema.(*object)
	if !ok {
		return notes
	}
	s = d.effective(s)
	if s.get("default") == nil {
		return notes
	}
	if text, ok := p.typ.standard(s.get("default")); ok && d.spendText(len(text)) {
		p.standard = text
		return notes
	}
	if text := d.compact(s.get("default")); text != "" {
		return joinNotes(notes, "default "+text)
	}
	return notes
}

// standard returns a scalar as Python text, if it is of the type.
func (t pyType) standard(v any) (string, bool) {
	text, kind := literalText(v)
	switch {
	case text != "" && (t.has(kind) || t.has("Any") || slices.Contains(t.literals, text)):
		return text, true
	case kind == "int" && t.has("float"):
		return text, true
	case kind == "float" && t.has("float"):
		f, err := strconv.ParseFloat(v.(json.Number).String(), 64)
		return strconv.FormatFloat(f, 'g', -1, 64), err == nil
	}
	return "", false
}

var notInIdentifier = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// identifier returns a property's name as it can be written before a "=".
func identifier(name string) string {
	text := notInIdentifier.ReplaceAllString(name, "_")
	if strings.HasPrefix(text, "__") {
		text = "_" + strings.TrimLeft(text, "_") // two would make it a parameter by position only
	}
	if text == "" {
		text = "_"
	}
	if text[0] >= '0' && text[0] <= '9' {
		text = "_" + text
	}
	if slices.Contains(keywords, text) {
		text += "_"
	}
	return text
}

var keywords = strings.Fields(
	`False None True and as assert async await break class continue def del elif else except finally for
from global if import in is lambda nonlocal not or pass raise return try while with yield __debug__`,
)

// nameSet gives each parameter a name of its own.
type nameSet map[string]bool

func (n nameSet) free(name string) string {
	unique, between := name, "__"
	if name == "_" {
		between = "" // see identifier
	}
	for i := 2; n[unique]; i++ {
		unique = name + between + strconv.Itoa(i)
	}
	n[unique] = true
	return unique
}
