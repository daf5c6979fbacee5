package stubs

import (
	"encoding/json"
	"slices"
	"strings"
)

// pyType is a union of named types such as list[str], each of them once, the values of a Literal,
// and None. At least one of these is there.
type pyType struct {
	names    []string
	literals []string
	none     bool
}

func (t pyType) text() string {
	parts := slices.Clone(t.names)
	if t.literals != nil {
		parts = append(parts, "Literal["+strings.Join(t.literals, ", ")+"]")
	}
	if t.none {
		parts = append(parts, "None")
	}
	return strings.Join(parts, " | ")
}

func (t pyType) has(name string) bool { return slices.Contains(t.names, name) }

func named(name string) pyType {
	if name == "None" {
		return pyType{none: true}
	}
	return pyType{names: []string{name}}
}

var anything = named("Any")

// union joins types; Any takes in all others.
func union(types ...pyType) (out pyType) {
	seen := map[string]bool{} // names and literals: these have quotes or digits, or are True and False
	add := func(to *[]string, texts []string) {
		for _, text := range texts {
			if !seen[text] {
				seen[text] = true
				*to = append(*to, text)
			}
		}
	}
	for _, t := range types {
		add(&out.names, t.names)
		add(&out.literals, t.literals)
		out.none = out.none || t.none
	}
	switch {
	case seen["Any"] || len(out.names) > maxUnion:
		return anything
	case len(seen) == 0:
		out.none = true
	}
	return out
}

// builder makes types of the schemas of one root, and collects the classes they need.
type builder struct {
	module   *module
	document *document
	base     string // the beginning of the names of its classes
	classes  []class
	refs     map[string]pyType // of references to objects: known, or being made
	active   map[string]bool   // references being followed
	left     int
}

func newBuilder(m *module, root any, base string) *builder {
	return &builder{
		module:   m,
		document: newDocument(root),
		base:     base,
		refs:     map[string]pyType{},
		active:   map[string]bool{},
		left:     maxTypes,
	}
}

// typeOf returns the type of the values that a schema allows, or a wider one. hint is for the name
// of a class.
func (b *builder) typeOf(schema any, hint string, depth int) pyType {
	s, ok := schema.(*object)
	if b.left--; !ok || b.left < 0 || !b.document.spend(1) || depth > maxDepth {
		return anything
	}
	if ref, ok := s.get("$ref").(string); ok {
		return b.reference(ref, hint, depth)
	}
	s = b.document.effective(s)
	if s.has("const") {
		return b.literal([]any{s.get("const")})
	}
	if values := s.list("enum"); len(values) > 0 {
		return b.literal(values)
	}
	t := b.ofKinds(s, hint, depth)
	if s.get("nullable") == true {
		t = union(t, named("None"))
	}
	return t
}

func (b *builder) reference(ref, hint string, depth int) pyType {
	if t, ok := b.refs[ref]; ok {
		return t
	}
	if b.active[ref] || !b.document.spendText(len(ref)) {
		return anything
	}
	target, ok := resolve(b.document.root, ref)
	if !ok {
		return anything
	}
	if last := ref[strings.LastIndexAny(ref, "/#")+1:]; last != "" {
		hint = last
	} else if ref == "#" {
		hint = "Input"
	}
	if o, ok := target.(*object); ok && !o.has("$ref") {
		if o = b.document.effective(o); isRecord(o) {
			name := b.className(hint)
			b.refs[ref] = named(name)
			b.record(o, name, depth)
			return b.refs[ref]
		}
	}
	b.active[ref] = true
	defer delete(b.active, ref)
	return b.typeOf(target, hint, depth+1)
}

// ofKinds returns the type by the keyword type, or by the keywords that imply one.
func (b *builder) ofKinds(s *object, hint string, depth int) pyType {
	branches := append(slices.Clone(s.list("anyOf")), s.list("oneOf")...)
	if !b.document.spend(len(s.list("type")) + len(branches)) {
		return anything
	}
	var types []pyType
	for _, kind := range kinds(s) {
		types = append(types, b.ofKind(kind, s, hint, depth))
	}
	if len(types) > 0 {
		return union(types...)
	}
	for _, branch := range branches {
		types = append(types, b.typeOf(branch, hint, depth+1))
	}
	if len(types) == 0 {
		return anything
	}
	return union(types...)
}

func kinds(s *object) []string {
	switch t := s.get("type").(type) {
	case string:
		return []string{t}
	case []any:
		return s.strings("type")
	}
	switch {
	case len(s.child("properties").keys) > 0:
		return []string{"object"}
	case s.has("items") || s.has("prefixItems"):
		return []string{"array"}
	}
	return nil
}

var scalars = map[string]string{
	"string":  "str",
	"integer": "int",
	"number":  "float",
	"boolean": "bool",
	"null":    "None",
}

func (b *builder) ofKind(kind string, s *object, hint string, depth int) pyType {
	if name, ok := scalars[kind]; ok {
		return named(name)
	}
	switch {
	case kind == "array":
		item := anything
		if items, ok := s.get("items").(*object); ok && !s.has("prefixItems") {
			item = b.typeOf(items, hint, depth+1)
		}
		return named("list[" + item.text() + "]")
	case kind != "object":
		return anything
	case isRecord(s):
		name := b.className(hint)
		b.record(s, name, depth)
		return named(name)
	}
	if extra, ok := s.get("additionalProperties").(*object); ok && len(s.child("properties").keys) == 0 {
		return named("dict[str, " + b.typeOf(extra, hint, depth+1).text() + "]")
	}
	return named("dict[str, Any]")
}

// isRecord reports whether an object has members that are known by name, and no others of a type of
// their own.
func isRecord(s *object) bool {
	if len(s.list("type")) > 1 {
		return false
	}
	if k := kinds(s); len(k) != 1 || k[0] != "object" || len(s.child("properties").keys) == 0 ||
		s.has("const") ||
		s.has("enum") {
		return false
	}
	extra, ok := s.get("additionalProperties").(*object)
	return (!ok || len(extra.keys) == 0) && !s.has("patternProperties")
}

// literal returns the type of an enum's values.
func (b *builder) literal(values []any) pyType {
	types, literals := []pyType{}, pyType{}
	exact := len(values) <= maxLiterals
	for _, v := range values {
		text, kind := literalText(v)
		switch {
		case !b.document.spendText(len(text)):
			return anything
		case kind != "None" && text != "" && exact:
			literals.literals = append(literals.literals, text)
		default:
			types = append(types, named(kind))
		}
	}
	return union(append(types, literals)...)
}

// literalText returns a JSON value as a Literal can hold it, empty where it can't, and its type.
func literalText(v any) (text, kind string) {
	switch v := v.(type) {
	case nil:
		return "None", "None"
	case bool:
		if v {
			return "True", "bool"
		}
		return "False", "bool"
	case string:
		return quote(v), "str"
	case json.Number:
		if text, ok := integer(v); ok {
			return text, "int"
		}
		return "", "float"
	case []any:
		return "", "list[Any]"
	}
	return "", "dict[str, Any]"
}

// integer returns a number that is written as one, short enough for any Python to read.
func integer(n json.Number) (string, bool) {
	text := n.String()
	if text == "-0" {
		text = "0"
	}
	return text, len(text) <= 1000 && !strings.ContainsAny(text, ".eE")
}
