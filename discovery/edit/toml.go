package edit

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// A tomlPart is the header of a table, or a key and its value.
type tomlPart struct {
	path       []string // of the table, or of the key with its table's
	header     bool
	array      bool // the header is of an array of tables, or the value an array
	start, end int  // of the header's or the key's first line to its last one, or of an inner key
	value      int  // where the value begins
	last       int  // where it ends
	inline     bool // the value is an inline table
	within     bool // the key stands in an inline table
}

// tomlParts returns what a document consists of, in its order.
func (d *document) tomlParts() (parts []tomlPart, err error) {
	p := &unstable.Parser{}
	p.Reset([]byte(d.text))
	var table []string
	inArray := false
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, _, last := keys(e.Key())
			part := tomlPart{path: path, header: true, array: e.Kind == unstable.ArrayTable}
			part.start, part.end = d.lineStart(last), d.lineEnd(last)
			table, inArray = part.path, part.array
			parts = append(parts, part)
		case unstable.KeyValue:
			if !inArray {
				parts = d.keyValue(parts, table, e, false)
			}
		}
	}
	return parts, p.Error()
}

// keys returns a dotted key, where its first part begins and where its last one ends.
func keys(it unstable.Iterator) (path []string, first, last int) {
	for first = -1; it.Next(); {
		n := it.Node()
		if first < 0 {
			first = int(n.Raw.Offset)
		}
		path, last = append(path, string(n.Data)), int(n.Raw.Offset+n.Raw.Length)
	}
	return path, first, last
}

func (d *document) keyValue(parts []tomlPart, table []string, e *unstable.Node, within bool) []tomlPart {
	path, first, last := keys(e.Key())
	part := tomlPart{path: slices.Concat(table, path), within: within}
	part.start, part.last = first, int(e.Raw.Offset+e.Raw.Length)
	part.value = last + strings.IndexByte(d.text[last:], '=') + 1
	part.value += len(d.text[part.value:]) - len(strings.TrimLeft(d.text[part.value:], " \t"))
	part.end = part.last
	if !within {
		part.start, part.end = d.lineStart(first), d.lineEnd(part.last)
	}
	part.inline, part.array = e.Value().Kind == unstable.InlineTable, e.Value().Kind == unstable.Array
	parts = append(parts, part)
	if part.inline {
		for it := e.Value().Children(); it.Next(); {
			if n := it.Node(); n.Kind == unstable.KeyValue {
				parts = d.keyValue(parts, part.path, n, true)
			}
		}
	}
	return parts
}

// toml returns the splices that make a change in TOML.
func (d *document) toml(c Change) ([]splice, error) {
	parts, err := d.tomlParts()
	if err != nil {
		return nil, err // Apply has parsed it before
	}
	if c.Add {
		return nil, unable("an element can't be added to an array of TOML")
	}
	if c.Value.Is("nothing") {
		return d.removeTOML(parts, c.Path), nil
	}
	for _, p := range parts {
		if !p.header && slices.Equal(p.path, c.Path) {
			return []splice{{p.value, p.last, inTOML.line(c.Value)}}, nil
		}
	}
	removed := d.removeTOML(parts, c.Path) // its tables
	for n := len(c.Path) - 1; n > 0; n-- {
		for _, p := range parts {
			if p.inline && slices.Equal(p.path, c.Path[:n]) {
				return append(removed, d.intoInline(p, c.Path[n:], c.Value)), nil
			}
		}
	}
	if o, ok := c.Value.Object(); ok {
		return append(removed, d.newTable(c.Path, o, removed)), nil
	}
	return []splice{d.newKey(parts, c)}, nil
}

// intoInline puts a key in front of the brace that closes an inline table.
func (d *document) intoInline(p tomlPart, path []string, v config.Value) splice {
	text := tomlKeys(path) + " = " + inTOML.line(v)
	at := p.last - 1
	inside := strings.TrimSpace(d.text[p.value+1 : at])
	at -= len(d.text[:at]) - len(strings.TrimRight(d.text[:at], " \t"))
	if inside == "" {
		return splice{at, p.last - 1, " " + text + " "}
	}
	return splice{at, at, ", " + text}
}

// newTable puts a table at the end. removed is what is taken out in the same change.
func (d *document) newTable(path []string, o config.Object, removed []splice) splice {
	end := len(d.text)
	text := d.onNewLine(end)
	rest := (&document{text: d.text, newline: d.newline}).splice(slices.Clone(removed))
	if strings.TrimSpace(rest) != "" && !strings.HasSuffix(rest, d.newline+d.newline) {
		text += d.newline
	}
	text += "[" + tomlKeys(path) + "]" + d.newline
	for _, m := range o {
		text += inTOML.member(m) + d.newline
	}
	return splice{end, end, text}
}

// newKey puts a key behind the last one of its table.
func (d *document) newKey(parts []tomlPart, c Change) splice {
	table, at := c.Path[:len(c.Path)-1], -1
	for i, p := range parts {
		if p.header && !p.array && slices.Equal(p.path, table) {
			at = p.end
			for _, next := range parts[i+1:] {
				if next.header {
					break
				}
				at = max(at, next.end)
			}
		}
	}
	if len(table) == 0 {
		at = 0
		for _, p := range parts {
			if p.header {
				break
			}
			at = max(at, p.end)
		}
	}
	m := config.Member{Name: c.Path[len(table)], Value: c.Value}
	if at < 0 {
		return d.newTable(table, config.Object{m}, nil)
	}
	return splice{at, at, d.onNewLine(at) + inTOML.member(m) + d.newline}
}

// removeTOML takes out the tables and keys at a path and below it.
func (d *document) removeTOML(parts []tomlPart, path []string) (made []splice) {
	below := func(p tomlPart) bool { return len(p.path) >= len(path) && slices.Equal(p.path[:len(path)], path) }
	for i := 0; i < len(parts); i++ {
		p := parts[i]
		switch {
		case !below(p):
		case p.within:
			made = append(made, d.fromInline(p))
		case p.header:
			last, next := p, len(d.text)
			for ; i+1 < len(parts) && (!parts[i+1].header || below(parts[i+1])); i++ {
				if parts[i+1].header && last.commented(d.text, parts[i+1].start) {
					break
				}
				if !parts[i+1].within {
					last = parts[i+1]
				}
			}
			if i+1 < len(parts) {
				next = parts[i+1].start
			}
			end := next
			switch {
			case last.commented(d.text, next):
				end = last.end
			case i+1 < len(parts) && !below(parts[i+1]):
				end = d.aboveHeader(next)
			}
			made = append(made, splice{d.blankAbove(p.start, end), end, ""})
		default:
			made = append(made, splice{p.start, p.end, ""})
			for i+1 < len(parts) && parts[i+1].within && below(parts[i+1]) {
				i++
			}
		}
	}
	return made
}

// commented reports whether a comment stands between the last part of a table and what is next in a
// text. It isn't the table's to take along: a host's command may have moved it there. What an array
// of tables holds is no part.
func (p tomlPart) commented(text string, next int) bool {
	return (!p.header || !p.array) && strings.Contains(text[p.end:next], "#")
}

// aboveHeader returns where the comment begins that stands right above a header, with the blank
// lines before it.
func (d *document) aboveHeader(at int) int {
	for at > 0 {
		start := d.lineStart(at - 1)
		if line := strings.TrimSpace(d.text[start:at]); !strings.HasPrefix(line, "#") {
			break
		}
		at = start
	}
	for at > 0 {
		start := d.lineStart(at - 1)
		if strings.TrimSpace(d.text[start:at]) != "" {
			break
		}
		at = start
	}
	return at
}

// blankAbove returns where a table begins that is removed: with the blank line above it, if it is
// the last one.
func (d *document) blankAbove(start, end int) int {
	if start > 0 && end == len(d.text) {
		if above := d.lineStart(start - 1); strings.TrimSpace(d.text[above:start]) == "" {
			return above
		}
	}
	return start
}

// fromInline takes a key with one comma out of its inline table.
func (d *document) fromInline(p tomlPart) splice {
	behind := strings.TrimLeft(d.text[p.last:], " \t")
	if strings.HasPrefix(behind, ",") {
		end := len(d.text) - len(strings.TrimLeft(behind[1:], " \t"))
		return splice{p.start, end, ""}
	}
	start := len(strings.TrimRight(d.text[:p.start], " \t"))
	if strings.HasSuffix(d.text[:start], ",") {
		start = len(strings.TrimRight(d.text[:start-1], " \t"))
	} else {
		start = p.start
	}
	return splice{start, p.last, ""}
}
