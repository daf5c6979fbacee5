package stubs

import (
	"maps"
	"slices"
)

// document is a schema that its references lead into. It is read within a budget, for the server
// that sent it decides neither how long the bridge works on it nor how much text comes of it.
// Without a budget left, schemas say less than they do.
type document struct {
	root      any
	left      int             // steps; below zero once there were too few
	following map[string]bool // references being folded
}

func newDocument(root any) *document {
	return &document{root: root, left: maxSteps, following: map[string]bool{}}
}

// spend takes n steps from the budget and says whether they were there.
func (d *document) spend(n int) bool {
	d.left -= n
	return d.left >= 0
}

// spendText spends for work on n bytes of text.
func (d *document) spendText(n int) bool { return d.spend(1 + n/textStep) }

// effective returns a schema with its reference followed and its allOf folded in: properties and
// required of all of them, and of other keywords the first. It returns s itself where there is
// nothing to fold.
func (d *document) effective(s *object) *object { return d.folded(s, 0) }

func (d *document) folded(s *object, depth int) *object {
	ref, isRef := s.get("$ref").(string)
	all := s.list("allOf")
	if !isRef && len(all) == 0 {
		return s
	}
	out := &object{}
	if !d.spend(1 + len(s.keys)) {
		return out
	}
	for _, key := range s.keys {
		if key != "$ref" && key != "allOf" {
			out.set(key, s.get(key))
		}
	}
	if depth > maxDepth {
		return out
	}
	if isRef && !d.following[ref] && d.spendText(len(ref)) {
		d.following[ref] = true
		if target, ok := resolve(d.root, ref); ok {
			d.foldIn(out, target, depth)
		}
		delete(d.following, ref)
	}
	for _, part := range all {
		if !d.spend(1) {
			break
		}
		d.foldIn(out, part, depth)
	}
	return out
}

// foldIn adds what into doesn't have yet.
func (d *document) foldIn(into *object, part any, depth int) {
	s, ok := part.(*object)
	if !ok {
		return
	}
	from := d.folded(s, depth+1)
	for _, key := range from.keys {
		switch {
		case key == "properties":
			d.foldProperties(into, from)
		case key == "required":
			if list := into.list(key); d.spend(1 + len(list) + len(from.list(key))) {
				into.set(key, append(slices.Clone(list), from.list(key)...))
			}
		case d.spend(1) && !into.has(key):
			into.set(key, from.get(key))
		}
	}
}

func (d *document) foldProperties(into, from *object) {
	const key = "properties"
	if !d.spend(1 + len(into.child(key).keys) + len(from.child(key).keys)) {
		return
	}
	merged := &object{}
	for _, o := range []*object{into.child(key), from.child(key)} {
		for _, name := range o.keys {
			if !merged.has(name) {
				merged.set(name, o.get(name))
			}
		}
	}
	into.set(key, merged)
}

// alternatives returns the schema of an object that is one of several: it may have the properties
// of all of them, as any of them has it, and requires what all of them require.
func (d *document) alternatives(s *object) *object {
	branches := append(slices.Clone(s.list("anyOf")), s.list("oneOf")...)
	if len(s.child("properties").keys) > 0 || len(branches) == 0 {
		return s
	}
	out, properties, count := &object{}, &object{}, map[string]int{}
	for _, key := range s.keys {
		out.set(key, s.get(key))
	}
	required := slices.Clone(s.list("required"))
	for _, branch := range branches {
		o, ok := branch.(*object)
		if !ok {
			return s
		}
		o = d.folded(o, 1)
		found := o.child("properties")
		if !d.spend(1 + len(found.keys) + len(o.list("required"))) {
			break
		}
		for _, name := range found.keys {
			several := append(properties.child(name).list("anyOf"), found.get(name))
			properties.set(name, &object{keys: []string{"anyOf"}, values: map[string]any{"anyOf": several}})
		}
		for _, name := range slices.Sorted(maps.Keys(setOf(o.strings("required")))) {
			if count[name]++; count[name] == len(branches) {
				required = append(required, name)
			}
		}
	}
	out.set("properties", properties)
	out.set("required", required)
	return out
}

// required returns the names that an object requires, as far as the budget goes.
func (d *document) required(s *object) map[string]bool {
	if !d.spend(len(s.list("required"))) {
		return nil
	}
	return setOf(s.strings("required"))
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
