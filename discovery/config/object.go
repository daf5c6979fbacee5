package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// A Value is a value of a configuration file. Its zero value is one that isn't there.
type Value struct{ v *hujson.Value }

// An Object is the members of an object in their order. Of two with one name the last counts, as in
// every host's JSON reader.
type Object []Member

// A Member is a value and its name.
type Member struct {
	Name  string
	Value Value
}

// Kind returns what messages call the value. It shows nothing of it but true, false and null.
func (v Value) Kind() string {
	if v.v == nil {
		return "nothing"
	}
	switch v.v.Value.(type) {
	case *hujson.Object:
		return "an object"
	case *hujson.Array:
		return "an array"
	}
	switch v.v.Value.Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't':
		return "true"
	case 'f':
		return "false"
	}
	return "null"
}

// Is reports whether the value is of a kind.
func (v Value) Is(kind string) bool { return v.Kind() == kind }

// Absent reports whether the value isn't there or null.
func (v Value) Absent() bool { return v.v == nil || v.Is("null") }

// Text returns a string.
func (v Value) Text() (string, bool) {
	if !v.Is("a string") {
		return "", false
	}
	return v.Literal()
}

// Literal returns a string, or a number, true, false or null as it is written.
func (v Value) Literal() (string, bool) {
	if v.v == nil {
		return "", false
	}
	lit, ok := v.v.Value.(hujson.Literal)
	return lit.String(), ok
}

// Object returns the members of an object.
func (v Value) Object() (Object, bool) {
	if v.v == nil {
		return nil, false
	}
	o, ok := v.v.Value.(*hujson.Object)
	if !ok {
		return nil, false
	}
	members := make(Object, len(o.Members))
	for i := range o.Members {
		members[i] = Member{nameOf(o.Members[i]), Value{&o.Members[i].Value}}
	}
	return members, true
}

// Array returns the elements of an array.
func (v Value) Array() ([]Value, bool) {
	if v.v == nil {
		return nil, false
	}
	a, ok := v.v.Value.(*hujson.Array)
	if !ok {
		return nil, false
	}
	elements := make([]Value, len(a.Elements))
	for i := range a.Elements {
		elements[i] = Value{&a.Elements[i]}
	}
	return elements, true
}

// Strings returns the strings of an array, and false if it holds others too or is none.
func (v Value) Strings() (list []string, ok bool) {
	elements, ok := v.Array()
	for _, e := range elements {
		if t, isText := e.Text(); isText {
			list = append(list, t)
		} else {
			ok = false
		}
	}
	return list, ok
}

// Word returns a string as a value.
func Word(text string) Value { return Value{&hujson.Value{Value: hujson.String(text)}} }

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

// Object returns the object under a key, empty if there is none.
func (o Object) Object(key string) Object {
	inner, _ := o.Get(key).Object()
	return inner
}

// Text returns the string under a key, empty if there is none.
func (o Object) Text(key string) string {
	text, _ := o.Get(key).Text()
	return text
}

// Last returns the members that count: of those with one name the last.
func (o Object) Last() Object {
	last := map[string]int{}
	for i, m := range o {
		last[m.Name] = i
	}
	kept := Object{}
	for _, i := range slices.Sorted(maps.Values(last)) {
		kept = append(kept, o[i])
	}
	return kept
}

// optional returns a member that has to be a string if it is there.
func (o Object) optional(key string) (string, Refusal) {
	v := o.Get(key)
	if v.Absent() {
		return "", Refusal{}
	}
	text, ok := v.Text()
	if !ok {
		return "", o.wrongType(key, "a string")
	}
	return text, Refusal{}
}

// list returns an array of strings, nil for none.
func (o Object) list(key string) (list []string, bad Refusal) {
	v := o.Get(key)
	if v.Absent() {
		return nil, Refusal{}
	}
	elements, ok := v.Array()
	if !ok {
		return nil, o.wrongType(key, "an array")
	}
	for i, e := range elements {
		text, ok := e.Text()
		if !ok {
			return nil, Refusal{fmt.Sprintf("its %s[%d] is %s, not a string", key, i, e.Kind()),
				"put it in quotes"}
		}
		list = append(list, text)
	}
	return list, Refusal{}
}

func (o Object) wrongType(key, want string) Refusal {
	return Refusal{"its " + key + " is " + o.Get(key).Kind() + ", not " + want, "correct it"}
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

// Value returns the object as a value.
func (o Object) Value() Value {
	all := &hujson.Object{}
	for _, m := range o {
		name := hujson.Value{Value: hujson.String(m.Name)}
		all.Members = append(all.Members, hujson.ObjectMember{Name: name, Value: *m.Value.v})
	}
	return Value{&hujson.Value{Value: all}}
}

func nameOf(m hujson.ObjectMember) string {
	lit, _ := m.Name.Value.(hujson.Literal)
	if len(lit) >= 2 && bytes.IndexByte(lit, '\\') < 0 { // most names, and there may be very many
		return string(lit[1 : len(lit)-1])
	}
	return lit.String()
}

// maxName bounds a server's name, in bytes: a model and a person have to read it.
const maxName = 128

// BadName says what is wrong with a server's name, if anything.
func BadName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "its name is empty"
	case len(name) > maxName:
		return "its name is longer than " + strconv.Itoa(maxName) + " bytes"
	case strings.ContainsFunc(name, Hidden):
		return "its name has control or invisible characters"
	}
	return ""
}

// Hidden reports whether a terminal acts on r or doesn't show it. The joiners and selectors that
// scripts and emoji need count as shown.
func Hidden(r rune) bool {
	switch r {
	case ' ', '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

// Display returns a name as messages show it: quoted and cut where it can't be shown as it is.
func Display(name string) string {
	if BadName(name) == "" {
		return name
	}
	if len(name) > maxName {
		cut := maxName
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		return strconv.Quote(name[:cut]) + "…"
	}
	return strconv.Quote(name)
}

// Show returns a path as messages show it.
func Show(path string) string {
	if strings.ContainsFunc(path, Hidden) {
		return strconv.Quote(path)
	}
	return path
}
