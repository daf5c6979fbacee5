package catalog

import (
	"encoding/json"
	"errors"
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

// Scalars that a value was seen to be.
const (
	isNull = 1 << iota
	isBool
	isInt
	isFloat
	isStr
	allScalars = 1<<iota - 1
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
	trimmed := strings.TrimSpace(text)
	container := strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
	if len(text) > maxShapeText || !container || !json.Valid([]byte(trimmed)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(trimmed))
	d.UseNumber()
	s, err := readShape(d, 0)
	if err != nil || s.nodes() > maxShapeNodes {
		return nil, false
	}
	return s, true
}

// readShape reads one value.
func readShape(d *json.Decoder, depth int) (*shape, error) {
	if depth > maxShapeDepth {
		var skipped json.RawMessage
		return &shape{Any: true}, d.Decode(&skipped)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			return readList(d, depth)
		}
		return readObject(d, depth)
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return &shape{Scalars: isFloat}, nil
		}
		return &shape{Scalars: isInt}, nil
	case bool:
		return &shape{Scalars: isBool}, nil
	case string:
		return &shape{Scalars: isStr}, nil
	}
	return &shape{Scalars: isNull}, nil
}

func readList(d *json.Decoder, depth int) (*shape, error) {
	item := &shape{}
	for i := 0; d.More(); i++ {
		if i >= maxShapeItems {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return nil, err
			}
			continue
		}
		s, err := readShape(d, depth+1)
		if err != nil {
			return nil, err
		}
		item = merge(item, s)
	}
	_, err := d.Token()
	return &shape{Item: item}, err
}

func readObject(d *json.Decoder, depth int) (*shape, error) {
	s := &shape{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, errors.New("a key is no string")
		}
		v, err := readShape(d, depth+1)
		switch at := s.index(key); {
		case err != nil:
			return nil, err
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
	_, err := d.Token()
	return s, err
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

// Merge returns the shape of what has either of two shapes.
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

// Same reports whether two shapes are written as the same.
func sameShape(a, b *shape) bool { return reflect.DeepEqual(a.known(), b.known()) }

// Valid reports whether a shape that was read from a file could have been made by Of and Merge.
func (s *shape) valid() bool { return s.validAt(0) && s.nodes() <= maxShapeNodes }

func (s *shape) validAt(depth int) bool {
	if s == nil || depth > maxShapeDepth+1 || s.Scalars&^allScalars != 0 || len(s.Fields) > maxShapeKeys {
		return false
	}
	if s.Unsure && s.Value == nil {
		return false
	}
	for _, inner := range []*shape{s.Item, s.Value} {
		if inner != nil && !inner.validAt(depth+1) {
			return false
		}
	}
	for i, f := range s.Fields {
		if !isFieldName(f.Key) || s.index(f.Key) != i || !f.Shape.validAt(depth+1) {
			return false
		}
	}
	return true
}
