package main

import (
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// screen is where a command shows text to a person. Only a terminal gets wrapped lines, colours, and
// ~ for the home directory: elsewhere each text is one line, for grep.
type screen struct {
	w       io.Writer // of a terminal: what is written is not escaped any more
	columns int       // of the terminal; 0 for none
	colors  bool
	home    string
}

// screenOf returns the screen that w, made by run, leads to.
func screenOf(w io.Writer) screen {
	s := screen{w: w}
	to, ok := w.(*watched)
	if !ok {
		return s
	}
	v, ok := to.w.(visible)
	if !ok {
		return s
	}
	f, ok := v.w.(*os.File)
	if !ok || !isTerminal(f) {
		return s
	}
	s.w = watching{to, f}
	s.colors = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	s.home, _ = os.UserHomeDir()
	var err error
	if s.columns, _, err = term.GetSize(int(f.Fd())); err != nil || s.columns <= 0 {
		s.columns = 80
	}
	return s
}

// narrowest is how many columns a text gets even where a terminal has hardly any.
const narrowest = 12

// clean returns a text as the screen may show it.
func (s screen) clean(v string) string {
	v = text.Escape(v)
	if s.columns == 0 || len(s.home) < 2 {
		return v
	}
	var out strings.Builder
	for {
		i := strings.Index(v, s.home+string(os.PathSeparator))
		if i < 0 {
			return out.String() + v
		}
		end := i + len(s.home)
		if i == 0 || strings.ContainsRune(" \t\n(\"'=:,", rune(v[i-1])) {
			out.WriteString(v[:i] + "~")
		} else { // the middle of a longer path
			out.WriteString(v[:end])
		}
		v = v[end:]
	}
}

// paint returns a word in the colour of what it says.
func (s screen) paint(word string) string {
	if !s.colors {
		return word
	}
	switch strings.TrimSpace(word) {
	case "ok", "allow":
		return pretty.FgGreen.Sprint(word)
	case "fail", "fails", "deny":
		return pretty.FgRed.Sprint(word)
	case "note", "ask":
		return pretty.FgYellow.Sprint(word)
	}
	return word
}

// dim returns a text that matters less.
func (s screen) dim(v string) string {
	if !s.colors {
		return v
	}
	return pretty.Faint.Sprint(v)
}

// lines writes a text, wrapped, with its first line indented by first columns and the others by rest.
func (s screen) lines(first, rest int, v string) {
	width := 0
	if s.columns > 0 {
		width = max(s.columns-rest, narrowest)
	}
	for i, line := range strings.Split(wrap(s.clean(v), width), "\n") {
		if i > 0 {
			first = rest
		}
		_, _ = io.WriteString(s.w, strings.Repeat(" ", first)+line+"\n") // what fails is remembered by watched
	}
}

// grid is a table: its first row is the header.
type grid struct {
	rows  [][]string
	spare int // the number of the column that is left out where not all fit, from 1; 0 for none
	word  int // the number of the column whose words are painted; 0 for none
}

// gap is how many columns lie between two of a table.
const gap = 2

// table writes a table. On a terminal it is made to fit by wrapping its widest columns.
func (s screen) table(g grid) {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", gap)
	style.Format.Header = pretty.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	widths := make([]int, len(g.rows[0]))
	for i, cells := range g.rows {
		row := make(table.Row, len(cells))
		for j, c := range cells {
			c = s.clean(c)
			widths[j] = max(widths[j], pretty.LongestLineLen(c))
			switch {
			case i == 0:
				c = s.dim(c)
			case j == g.word-1:
				c = s.paint(c)
			}
			row[j] = c
		}
		t.AppendRow(row)
	}
	t.SetColumnConfigs(s.fit(widths, g.spare))
	_, _ = io.WriteString(s.w, t.Render()+"\n")
}

// fit narrows the widest columns until all fit the screen.
func (s screen) fit(widths []int, spare int) []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(widths))
	total := 0
	for i, w := range widths {
		configs[i].Number = i + 1
		total += w + gap
	}
	if s.columns == 0 {
		return configs
	}
	total -= gap
	if spare > 0 && total > s.columns {
		total -= widths[spare-1] + gap
		widths[spare-1] = 0
		configs[spare-1].Hidden = true
	}
	for total > s.columns {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
		total--
	}
	for i, w := range widths {
		configs[i].WidthMax, configs[i].WidthMaxEnforcer = w, wrap
	}
	return configs
}

// wrap breaks a text into lines of at most width columns, between words, or after the slashes of a
// word that is longer. What is longer still has a line of its own, whole: it is to be copied. Breaks in
// the text stay. A width of 0 breaks nothing.
func wrap(v string, width int) string {
	if width <= 0 {
		return v
	}
	var lines []string
	for part := range strings.Lines(v) {
		line := ""
		for _, w := range strings.Fields(part) {
			for _, piece := range pieces(w, width) {
				joint := " "
				if line == "" || piece.joined {
					joint = ""
				}
				if line != "" && pretty.StringWidthWithoutEscSequences(line+joint+piece.text) > width {
					lines = append(lines, line)
					line, joint = "", ""
				}
				line += joint + piece.text
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// piece is a part of a word; joined says that it goes right behind the one before.
type piece struct {
	text   string
	joined bool
}

// pieces returns a word, or where it is too long for a line, its parts between slashes.
func pieces(word string, width int) (out []piece) {
	if pretty.StringWidthWithoutEscSequences(word) <= width {
		return []piece{{text: word}}
	}
	for i, p := range strings.SplitAfter(word, "/") {
		if p != "" {
			out = append(out, piece{p, i > 0})
		}
	}
	return out
}
