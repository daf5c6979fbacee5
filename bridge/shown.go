package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxShownArguments bounds the arguments in a question, in bytes.
const maxShownArguments = 4000

// shownValues bounds each name and value, in characters: the first of these with which all of them are shown, else the last one.
var shownValues = []int{1000, 200, 40}

// showArguments gives the arguments of a call on one line, with every name and value, of long ones the beginning, and says how many are
// left out where that is too much all the same. The code has its say in nothing but what is quoted. Hide is for each text by itself.
func showArguments(args json.RawMessage, hide func(string) string) (text string, left int) {
	for _, each := range shownValues {
		if text, left = showWithin(args, each, hide); left == 0 {
			return text, 0
		}
	}
	return fmt.Sprintf("%s… (%d more names and values are not shown, of %d bytes in all)", text, left, len(args)), left
}

// level is an object or a list that is being shown.
type level struct {
	object bool
	items  int // names and values of it so far
}

// separator is what comes before the next item.
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

// showWithin goes through the arguments as they are written: a name that comes twice is shown twice.
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
			if left == 0 { // no more of them than what they end
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
		default:
			show(before + fmt.Sprint(orNull(t)))
		}
	}
}

// orNull is what JSON calls a value that is no text.
func orNull(v any) any {
	if v == nil {
		return "null"
	}
	return v
}

// beginningAs is the beginning of a text as quote writes it, and how long the whole is.
func beginningAs(s string, most int, quote func(string) string) string {
	r := []rune(s)
	if len(r) <= most {
		return quote(s)
	}
	return fmt.Sprintf("%s…(%d characters)", quote(string(r[:most])), len(r))
}
