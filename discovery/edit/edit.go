// Package edit changes single values of JSON, TOML and YAML text, and leaves every other byte as it
// is: comments, order, indentation, trailing commas, line ends and a byte order mark.
//
// The parsers say where things are, and the text is changed there. Apply parses what it has made,
// and returns it only if it holds exactly what was there before and the change. It reads and writes
// no file.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// A Change is one value to be set, added or removed.
type Change struct {
	Path  []string     // names of members, outermost first; objects that are missing are made
	Value config.Value // the zero value removes what is at Path
	Add   bool         // Value becomes the last element of the array at Path, unless it is there
}

// An Error is why a text can't be changed. It quotes nothing of the text.
type Error struct{ Reason, Next string }

func (e *Error) Error() string { return e.Reason }

// Hint returns the next step for a person.
func (e *Error) Hint() string { return e.Next }

const byHand = "make the change by hand"

func unable(format string, a ...any) *Error { return &Error{fmt.Sprintf(format, a...), byHand} }

var byteOrderMark = []byte("\xef\xbb\xbf")

// Apply returns text with a change made; text itself where there is nothing to change. The ending
// of the file's name decides whether it is JSON, with or without comments, TOML or YAML. A text
// that holds nothing but space is an empty object.
func Apply(name string, text []byte, c Change) ([]byte, error) {
	before, err := Parse(name, text)
	if err != nil {
		return nil, err
	}
	if len(c.Path) == 0 || slices.Contains(c.Path, "") {
		return nil, unable("a change names no place")
	}
	want, err := apply(before, c)
	if err != nil {
		return nil, err
	}
	if want.Value().Equal(before.Value()) {
		return text, nil
	}
	body, marked := bytes.CutPrefix(text, byteOrderMark)
	d := &document{text: string(body), newline: "\n"}
	if i := strings.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		d.newline = "\r\n"
	}
	var splices []splice
	switch {
	case strings.HasSuffix(name, ".toml"):
		splices, err = d.toml(c)
	case config.IsYAML(name):
		splices, err = d.yaml(c)
	default:
		splices, err = d.json(c)
	}
	if err != nil {
		return nil, err
	}
	made := []byte(d.splice(splices))
	if marked {
		made = slices.Concat(byteOrderMark, made)
	}
	if after, err := Parse(name, made); err != nil || !after.Value().Equal(want.Value()) {
		return nil, unable("it is written in a way that can't be changed without touching more of it")
	}
	return made, nil
}

// Parse returns what a text holds.
func Parse(name string, text []byte) (config.Object, error) {
	if len(bytes.TrimSpace(bytes.TrimPrefix(text, byteOrderMark))) == 0 {
		return nil, nil
	}
	root, _, bad := config.Parse(name, text)
	if bad.Refused() {
		return nil, &Error{bad.Reason, bad.Next}
	}
	return root, nil
}

// At returns the value at a path, and how many names of the path there are.
func At(root config.Object, path []string) (v config.Value, depth int) {
	v = root.Value()
	for i, name := range path {
		o, _ := v.Object()
		if v = o.Get(name); v.Is("nothing") {
			return v, i
		}
	}
	return v, len(path)
}

// apply returns an object with a change made.
func apply(o config.Object, c Change) (config.Object, error) {
	name, rest := c.Path[0], c.Path[1:]
	if n := count(o, name); n > 1 {
		return nil, &Error{fmt.Sprintf("it has %q more than once", name), "merge them into one"}
	}
	value, made := o.Get(name), c.Value
	switch {
	case len(rest) > 0:
		inner, ok := value.Object()
		if !ok && !value.Absent() {
			return nil, &Error{fmt.Sprintf("its %q is %s, not an object", name, value.Kind()), "correct it"}
		}
		if !ok && c.Value.Is("nothing") {
			return o, nil
		}
		changed, err := apply(inner, Change{rest, c.Value, c.Add})
		if err != nil {
			return nil, err
		}
		made = changed.Value()
	case c.Add:
		list, ok := value.Array()
		if !ok && !value.Absent() {
			return nil, &Error{fmt.Sprintf("its %q is %s, not an array", name, value.Kind()), "correct it"}
		}
		if slices.ContainsFunc(list, c.Value.Equal) {
			return o, nil
		}
		made = config.List(append(slices.Clone(list), c.Value))
	}
	o = slices.Clone(o)
	at := slices.IndexFunc(o, func(m config.Member) bool { return m.Name == name })
	switch {
	case made.Is("nothing") && at < 0:
		return o, nil
	case made.Is("nothing"):
		return slices.Delete(o, at, at+1), nil
	case at < 0:
		return append(o, config.Member{Name: name, Value: made}), nil
	}
	o[at].Value = made
	return o, nil
}

func count(o config.Object, name string) (n int) {
	for _, m := range o {
		if m.Name == name {
			n++
		}
	}
	return n
}

// A document is a text that is being changed.
type document struct {
	text    string
	newline string
}

// A splice replaces text[start:end].
type splice struct {
	start, end int
	with       string
}

func (d *document) splice(all []splice) string {
	slices.SortStableFunc(all, func(a, b splice) int { return a.start - b.start })
	var b strings.Builder
	last := 0
	for _, s := range all {
		b.WriteString(d.text[last:max(last, s.start)])
		b.WriteString(s.with)
		last = max(last, s.end)
	}
	b.WriteString(d.text[last:])
	return b.String()
}

// lineStart returns where the line of an offset begins.
func (d *document) lineStart(at int) int { return strings.LastIndexByte(d.text[:at], '\n') + 1 }

// lineEnd returns where the next line begins, or the end of the text.
func (d *document) lineEnd(at int) int {
	if i := strings.IndexByte(d.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(d.text)
}

// indent returns the blanks that the line of an offset begins with.
func (d *document) indent(at int) string {
	line := d.text[d.lineStart(at):]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// onNewLine returns what has to stand before a line that is put at an offset.
func (d *document) onNewLine(at int) string {
	if at > 0 && d.text[at-1] != '\n' {
		return d.newline
	}
	return ""
}

// nested returns a value within objects that are missing, outermost first.
func nested(path []string, v config.Value) config.Value {
	for _, name := range slices.Backward(path) {
		v = config.Object{{Name: name, Value: v}}.Value()
	}
	return v
}

// Inverse returns the change that takes one back, and whether there is anything to take back.
// before and now are the roots before the change was made and now. What it returns is an error
// where the place holds something else by now.
func Inverse(before, now config.Object, c Change) (back []Change, err error) {
	was, depth := At(before, c.Path)
	is, _ := At(now, c.Path)
	if c.Add {
		list, _ := is.Array()
		old, _ := was.Array()
		i := slices.IndexFunc(list, c.Value.Equal)
		if i < 0 || slices.ContainsFunc(old, c.Value.Equal) {
			return nil, nil
		}
		if list = slices.Delete(slices.Clone(list), i, i+1); len(list) > 0 || depth == len(c.Path) {
			return []Change{{Path: c.Path, Value: config.List(list)}}, nil
		}
		return prune(now, c.Path, depth), nil
	}
	switch {
	case is.Equal(was):
		return nil, nil
	case !is.Equal(c.Value):
		return nil, errChanged
	case was.Is("nothing"):
		return prune(now, c.Path, depth), nil
	}
	return []Change{{Path: c.Path, Value: was}}, nil
}

var errChanged = errors.New("it was changed meanwhile")

// prune returns the change that removes what is at a path, with the objects around it that there
// were none of before and that hold nothing else.
func prune(root config.Object, path []string, depth int) []Change {
	for len(path) > depth+1 {
		around, _ := At(root, path[:len(path)-1])
		if o, _ := around.Object(); len(o) != 1 {
			break
		}
		path = path[:len(path)-1]
	}
	return []Change{{Path: path}}
}

// Dotted returns a path as messages show it.
func Dotted(path []string) string {
	shown := make([]string, len(path))
	for i, name := range path {
		shown[i] = config.Display(name)
	}
	return strings.Join(shown, " → ")
}
