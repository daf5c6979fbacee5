package elicit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxShownArguments bounds the arguments in a question, in bytes.
const maxShownArguments = 4000

// shownValues bound each name and value, in characters. The first bound with which all fit is used,
// else the last one.
var shownValues = []int{1000, 200, 40}

// showArguments returns the arguments of a call on one line, and how many names and values are left
// out. Long ones are cut. The code chooses only what is quoted. hide is called for each text.
func showArguments(args json.RawMessage, hide func(string) string) (text string, left int) {
	for _, each := range shownValues {
		if text, left = showWithin(args, each, hide); left == 0 {
			return text, 0
		}
	}
	text += fmt.Sprintf("… (%d more names and values are not shown, of %d bytes in all)", left, len(args))
	return text, left
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

// showWithin shows the arguments as they are written: a name that comes twice is shown twice.
func showWithin(args json.RawMessage, each int, hide func(string) string) (text string, left int) {
	var line strings.Builder
	levels := []*level{{}}
	show := func(s string) {
		if left > 0 || line.Len()+len(s) > maxShownArguments {
			left++
			return
		}
		line.WriteString(s)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	for {
		t, err := dec.Token()
		if err != nil { // the end; a call has valid arguments
			return line.String(), left
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
			show(before + beginningAs(hide(v), each, strconv.Quote))
		case json.Number:
			show(before + beginningAs(hide(v.String()), each, strings.Clone))
		case nil:
			show(before + "null")
		default:
			show(before + fmt.Sprint(v))
		}
	}
}

// beginningAs returns the beginning of s as quote writes it, and how long the whole is.
func beginningAs(s string, most int, quote func(string) string) string {
	r := []rune(s)
	if len(r) <= most {
		return quote(s)
	}
	return fmt.Sprintf("%s…(%d characters)", quote(string(r[:most])), len(r))
}
