package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
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
)

// print writes a row: its status, its name and, beside them, what there is to say.
func (s screen) print(r row) {
	parts := []string{r.Found}
	if r.Means != "" {
		parts = append(parts, r.Means)
	}
	if r.Fix != "" {
		parts = append(parts, "next: "+r.Fix)
	}
	fmt.Fprintf(s.w, "%s  %-*s  ", s.paint(fmt.Sprintf("%-4s", r.Status)), checkWidth, s.clean(r.Check))
	s.lines(0, indent, strings.Join(parts, "\n"))
}
