package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// status of a row.
type status string

const (
	fine   status = "ok"
	toKnow status = "note" // something to know that keeps nothing from working
	broken status = "fail" // something that keeps code from running
)

// row is one thing that was checked.
type row struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Found  string `json:"found"`
	Means  string `json:"means,omitempty"`
	Fix    string `json:"fix,omitempty"` // what to type or to change
}

// report is all of it, for programs.
type report struct {
	Version string `json:"version"`
	Works   bool   `json:"works"` // code can be run
	Rows    []row  `json:"rows"`
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

const (
	checkWidth = 16 // columns of a row's name
	indent     = 4 + 2 + checkWidth + 2
	narrowest  = 30 // columns of text on a terminal that is hardly there
)

// table prints rows as they come.
type table struct {
	w     io.Writer
	width int // columns of text beside the names; 0 means that nothing is wrapped
}

// newTable wraps to the terminal's width, if w is one. Elsewhere each part of a row is one line, for grep.
func newTable(w io.Writer) *table {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return &table{w: w}
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns = 80
	}
	return &table{w: w, width: max(columns-indent, narrowest)}
}

func (t *table) print(r row) {
	lines := t.wrap(r.Found)
	if r.Means != "" {
		lines = append(lines, t.wrap(r.Means)...)
	}
	if r.Fix != "" {
		lines = append(lines, t.wrap("next: "+r.Fix)...)
	}
	for i, l := range lines {
		if i == 0 {
			fmt.Fprintf(t.w, "%-4s  %-*s  %s\n", r.Status, checkWidth, r.Check, l)
		} else {
			fmt.Fprintf(t.w, "%*s%s\n", indent, "", l)
		}
	}
}

// wrap breaks text between words into lines of at most t.width columns. A longer word has a line of its own, whole: it is a
// path or a digest, to be copied. Breaks in the text itself stay.
func (t *table) wrap(text string) []string {
	var lines []string
	for part := range strings.Lines(text) {
		part = strings.TrimRight(part, "\r\n")
		if t.width == 0 {
			lines = append(lines, part)
			continue
		}
		line := ""
		for _, word := range strings.Fields(part) {
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= t.width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}
