package terminal

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	narrowest = 12 // columns that a text gets even on a terminal that has hardly any
	gap       = 2  // columns between two of a table
)

// Screen lays out text on an Output. Only a terminal gets wrapped lines, colours, and ~ for the
// home directory.
type Screen struct {
	w       io.Writer
	columns int // of the terminal; 0 for none
	colors  bool
	home    *regexp.Regexp // the home directory where a path begins with it; nil for none
}

// raw writes what a Screen has escaped.
type raw struct{ *Output }

func (r raw) Write(p []byte) (int, error) { return r.raw(p) }

// Screen returns the output's screen.
func (o *Output) Screen() Screen {
	s := Screen{w: raw{o}}
	if o.file == nil {
		return s
	}
	s.colors = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if home, _ := os.UserHomeDir(); len(home) > 1 {
		s.home = beginning(home)
	}
	s.columns = 80
	_ = control(o.file, func(fd int) {
		if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
			s.columns = columns
		}
	})
	return s
}

// beginning returns what matches a directory where a path begins with it.
func beginning(dir string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[ \t\n("'=:,])` + regexp.QuoteMeta(dir+string(os.PathSeparator)))
}

// clean returns a text as the screen may show it.
func (s Screen) clean(v string) string {
	v = text.Escape(v)
	if s.home == nil {
		return v
	}
	return s.home.ReplaceAllString(v, "${1}~"+string(os.PathSeparator))
}

// paint returns a word in the colour of what it says.
func (s Screen) paint(word string) string {
	color := map[string]pretty.Color{
		"ok": pretty.FgGreen, "allow": pretty.FgGreen, "fail": pretty.FgRed, "fails": pretty.FgRed,
		"deny": pretty.FgRed, "note": pretty.FgYellow, "ask": pretty.FgYellow,
	}[strings.TrimSpace(word)]
	if !s.colors || color == 0 {
		return word
	}
	return color.Sprint(word)
}

// Lines writes a text, wrapped, with its first line indented by first columns and the others by
// rest.
func (s Screen) Lines(first, rest int, v string) {
	width := 0
	if s.columns > 0 {
		width = max(s.columns-rest, narrowest)
	}
	for i, line := range strings.Split(wrap(s.clean(v), width), "\n") {
		if i > 0 {
			first = rest
		}
		_, _ = io.WriteString(s.w, strings.Repeat(" ", first)+line+"\n") // Output remembers a failure
	}
}

// Entry writes a word that says how something is, its name padded to columns, and a text beside
// them.
func (s Screen) Entry(word, name string, columns int, v string) {
	fmt.Fprintf(s.w, "%s  %-*s  ", s.paint(fmt.Sprintf("%-4s", word)), columns, s.clean(name))
	s.Lines(0, 4+2+columns+2, v)
}

// Table is rows of which the first is the header. Spare is the number, from 1, of a column that is
// left out if not all fit; Word is that of a column whose words are painted; from Numbers on
// columns are aligned to the right. 0 means no column.
type Table struct {
	Rows                 [][]string
	Spare, Word, Numbers int
}

// Table writes a table. On a terminal it is made to fit by wrapping its widest columns.
func (s Screen) Table(t Table) {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", gap)
	style.Format.Header = pretty.FormatDefault
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	widths := make([]int, len(t.Rows[0]))
	for i, cells := range t.Rows {
		row := make(table.Row, len(cells))
		for j, c := range cells {
			c = s.clean(c)
			widths[j] = max(widths[j], pretty.LongestLineLen(c))
			switch {
			case i == 0 && s.colors:
				c = pretty.Faint.Sprint(c)
			case i > 0 && j == t.Word-1:
				c = s.paint(c)
			}
			row[j] = c
		}
		w.AppendRow(row)
	}
	columns := s.fit(widths, t.Spare)
	for i := range columns {
		if t.Numbers > 0 && i+1 >= t.Numbers {
			columns[i].Align = pretty.AlignRight
		}
	}
	w.SetColumnConfigs(columns)
	_, _ = io.WriteString(s.w, w.Render()+"\n")
}

// fit narrows the widest columns until all fit the screen.
func (s Screen) fit(widths []int, spare int) []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(widths))
	total := -gap
	for i, w := range widths {
		configs[i].Number = i + 1
		total += w + gap
	}
	if s.columns == 0 {
		return configs
	}
	if spare > 0 && total > s.columns {
		total -= widths[spare-1] + gap
		widths[spare-1], configs[spare-1].Hidden = 0, true
	}
	for ; total > s.columns; total-- {
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
	}
	for i, w := range widths {
		configs[i].WidthMax, configs[i].WidthMaxEnforcer = w, wrap
	}
	return configs
}

// wrap breaks a text into lines of at most width columns, between words, or after the slashes of a
// longer word. What is longer still has a line of its own, whole, so that it can be copied. A width
// of 0 breaks nothing.
func wrap(v string, width int) string {
	if width <= 0 {
		return v
	}
	var lines []string
	for part := range strings.Lines(v) {
		line, joint := "", ""
		add := func(piece string) {
			if line != "" && pretty.StringWidthWithoutEscSequences(line+joint+piece) > width {
				lines = append(lines, line)
				line, joint = "", ""
			}
			line += joint + piece
			joint = ""
		}
		for _, word := range strings.Fields(part) {
			pieces := []string{word}
			if pretty.StringWidthWithoutEscSequences(word) > width {
				pieces = strings.SplitAfter(word, "/")
			}
			for _, piece := range pieces {
				add(piece)
			}
			if joint = " "; line == "" {
				joint = ""
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
