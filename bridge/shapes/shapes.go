// Package shapes tells the form of JSON from its content: which keys and types it has, for
// signatures of tools that declare none. A Shape holds no value, and no key that may be one: an
// object whose keys look like data is a mapping from str. It is bounded in depth, width and size,
// whatever it is made of.
package shapes

import (
	"bytes"
	"encoding/json"
	"errors"
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
// at all. It doesn't change.
type Shape struct {
	Scalars int     `json:"s,omitempty"`
	Any     bool    `json:"any,omitempty"` // also what wasn't looked at
	Item    *Shape  `json:"l,omitempty"`   // of a list
	Value   *Shape  `json:"m,omitempty"`   // of a mapping, whose keys are data
	Fields  []Field `json:"o,omitempty"`   // of an object, in order
	Empty   bool    `json:"e,omitempty"`   // an object without keys
}

// Field is a key of an object.
type Field struct {
	Key      string `json:"k"`
	Shape    *Shape `json:"v"`
	Optional bool   `json:"?,omitempty"` // some of the objects lack it
}

// Of returns the shape of a JSON text that is an object or an array, and false for any other text,
// or one that is too long.
func Of(text string) (*Shape, bool) {
	trimmed := strings.TrimSpace(text)
	if len(text) > MaxText || trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid([]byte(trimmed)) {
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
			s.Fields = append(s.Fields, Field{Key: key, Shape: v})
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
		out.Fields, out.Value, out.Empty = from.Fields, from.Value, from.Empty
	case a.Value != nil || b.Value != nil:
		out.Value = Merge(a.values(), b.values())
	default:
		out.mergeFields(a, b)
	}
	return out
}

// mergeFields joins two objects. Where they share no key, their keys are taken for data.
func (s *Shape) mergeFields(a, b *Shape) {
	shared := 0
	for _, f := range a.Fields {
		if i := b.index(f.Key); i >= 0 {
			shared++
			f = Field{f.Key, Merge(f.Shape, b.Fields[i].Shape), f.Optional || b.Fields[i].Optional}
		} else {
			f.Optional = true
		}
		s.Fields = append(s.Fields, f)
	}
	for _, f := range b.Fields {
		if a.index(f.Key) < 0 {
			f.Optional = true
			s.Fields = append(s.Fields, f)
		}
	}
	if len(s.Fields) > maxKeys || shared == 0 && len(a.Fields) > 0 && len(b.Fields) > 0 {
		s.Value, s.Fields = (&Shape{Fields: s.Fields}).values(), nil
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

// Same reports whether two shapes are the same.
func Same(a, b *Shape) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Valid reports whether a shape that was read from a file could have been made by Of and Merge.
func (s *Shape) Valid() bool { return s.valid(0) && s.nodes() <= maxNodes }

func (s *Shape) valid(depth int) bool {
	if s == nil || depth > maxDepth+1 || s.Scalars&^allScalars != 0 || len(s.Fields) > maxKeys {
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
