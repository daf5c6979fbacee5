package stubs

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object with its keys in the order they were written: the order of a tool's
// positional parameters.
type object struct {
	keys   []string
	values map[string]any
}

func (o *object) get(key string) any { return o.values[key] }

func (o *object) has(key string) bool {
	_, ok := o.values[key]
	return ok
}

// child returns the value of key when that is an object, else an empty one.
func (o *object) child(key string) *object {
	if c, ok := o.values[key].(*object); ok {
		return c
	}
	return &object{}
}

// list returns the value of key when that is a list, else nil.
func (o *object) list(key string) []any {
	l, _ := o.values[key].([]any)
	return l
}

func (o *object) set(key string, v any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

// strings returns the strings in the list of key.
func (o *object) strings(key string) []string {
	var out []string
	for _, v := range o.list(key) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// parse returns nil, bool, string, json.Number, []any or *object. What is no JSON is nil, and so is
// what is nested beyond maxNesting.
func parse(raw json.RawMessage) any {
	if !json.Valid(raw) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return value(dec, 0)
}

const maxNesting = 500

// value reads one value of a valid text, which has tokens only.
func value(dec *json.Decoder, depth int) any {
	if depth > maxNesting {
		var skipped json.RawMessage
		_ = dec.Decode(&skipped)
		return nil
	}
	token, _ := dec.Token()
	delim, ok := token.(json.Delim)
	if !ok {
		return token
	}
	defer dec.Token() //nolint:errcheck // the end of it
	if delim == '[' {
		list := []any{}
		for dec.More() {
			list = append(list, value(dec, depth+1))
		}
		return list
	}
	o := &object{}
	for dec.More() {
		key, _ := dec.Token()
		o.set(key.(string), value(dec, depth+1)) // a key is always a string
	}
	return o
}
