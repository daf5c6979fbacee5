package stubs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// resolve follows a reference into the schema it stands in. References to elsewhere aren't followed.
func resolve(root any, ref string) (any, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	at := root
	if fragment == "" {
		return at, true
	}
	if !strings.HasPrefix(fragment, "/") {
		return nil, false
	}
	for _, step := range strings.Split(fragment[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case *object:
			if !v.has(step) {
				return nil, false
			}
			at = v.get(step)
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) || step != strconv.Itoa(i) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// effective is a schema with its reference followed and its allOf folded in: properties and required of all of them, and of
// other keywords the first. It is s itself where there is nothing to fold.
func effective(root any, s *object, depth int) *object {
	ref, isRef := s.get("$ref").(string)
	all := s.list("allOf")
	if !isRef && len(all) == 0 {
		return s
	}
	out := &object{}
	for _, key := range s.keys {
		if key != "$ref" && key != "allOf" {
			out.set(key, s.get(key))
		}
	}
	if depth > maxDepth {
		return out
	}
	var parts []any
	if isRef {
		if target, ok := resolve(root, ref); ok {
			parts = append(parts, target)
		}
	}
	for _, part := range append(parts, all...) {
		if o, ok := part.(*object); ok {
			fold(out, effective(root, o, depth+1))
		}
	}
	return out
}

// fold adds what into doesn't have yet.
func fold(into, from *object) {
	for _, key := range from.keys {
		switch {
		case key == "properties":
			merged := &object{}
			for _, o := range []*object{into.child(key), from.child(key)} {
				for _, name := range o.keys {
					if !merged.has(name) {
						merged.set(name, o.get(name))
					}
				}
			}
			into.set(key, merged)
		case key == "required":
			into.set(key, append(slices.Clone(into.list(key)), from.list(key)...))
		case !into.has(key):
			into.set(key, from.get(key))
		}
	}
}

// alternatives is the schema of an object that is one of several: the properties of all of them, as any of them has it, and what
// all of them require.
func alternatives(root any, s *object) *object {
	branches := append(slices.Clone(s.list("anyOf")), s.list("oneOf")...)
	if len(s.child("properties").keys) > 0 || len(branches) == 0 {
		return s
	}
	out := &object{}
	for _, key := range s.keys {
		out.set(key, s.get(key))
	}
	found, count, order := &object{}, map[string]int{}, []string{}
	for _, branch := range branches {
		o, ok := branch.(*object)
		if !ok {
			return s
		}
		o = effective(root, o, 1)
		for _, name := range o.child("properties").keys {
			property := o.child("properties").get(name)
			if text := string(encode(property)); !slices.ContainsFunc(found.list(name), func(v any) bool { return string(encode(v)) == text }) {
				found.set(name, append(found.list(name), property))
			}
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(o.strings("required")))) {
			if count[name]++; count[name] == 1 {
				order = append(order, name)
			}
		}
	}
	required := slices.Clone(s.list("required"))
	for _, name := range order {
		if count[name] == len(branches) {
			required = append(required, name)
		}
	}
	properties := &object{}
	for _, name := range found.keys {
		properties.set(name, found.list(name)[0])
		if several := found.list(name); len(several) > 1 {
			properties.set(name, &object{keys: []string{"anyOf"}, values: map[string]any{"anyOf": several}})
		}
	}
	out.set("properties", properties)
	out.set("required", required)
	return out
}

// open says whether an object takes members that its properties don't name: where it says so, and where it has no properties.
func open(s *object) bool {
	if extra, ok := s.values["additionalProperties"]; ok {
		return extra != false
	}
	_, ok := s.get("properties").(*object)
	return !ok || s.has("patternProperties")
}
