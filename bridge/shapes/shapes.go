// Package shapes tells the form of JSON from its content: which keys and types it has, for
// signatures of tools that declare none. A Shape holds no value. It is bounded in depth, width and
// size, whatever it is made of.
//
// What a Shape writes, as text or JSON, has a key only if
//   - the key looks like the name of a field (IsName),
//   - two objects that were seen at the same place have it, such as two items of a list, and
//   - the object's values are of different kinds, or are texts under at least one key that is usual
//     in records, such as "id" or "name".
//
// Other objects are written as mappings from str. So {"alice": 3, "bob": 4} keeps no name, however
// often it is seen. The rule can't tell all data: of a mapping by lower-case names, with values of
// different kinds, that is seen twice, the names are written.
package shapes

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// Bounds of a shape, and of the work to make it.
const (
	MaxText  = 256 << 10 // bytes of a JSON text that is looked at
	maxDepth = 6         // of objects and lists in each other; deeper ones are Any
	maxKeys  = 30        // of an object; one with more is a mapping
	maxItems = 50        // of a list that are looked at
	maxNodes = 400       // of a shape; one with more is of no use to a reader
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

// Shape is what values were seen to be: any of its parts that is set. The zero Shape is of no value
// at all. It doesn't change. In memory it also has the keys that were seen in one object only, so
// that they are known when they are seen again.
type Shape struct {
	Scalars int     `json:"s,omitempty"`
	Any     bool    `json:"any,omitempty"` // also what wasn't looked at
	Item    *Shape  `json:"l,omitempty"`   // of a list
	Value   *Shape  `json:"m,omitempty"`   // of a mapping, whose keys are data
	Unsure  bool    `json:"u,omitempty"`   // the keys of the mapping may turn out to be fields
	Fields  []Field `json:"o,omitempty"`   // of an object, in order
	Empty   bool    `json:"e,omitempty"`   // an object without keys

	isKnown bool // made by known
}

// Field is a key of an object.
type Field struct {
	Key      string `json:"k"`
	Shape    *Shape `json:"v"`
	Optional bool   `json:"?,omitempty"` // some of the objects lack it
	once     bool   // one object had it
}

// Of returns the shape of a JSON text that is an object or an array, and false for any other text,
// or one that is too long.
func Of(text string) (*Shape, bool) {
	trimmed := strings.TrimSpace(text)
	container := strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
	if len(text) > MaxText || !container || !json.Valid([]byte(trimmed)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(trimmed))
	d.UseNumber()
	s, err := read(d, 0)
	if err != nil || s.nodes() > maxNodes {
		return nil, false
	}
	return s, true
}

// read reads one value.
func read(d *json.Decoder, depth int) (*Shape, error) {
	if depth > maxDepth {
		var skipped json.RawMessage
		return &Shape{Any: true}, d.Decode(&skipped)
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
			return &Shape{Scalars: isFloat}, nil
		}
		return &Shape{Scalars: isInt}, nil
	case bool:
		return &Shape{Scalars: isBool}, nil
	case string:
		return &Shape{Scalars: isStr}, nil
	}
	return &Shape{Scalars: isNull}, nil
}

func readList(d *json.Decoder, depth int) (*Shape, error) {
	item := &Shape{}
	for i := 0; d.More(); i++ {
		if i >= maxItems {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return nil, err
			}
			continue
		}
		s, err := read(d, depth+1)
		if err != nil {
			return nil, err
		}
		item = Merge(item, s)
	}
	_, err := d.Token()
	return &Shape{Item: item}, err
}

func readObject(d *json.Decoder, depth int) (*Shape, error) {
	s := &Shape{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, errors.New("a key is no string")
		}
		v, err := read(d, depth+1)
		switch at := s.index(key); {
		case err != nil:
			return nil, err
		case s.Value != nil:
			s.Value = Merge(s.Value, v)
		case at >= 0: // the last of two counts
			s.Fields[at].Shape = v
		case !IsName(key) || len(s.Fields) >= maxKeys:
			s = &Shape{Value: Merge(s.values(), v)}
		default:
			s.Fields = append(s.Fields, Field{Key: key, Shape: v, once: true})
		}
	}
	s.Empty = s.Value == nil && len(s.Fields) == 0
	_, err := d.Token()
	return s, err
}

func (s *Shape) index(key string) int {
	return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Key == key })
}

// values returns the shape of all values of an object or a mapping.
func (s *Shape) values() *Shape {
	all := &Shape{}
	if s.Value != nil {
		all = s.Value
	}
	for _, f := range s.Fields {
		all = Merge(all, f.Shape)
	}
	return all
}

// isMapping reports whether objects were seen whose keys are data.
func (s *Shape) isMapping() bool { return s.Value != nil && !s.Unsure }

// isObject reports whether objects were seen.
func (s *Shape) isObject() bool { return s.Fields != nil || s.Value != nil || s.Empty }

// Merge returns the shape of what has either of two shapes.
func Merge(a, b *Shape) *Shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := &Shape{Scalars: a.Scalars | b.Scalars, Any: a.Any || b.Any, Item: a.Item}
	if b.Item != nil {
		out.Item = Merge(a.Item, b.Item)
	}
	switch {
	case !a.isObject() || !b.isObject():
		from := a
		if b.isObject() {
			from = b
		}
		out.Fields, out.Value, out.Unsure, out.Empty = from.Fields, from.Value, from.Unsure, from.Empty
	case a.isMapping() || b.isMapping():
		out.Value = Merge(a.values(), b.values())
	default:
		out.mergeFields(a, b)
	}
	return out
}

// mergeFields joins two objects. If they share no key, their keys are taken for data. An object whose
// keys aren't known says nothing on which are optional.
func (s *Shape) mergeFields(a, b *Shape) {
	s.Value, s.Unsure = Merge(a.Value, b.Value), a.Unsure || b.Unsure
	knownA, knownB := a.Fields != nil || a.Empty, b.Fields != nil || b.Empty
	shared := 0
	for _, f := range a.Fields {
		if i := b.index(f.Key); i >= 0 {
			shared++
			other := b.Fields[i]
			f = Field{Key: f.Key, Shape: Merge(f.Shape, other.Shape), Optional: f.Optional || other.Optional}
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
	if len(s.Fields) > maxKeys || shared == 0 && len(a.Fields) > 0 && len(b.Fields) > 0 {
		s.Value, s.Unsure, s.Fields = s.values(), false, nil
	}
	s.Empty = s.Value == nil && len(s.Fields) == 0
}

func (s *Shape) nodes() int {
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
func (s *Shape) MarshalJSON() ([]byte, error) {
	type plain Shape
	return json.Marshal((*plain)(s.known()))
}

// Same reports whether two shapes are written as the same.
func Same(a, b *Shape) bool { return reflect.DeepEqual(a.known(), b.known()) }

// Valid reports whether a shape that was read from a file could have been made by Of and Merge.
func (s *Shape) Valid() bool { return s.valid(0) && s.nodes() <= maxNodes }

func (s *Shape) valid(depth int) bool {
	if s == nil || depth > maxDepth+1 || s.Scalars&^allScalars != 0 || len(s.Fields) > maxKeys {
		return false
	}
	if s.Unsure && s.Value == nil {
		return false
	}
	for _, inner := range []*Shape{s.Item, s.Value} {
		if inner != nil && !inner.valid(depth+1) {
			return false
		}
	}
	for i, f := range s.Fields {
		if !IsName(f.Key) || s.index(f.Key) != i || !f.Shape.valid(depth+1) {
			return false
		}
	}
	return true
}
