package stubs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// class is an object with known members: a TypedDict.
type class struct {
	name    string
	members []member
}

type member struct {
	key, typ string
	required bool
	note     string // one line, for a comment
}

// reservedClasses are names that the module's own text uses.
var reservedClasses = []string{"Any", "Literal", "TypedDict", "NotImplementedError"}

var notInName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// className returns a name in CapWords.
func className(name string) string {
	var out strings.Builder
	for _, word := range notInName.Split(name, -1) {
		if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

// className returns a free name for a class of this tool. A number sets apart what would have the
// same.
func (b *builder) className(hint string) string {
	own := className(hint)
	base := b.base + own[:min(len(own), maxClassName)]
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = "T" + base
	}
	name := base
	for b.module.taken[name] || slices.Contains(neverClasses, name) {
		n := max(b.module.numbers[base], 2)
		b.module.numbers[base] = n + 1
		name = fmt.Sprintf("%s_%d", base, n)
	}
	b.module.taken[name] = true
	return name
}

const maxClassName = 200 // bytes of it behind the tool's

// neverClasses are the keywords in CapWords.
var neverClasses = []string{"True", "False", "None"}

// record makes the class of an object. Its place among the classes is after those that it needs, as
// far as they don't need it.
func (b *builder) record(s *object, name string, depth int) {
	required := b.document.required(s)
	c := class{name: name}
	hint := strings.TrimPrefix(name, b.base)
	properties := s.child("properties")
	for _, key := range properties.keys {
		if len(c.members) == maxParameters || !b.document.spendText(len(key)) {
			break
		}
		property := properties.get(key)
		t := b.typeOf(property, hint+" "+key, depth+1)
		c.members = append(c.members, member{key, t.text(), required[key], b.document.remark(property)})
	}
	b.classes = append(b.classes, c)
}

// shadowing are names that the types of other members need; a member of that name would take their
// place.
var shadowing = []string{"str", "int", "float", "bool", "list", "dict", "Any", "Literal", "TypedDict"}

// plain reports whether a member can be declared as name: type.
func (m member) plain() bool {
	return identifier(m.key) == m.key && !strings.HasPrefix(m.key, "_") && !slices.Contains(shadowing, m.key)
}

func (c class) text() string {
	var required, optional []member
	for _, m := range c.members {
		if m.required {
			required = append(required, m)
		} else {
			optional = append(optional, m)
		}
	}
	switch {
	case len(optional) == 0:
		return typedDict(c.name, required, "", true)
	case len(required) == 0:
		return typedDict(c.name, optional, "", false)
	case !slices.ContainsFunc(optional, func(m member) bool { return !m.plain() }):
		return typedDict(c.name+"_", required, "", true) + typedDict(c.name, optional, c.name+"_", false)
	}
	return typedDict(c.name+"_", required, "", true) + typedDict(c.name+"__", optional, "", false) +
		fmt.Sprintf("\n\nclass %s(%[1]s_, %[1]s__):\n    pass\n", c.name)
}

// typedDict returns one class, in the form of a call when a key is no name. Types are quoted there,
// since they are evaluated at once.
func typedDict(name string, members []member, base string, total bool) string {
	var text strings.Builder
	if slices.ContainsFunc(members, func(m member) bool { return !m.plain() }) {
		fmt.Fprintf(&text, "\n\n%s = TypedDict(\n    %s,\n    {\n", name, quote(name))
		for _, m := range members {
			text.WriteString(m.comment("        "))
			fmt.Fprintf(&text, "        %s: %s,\n", quote(m.key), quote(m.typ))
		}
		text.WriteString("    },\n")
		if !total {
			text.WriteString("    total=False,\n")
		}
		text.WriteString(")\n")
		return text.String()
	}
	parents := "TypedDict"
	if base != "" {
		parents = base
	}
	if !total {
		parents += ", total=False"
	}
	fmt.Fprintf(&text, "\n\nclass %s(%s):\n", name, parents)
	for _, m := range members {
		text.WriteString(m.comment("    "))
		fmt.Fprintf(&text, "    %s: %s\n", m.key, m.typ)
	}
	return text.String()
}

func (m member) comment(indent string) string {
	if m.note == "" {
		return ""
	}
	return indent + "# " + m.note + "\n"
}
