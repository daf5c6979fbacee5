package stubs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// resolve follows a reference into the schema it stands in. References to elsewhere aren't
// followed.
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

// open reports whether an object takes members that its properties don't name: where it says so,
// and where it has no properties.
func open(s *object) bool {
	if extra, ok := s.values["additionalProperties"]; ok {
		return extra != false
	}
	_, ok := s.get("properties").(*object)
	return !ok || s.has("patternProperties")
}

// unwrapped returns the schema of the value that code gets: that of the property "result" where a
// server's library, such as FastMCP, sends every value in an object with that one property, and of
// "content" where that is a text, as the reference server for files sends it.
func unwrapped(output *object) any {
	properties, extra := output.child("properties"), output.get("additionalProperties")
	if len(properties.keys) != 1 || !slices.Equal(kinds(output), []string{"object"}) ||
		extra != nil && extra != false {
		return output
	}
	inner := properties.get(properties.keys[0])
	text, _ := inner.(*object)
	switch properties.keys[0] {
	case "result":
		return inner
	case "content":
		if text != nil && slices.Equal(kinds(text), []string{"string"}) {
			return inner
		}
	}
	return output
}
