package catalog

import "slices"

// usualFields are names of fields that records of texts have. A mapping by people, places or
// projects hardly has one of them as a key.
var usualFields = []string{
	"content", "description", "email", "id", "key", "kind", "login", "name", "path", "status", "text", "title",
	"type", "uri", "url",
}

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

// Kinds beside those of scalars.
const (
	isList = (allScalars + 1) << iota
	isObjects
)

// kinds returns which kinds of values were seen, where all numbers are one kind and null is none.
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
