package elicit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// maxShownArguments bounds the arguments in a question, in bytes.
const maxShownArguments = 4000

// shownValues bound each name and value, in characters. The first bound with which all fit is used,
// else the last one.
var shownValues = []int{maxShownArguments, 1000, 200, 40}

// showArguments returns the arguments of a call on one line, and whether that is the whole of them.
// Long names and values are cut. The code chooses only what is quoted. hide is called for each
// text.
func showArguments(args json.RawMessage, hide func(string) string) (line string, whole bool) {
	left := 0
	for _, each := range shownValues {
		if line, whole, left = showWithin(args, each, hide); left == 0 {
			return line, whole
		}
	}
	line += fmt.Sprintf("… (%d more names and values are not shown, of %d bytes in all)", left, len(args))
	return line, false
}

// level is an object or a list that is being shown.
type level struct {
	object bool
	items  int // names and values of it so far
}

// separator returns what comes before the next item.
func (l *level) separator() string {
	l.items++
	switch {
	case l.object && l.items%2 == 0:
		return ":"
	case l.items > 1:
		return ","
	}
	return ""
}

// showWithin shows the arguments as they are written: a name that comes twice is shown twice. It
// returns whether no name or value is cut, too, and how many are left out.
func showWithin(args json.RawMessage, each int, hide func(string) string) (_ string, whole bool, left int) {
	var line strings.Builder
	whole = true
	levels := []*level{{}}
	show := func(s string) {
		if left > 0 || line.Len()+len(s) > maxShownArguments {
			left++
			return
		}
		line.WriteString(s)
	}
	cut := func(s string, quote func(string) string) string {
		shown, all := endsOf(s, each, quote)
		whole = whole && all
		return shown
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	for {
		t, err := dec.Token()
		if err != nil { // the end; a call has valid arguments
			return line.String(), whole, left
		}
		if d, ok := t.(json.Delim); ok && (d == '}' || d == ']') {
			levels = levels[:len(levels)-1]
			if left == 0 { // there are no more of them than of openings
				line.WriteString(d.String())
			}
			continue
		}
		before := levels[len(levels)-1].separator()
		switch v := t.(type) {
		case json.Delim:
			levels = append(levels, &level{object: v == '{'})
			show(before + v.String())
		case string:
			show(before + cut(hide(v), text.Quoted))
		case json.Number:
			show(before + cut(hide(v.String()), strings.Clone))
		case nil:
			show(before + "null")
		default:
			show(before + fmt.Sprint(v))
		}
	}
}

// endsOf returns s as quote writes it, or of one with more than most characters the beginning and
// the end, with its length between them, and whether that is all.
func endsOf(s string, most int, quote func(string) string) (shown string, all bool) {
	r, whole := []rune(s), quote(s)
	if len(r) <= most || len(whole) <= most {
		return whole, true
	}
	first, last := quote(string(r[:most/2])), quote(string(r[len(r)-most/2:]))
	return fmt.Sprintf("%s…(%d characters)…%s", first, len(r), last), false
}
