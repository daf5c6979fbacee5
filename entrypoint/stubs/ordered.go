package stubs

import (
	"bytes"
	"encoding/json"
	"errors"
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

// child is the value of key when that is an object, else an empty one.
func (o *object) child(key string) *object {
	if c, ok := o.values[key].(*object); ok {
		return c
	}
	return &object{}
}

// list is the value of key when that is a list, else nil.
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

// strings are the strings in the list of key.
func (o *object) strings(key string) []string {
	var out []string
	for _, v := range o.list(key) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// parse gives nil, bool, string, json.Number, []any or *object. What is no JSON, or nested beyond
// what a schema is, is nil.
func parse(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := value(dec, 0)
	if err != nil {
		return nil
	}
	return v
}

const maxNesting = 500

var errNesting = errors.New("nested too deeply")

func value(dec *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if delim == '[' {
		list := []any{}
		for dec.More() {
			v, err := value(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	o := &object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := value(dec, depth+1)
		if err != nil {
			return nil, err
		}
		o.set(key.(string), v) // a key is always a string
	}
	_, err = dec.Token()
	return o, err
}
