package config

import (
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Members reads the members of an entry, and keeps the first refusal of one that is malformed.
type Members struct {
	Object
	in  string // what messages put before a name
	bad Refusal
}

// Refuse refuses the entry, unless it is refused already, or reason is empty.
func (m *Members) Refuse(reason, next string) {
	if !m.bad.Refused() {
		m.bad = Refusal{reason, next}
	}
}

// RefuseNear refuses an entry that hasn't a key, but one that is nearly the same.
func (m *Members) RefuseNear(key string) {
	var keys []string
	for _, member := range m.Object {
		keys = append(keys, member.Name)
	}
	if near := text.Nearest(key, keys); near != nil && m.Get(key).Absent() {
		m.Refuse(`it has no "`+key+`", but a `+Display(near[0]), `rename that to "`+key+`"`)
	}
}

func (m *Members) wrongType(key, want string) {
	m.Refuse("its "+m.in+key+" is "+m.Get(key).Kind()+", not "+want, "correct it")
}

// Text returns a member that has to be a string, empty if it isn't there.
func (m *Members) Text(key string) string {
	v := m.Get(key)
	text, ok := v.Text()
	if !ok && !v.Absent() {
		m.wrongType(key, "a string")
	}
	return text
}

// Flag returns a member that has to be true or false if it is there.
func (m *Members) Flag(key string) Value {
	v := m.Get(key)
	if !v.Absent() && !v.Is("true") && !v.Is("false") {
		m.wrongType(key, "true or false")
	}
	return v
}

// List returns a member that has to be an array of strings, nil if it isn't there.
func (m *Members) List(key string) (list []string) {
	for i, e := range m.array(key) {
		text, ok := e.Text()
		if !ok {
			m.Refuse(fmt.Sprintf("its %s[%d] is %s, not a string", key, i, e.Kind()), "put it in quotes")
		}
		list = append(list, text)
	}
	return list
}

func (m *Members) array(key string) []Value {
	v := m.Get(key)
	elements, ok := v.Array()
	if !ok && !v.Absent() {
		m.wrongType(key, "an array")
	}
	return elements
}

// Names returns a list of names of variables, which may be objects with a name too.
func (m *Members) Names(key string) (list []string) {
	for i, e := range m.array(key) {
		name, ok := e.Text()
		if inner, isObject := e.Object(); isObject {
			name, ok = inner.Get("name").Text()
		}
		if !ok || badVariable(name) {
			m.Refuse(fmt.Sprintf("its %s[%d] is no name of a variable", key, i), "correct it")
		}
		list = append(list, name)
	}
	return list
}

// Variables returns an object of strings, at a path with / between levels; nil for none. Numbers,
// true and false are taken as they are written: VS Code's schema allows numbers, and hosts that
// check nothing have Node.js make strings of them. nulls has null take a variable out.
func (m *Members) Variables(path string, nulls bool) map[string]string {
	v := m.At(path)
	vars, ok := v.Object()
	if !ok && !v.Absent() {
		m.Refuse("its "+path+" is "+v.Kind()+", not an object", "correct it")
	}
	env := map[string]string{}
	for _, e := range vars {
		text, ok := e.Value.Literal()
		switch isNull := e.Value.Is("null"); {
		case badVariable(e.Name):
			m.Refuse("its "+path+" has a variable whose name is empty or has a = or a NUL in it",
				"correct the name")
		case isNull && nulls:
			delete(env, e.Name)
		case !ok || isNull:
			m.Refuse("its "+path+"."+Display(e.Name)+" is "+e.Value.Kind()+", not a string",
				"put the value in quotes")
		default:
			env[e.Name] = text
		}
	}
	if len(env) == 0 {
		return nil
	}
	return env
}

func badVariable(name string) bool { return name == "" || strings.ContainsAny(name, "=\x00") }
