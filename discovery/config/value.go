package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// A Value is a value of a configuration file, whatever the file's syntax is. Its zero value is one
// that isn't there.
type Value struct {
	v any // nil for nothing, or null, bool, number, string, []Value, Object
}

type (
	null   struct{}
	number string // as it is written
)

// An Object is the members of an object in their order. Of two with one name the last counts, as in
// every host's JSON reader.
type Object []Member

// A Member is a value and its name.
type Member struct {
	Name  string
	Value Value
}

// Word returns a string as a value.
func Word(text string) Value { return Value{text} }

// Of returns a string, bool, int, list of strings or Object as a value.
func Of(v any) Value {
	switch v := v.(type) {
	case int:
		return Value{number(strconv.Itoa(v))}
	case []string:
		list := make([]Value, len(v))
		for i, s := range v {
			list[i] = Word(s)
		}
		return Value{list}
	case string, bool, Object:
		return Value{v}
	}
	panic(fmt.Sprintf("config.Of: unknown type %T", v))
}

// List returns values as an array.
func List(values []Value) Value { return Value{values} }

// Equal reports whether two values are the same. The order of an object's members is of no account,
// and of two with one name the last counts.
func (v Value) Equal(w Value) bool {
	a, isObject := v.Object()
	b, too := w.Object()
	if isObject && too {
		names := func(o Object) map[string]bool {
			set := map[string]bool{}
			for _, m := range o {
				set[m.Name] = true
			}
			return set
		}
		return maps.Equal(names(a), names(b)) && !slices.ContainsFunc(a, func(m Member) bool {
			return !a.Get(m.Name).Equal(b.Get(m.Name))
		})
	}
	first, isArray := v.Array()
	second, too := w.Array()
	if isArray && too {
		return slices.EqualFunc(first, second, Value.Equal)
	}
	if isObject || isArray || w.Is("an object") || w.Is("an array") {
		return false
	}
	return v.v == w.v
}

// Value returns the object as a value.
func (o Object) Value() Value { return Value{o} }

// Kind returns what messages call the value. It shows nothing of it but true, false and null.
func (v Value) Kind() string {
	switch v := v.v.(type) {
	case nil:
		return "nothing"
	case Object:
		return "an object"
	case []Value:
		return "an array"
	case string:
		return "a string"
	case number:
		return "a number"
	case bool:
		return fmt.Sprint(v)
	}
	return "null"
}

// Is reports whether the value is of a kind.
func (v Value) Is(kind string) bool { return v.Kind() == kind }

// Absent reports whether the value isn't there or null.
func (v Value) Absent() bool { return v.v == nil || v.v == null{} }

// Text returns a string.
func (v Value) Text() (string, bool) {
	text, ok := v.v.(string)
	return text, ok
}

// Literal returns a string, or a number, true, false or null as it is written.
func (v Value) Literal() (string, bool) {
	switch v := v.v.(type) {
	case string:
		return v, true
	case number:
		return string(v), true
	case bool, null:
		return Value{v}.Kind(), true
	}
	return "", false
}

// Object returns the members of an object.
func (v Value) Object() (Object, bool) {
	o, ok := v.v.(Object)
	return o, ok
}

// Array returns the elements of an array.
func (v Value) Array() ([]Value, bool) {
	a, ok := v.v.([]Value)
	return a, ok
}

// Strings returns the strings of an array, and false if it holds others too or isn't one.
func (v Value) Strings() (list []string, ok bool) {
	elements, ok := v.Array()
	for _, e := range elements {
		text, isText := e.Text()
		if isText {
			list = append(list, text)
		}
		ok = ok && isText
	}
	return list, ok
}

// Get returns the value of the last member of that name; an empty key has none.
func (o Object) Get(key string) Value {
	for _, m := range slices.Backward(o) {
		if m.Name == key && key != "" {
			return m.Value
		}
	}
	return Value{}
}

// At returns the value at a path with / between levels.
func (o Object) At(path string) Value {
	first, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		return o.Get(first)
	}
	return o.Object(first).At(rest)
}

// Object returns the object under a key, empty if there isn't one.
func (o Object) Object(key string) Object {
	inner, _ := o.Get(key).Object()
	return inner
}

// Text returns the string under a key, empty if there isn't one.
func (o Object) Text(key string) string {
	text, _ := o.Get(key).Text()
	return text
}

// Merge returns both objects in one. The members of the second count, in the place of the first's,
// and what is an object in both is merged likewise.
func Merge(under, over Object) Object {
	both := Object{}
	index := map[string]int{}
	for _, m := range slices.Concat(under, over) {
		i, ok := index[m.Name]
		if !ok {
			index[m.Name] = len(both)
			both = append(both, m)
			continue
		}
		first, isObject := both[i].Value.Object()
		if second, too := m.Value.Object(); isObject && too {
			m.Value = Merge(first, second).Value()
		}
		both[i] = m
	}
	return both
}

// FromJSON returns what the parser found.
func FromJSON(v hujson.Value) Value {
	switch c := v.Value.(type) {
	case *hujson.Object:
		o := make(Object, len(c.Members))
		for i, m := range c.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			o[i] = Member{name.String(), FromJSON(m.Value)}
		}
		return Value{o}
	case *hujson.Array:
		a := make([]Value, len(c.Elements))
		for i, e := range c.Elements {
			a[i] = FromJSON(e)
		}
		return Value{a}
	case hujson.Literal:
		switch c.Kind() {
		case '"':
			return Value{c.String()}
		case '0':
			return Value{number(c)}
		case 't', 'f':
			return Value{c.Bool()}
		}
	}
	return Value{null{}}
}
