package catalog

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Bounds of a shape, and of the work to make it.
const (
	maxShapeText  = 256 << 10 // bytes of a JSON text that is looked at
	maxShapeDepth = 6         // of objects and lists in each other; deeper ones are Any
	maxShapeKeys  = 30        // of an object; one with more is a mapping
	maxShapeItems = 50        // of a list that are looked at
	maxShapeNodes = 400       // of a shape; one with more is of no use to a reader
)

// Kinds of values. A shape's Scalars are of the first five.
const (
	isNull = 1 << iota
	isBool
	isInt
	isFloat
	isStr
	isList
	isObjects
)

// A shape is what values of JSON were seen to be, for signatures of tools that declare no result:
// any of its parts that is set. It holds no value, is bounded in depth, width and size, and doesn't
// change. The zero shape is of no value at all.
//
// What a shape writes, as text or JSON, has a key only if
//   - the key looks like the name of a field (isFieldName),
//   - two objects that were seen at the same place have it, such as two items of a list, and
//   - the object's values are of different kinds, or are texts under at least one key that is usual
//     in records, such as "id" or "name".
//
// Other objects are written as mappings from str. So {"alice": 3, "bob": 4} keeps no name, however
// often it is seen. The rule can't tell all data: of a mapping by lower-case names, with values of
// different kinds, that is seen twice, the names are written. In memory a shape also has the keys
// that were seen in one object only, so that they are known when they are seen again.
type shape struct {
	Scalars int          `json:"s,omitempty"`
	Any     bool         `json:"any,omitempty"` // also what wasn't looked at
	Item    *shape       `json:"l,omitempty"`   // of a list
	Value   *shape       `json:"m,omitempty"`   // of a mapping, whose keys are data
	Unsure  bool         `json:"u,omitempty"`   // the keys of the mapping may turn out to be fields
	Fields  []shapeField `json:"o,omitempty"`   // of an object, in order
	Empty   bool         `json:"e,omitempty"`   // an object without keys
}

// A shapeField is a key of an object.
type shapeField struct {
	Key      string `json:"k"`
	Shape    *shape `json:"v"`
	Optional bool   `json:"?,omitempty"` // some of the objects lack it
	once     bool   // one object had it
}

// shapeOf returns the shape of a JSON text that is an object or an array, and false for any other
// text, or one that is too long.
func shapeOf(text string) (*shape, bool) {
	text = strings.TrimSpace(text)
	container := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	if len(text) > maxShapeText || !container || !json.Valid([]byte(text)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	s := readShape(d, 0)
	return s, s.nodes() <= maxShapeNodes
}

// readShape reads one value of a valid text. A text that is valid has tokens only.
func readShape(d *json.Decoder, depth int) *shape {
	if depth > maxShapeDepth {
		skip(d)
		return &shape{Any: true}
	}
	token, _ := d.Token()
	switch v := token.(type) {
	case json.Delim:
		defer d.Token() //nolint:errcheck // the end of it
		if v == '[' {
			return readList(d, depth)
		}
		return readObject(d, depth)
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return &shape{Scalars: isFloat}
		}
		return &shape{Scalars: isInt}
	case bool:
		return &shape{Scalars: isBool}
	case string:
		return &shape{Scalars: isStr}
	}
	return &shape{Scalars: isNull}
}

func skip(d *json.Decoder) {
	var skipped json.RawMessage
	_ = d.Decode(&skipped)
}

func readList(d *json.Decoder, depth int) *shape {
	item := &shape{}
	for i := 0; d.More(); i++ {
		if i < maxShapeItems {
			item = merge(item, readShape(d, depth+1))
		} else {
			skip(d)
		}
	}
	return &shape{Item: item}
}

func readObject(d *json.Decoder, depth int) *shape {
	s := &shape{}
	for d.More() {
		token, _ := d.Token()
		key, _ := token.(string)
		v := readShape(d, depth+1)
		switch at := s.index(key); {
		case s.Value != nil:
			s.Value = merge(s.Value, v)
		case at >= 0: // the last of two counts
			s.Fields[at].Shape = v
		case !isFieldName(key) || len(s.Fields) >= maxShapeKeys:
			s = &shape{Value: merge(s.values(), v)}
		default:
			s.Fields = append(s.Fields, shapeField{Key: key, Shape: v, once: true})
		}
	}
	s.Empty = s.Value == nil && len(s.Fields) == 0
	return s
}

func (s *shape) index(key string) int {
	return slices.IndexFunc(s.Fields, func(f shapeField) bool { return f.Key == key })
}

// values returns the shape of all values of an object or a mapping.
func (s *shape) values() *shape {
	all := &shape{}
	if s.Value != nil {
		all = s.Value
	}
	for _, f := range s.Fields {
		all = merge(all, f.Shape)
	}
	return all
}

// isMapping reports whether objects were seen whose keys are data.
func (s *shape) isMapping() bool { return s.Value != nil && !s.Unsure }

// isObject reports whether objects were seen.
func (s *shape) isObject() bool { return s.Fields != nil || s.Value != nil || s.Empty }

// merge returns the shape of what has either of two shapes.
func merge(a, b *shape) *shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := &shape{Scalars: a.Scalars | b.Scalars, Any: a.Any || b.Any, Item: a.Item}
	if b.Item != nil {
		out.Item = merge(a.Item, b.Item)
	}
	switch {
	case !a.isObject() || !b.isObject():
		from := a
		if b.isObject() {
			from = b
		}
		out.Fields, out.Value, out.Unsure, out.Empty = from.Fields, from.Value, from.Unsure, from.Empty
	case a.isMapping() || b.isMapping():
		out.Value = merge(a.values(), b.values())
	default:
		out.mergeFields(a, b)
	}
	return out
}

// mergeFields joins two objects. If they share no key, their keys are taken for data. An object
// whose keys aren't known says nothing on which are optional.
func (s *shape) mergeFields(a, b *shape) {
	s.Value, s.Unsure = merge(a.Value, b.Value), a.Unsure || b.Unsure
	knownA, knownB := a.Fields != nil || a.Empty, b.Fields != nil || b.Empty
	shared := 0
	for _, f := range a.Fields {
		if i := b.index(f.Key); i >= 0 {
			shared++
			other := b.Fields[i]
			f = shapeField{Key: f.Key, Shape: merge(f.Shape, other.Shape), Optional: f.Optional || other.Optional}
		} else {
			f.Optional = f.Optional || knownB
		}
		s.Fields = append(s.Fields, f)
	}
	for _, f := range b.Fields {
		if a.index(f.Key) < 0 {
			f.Optional = f.Optional || knownA
			s.Fields = append(s.Fields, f)
		}
	}
	if len(s.Fields) > maxShapeKeys || shared == 0 && len(a.Fields) > 0 && len(b.Fields) > 0 {
		s.Value, s.Unsure, s.Fields = s.values(), false, nil
	}
	s.Empty = s.Value == nil && len(s.Fields) == 0
}

func (s *shape) nodes() int {
	if s == nil {
		return 0
	}
	n := 1 + s.Item.nodes() + s.Value.nodes()
	for _, f := range s.Fields {
		n += f.Shape.nodes()
	}
	return n
}

// MarshalJSON writes what may be kept of the shape.
func (s *shape) MarshalJSON() ([]byte, error) {
	type plain shape
	return json.Marshal((*plain)(s.known()))
}

// sameShape reports whether two shapes are written as the same.
func sameShape(a, b *shape) bool { return reflect.DeepEqual(a.known(), b.known()) }

// valid reports whether a shape that was read from a file can be shown.
func (s *shape) valid() bool { return s.nodes() <= maxShapeNodes && s.whole() }

func (s *shape) whole() bool {
	return s != nil && (s.Item == nil || s.Item.whole()) && (s.Value == nil || s.Value.whole()) &&
		!slices.ContainsFunc(s.Fields, func(f shapeField) bool { return !isFieldName(f.Key) || !f.Shape.whole() })
}
