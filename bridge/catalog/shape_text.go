package catalog

import (
	"strconv"
	"strings"
)

// text returns the shape as a Python type, with objects as {key: type, key?: type}, in about most
// bytes: what is beyond is "…".
func (s *shape) text(most int) string {
	p := &shapePrinter{left: most}
	p.shape(s.known())
	return p.out.String()
}

// shapePrinter writes a shape. Once left is used up it only closes what is open.
type shapePrinter struct {
	out  strings.Builder
	left int
}

func (p *shapePrinter) write(text string) {
	p.out.WriteString(text)
	p.left -= len(text)
}

var scalarNames = []struct {
	scalar int
	name   string
}{{isBool, "bool"}, {isInt, "int"}, {isFloat, "float"}, {isStr, "str"}}

func (p *shapePrinter) shape(s *shape) {
	before := p.out.Len()
	or := func() {
		if p.out.Len() > before {
			p.write(" | ")
		}
	}
	if s.Any {
		p.write("Any")
		return
	}
	if s.Item != nil {
		p.write("list[")
		p.shape(s.Item)
		p.write("]")
	}
	if s.isObject() {
		or()
		p.object(s)
	}
	for _, n := range scalarNames {
		if s.Scalars&n.scalar != 0 {
			or()
			p.write(n.name)
		}
	}
	if s.Scalars&isNull != 0 {
		or()
		p.write("None")
	}
	if p.out.Len() == before { // of an empty list
		p.write("Any")
	}
}

func (p *shapePrinter) object(s *shape) {
	if s.Value != nil {
		p.write("{str: ")
		p.shape(s.Value)
		p.write("}")
		return
	}
	p.write("{")
	for i, f := range s.Fields {
		if i > 0 {
			p.write(", ")
		}
		if p.left <= 0 {
			p.write("…")
			break
		}
		p.write(fieldKey(f))
		p.shape(f.Shape)
	}
	p.write("}")
}

func fieldKey(f shapeField) string {
	name := f.Key
	if strings.Contains(name, "-") {
		name = strconv.Quote(name)
	}
	if f.Optional {
		name += "?"
	}
	return name + ": "
}
