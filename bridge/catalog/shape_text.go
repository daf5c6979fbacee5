package catalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// known returns the shape without the keys that may be data: what is written of it.
func (s *shape) known() *shape {
	if s == nil {
		return s
	}
	out := &shape{Scalars: s.Scalars, Any: s.Any, Empty: s.Empty, Item: s.Item.known()}
	for _, f := range s.Fields {
		if !f.once {
			out.Fields = append(out.Fields, shapeField{Key: f.Key, Shape: f.Shape.known(), Optional: f.Optional})
		}
	}
	if s.isMapping() || !areFields(out.Fields) {
		out.Fields = nil
		if s.Value != nil || len(s.Fields) > 0 {
			out.Value, out.Unsure = s.values().known(), !s.isMapping()
		}
	}
	return out
}

// usualFields are names of fields that records of texts have. A mapping by people, places or
// projects hardly has one of them as a key.
var usualFields = []string{
	"content", "description", "email", "id", "key", "kind", "login", "name", "path", "status", "text", "title",
	"type", "uri", "url",
}

// areFields reports whether an object with these keys is a record, and not a mapping.
func areFields(fields []shapeField) bool {
	texts, named := true, false
	for i, f := range fields {
		kinds := f.Shape.kinds()
		texts = texts && kinds&^isStr == 0
		named = named || slices.Contains(usualFields, f.Key)
		for _, other := range fields[:i] {
			if also := other.Shape.kinds(); kinds != 0 && also != 0 && kinds&also == 0 {
				return true
			}
		}
	}
	return texts && named
}

// kinds returns which kinds of values were seen, where all numbers are one kind and null is no
// kind.
func (s *shape) kinds() int {
	kinds := s.Scalars &^ isNull
	if kinds&isFloat != 0 {
		kinds = kinds&^isFloat | isInt
	}
	if s.Item != nil {
		kinds |= isList
	}
	if s.isObject() {
		kinds |= isObjects
	}
	return kinds
}

var (
	fieldName = regexp.MustCompile(`^[_a-z][A-Za-z0-9_-]{0,39}$`)
	fieldWord = regexp.MustCompile(`[A-Z]*[a-z]+|[A-Z]+`)
	notField  = regexp.MustCompile(`\d.*\d.*\d|^[0-9a-fA-F-]{8,}$|[a-z]{21}|[A-Z]{21}`) // ids, dates, hashes
)

// minToken is how long a key is whose words are taken for a token's where they have next to no
// letters each.
const minToken = 9

// isFieldName reports whether a key looks like the name of a field in snake_case, camelCase or
// kebab-case, and not like data: an id, a hash, a date, an address, a path or a person's name. It
// is safe to show: it has ASCII letters, digits, "_" and "-" only.
func isFieldName(key string) bool {
	words := len(fieldWord.FindAllString(key, -1))
	token := len(key) >= minToken && len(key) < 3*words // aGVsbG8gd29ybGQ
	return fieldName.MatchString(key) && !notField.MatchString(key) && words > 0 && !token
}

// text returns the shape as a Python type, with objects as {key: type, key?: type}, in about most
// bytes: what is beyond is "…".
func (s *shape) text(most int) string {
	var out strings.Builder
	s.known().write(&out, most)
	return out.String()
}

var scalarNames = []struct {
	scalar int
	name   string
}{{isBool, "bool"}, {isInt, "int"}, {isFloat, "float"}, {isStr, "str"}, {isNull, "None"}}

func (s *shape) write(out *strings.Builder, most int) {
	if s.Any {
		out.WriteString("Any")
		return
	}
	before := out.Len()
	or := func() {
		if out.Len() > before {
			out.WriteString(" | ")
		}
	}
	if s.Item != nil {
		out.WriteString("list[")
		s.Item.write(out, most)
		out.WriteString("]")
	}
	if s.isObject() {
		or()
		s.writeObject(out, most)
	}
	for _, n := range scalarNames {
		if s.Scalars&n.scalar != 0 {
			or()
			out.WriteString(n.name)
		}
	}
	if out.Len() == before { // of an empty list
		out.WriteString("Any")
	}
}

func (s *shape) writeObject(out *strings.Builder, most int) {
	out.WriteString("{")
	if s.Value != nil {
		out.WriteString("str: ")
		s.Value.write(out, most)
	}
	for i, f := range s.Fields {
		if i > 0 {
			out.WriteString(", ")
		}
		if out.Len() >= most {
			out.WriteString("…")
			break
		}
		name := f.Key
		if strings.Contains(name, "-") {
			name = strconv.Quote(name)
		}
		if f.Optional {
			name += "?"
		}
		out.WriteString(name + ": ")
		f.Shape.write(out, most)
	}
	out.WriteString("}")
}
