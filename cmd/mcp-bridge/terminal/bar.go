package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Bar shows progress: on a terminal as one line that changes, elsewhere as a line for each part of
// the work.
type Bar struct {
	s    Screen
	part string // the last one shown, if there is no terminal
}

// Bar returns a bar that shows nothing yet.
func (o *Output) Bar() *Bar { return &Bar{s: o.Screen()} }

// cells is the width of a bar.
const cells = 24

// Show shows what is being done, as in "part: more", and the percentage of all that is done.
func (b *Bar) Show(percent int, doing string) {
	doing = text.Escape(doing)
	if b.s.columns == 0 {
		if part, _, _ := strings.Cut(doing, ": "); part != b.part {
			b.part = part
			b.write(part + "\n")
		}
		return
	}
	done := cells * min(max(percent, 0), 100) / 100
	line := fmt.Sprintf("[%s%s] %3d%% ", strings.Repeat("=", done), strings.Repeat(" ", cells-done), percent)
	if room := b.s.columns - 1 - len(line); room > 0 {
		line += string([]rune(doing)[:min(len([]rune(doing)), room)])
	}
	b.write("\r\x1b[K" + line)
}

// End clears the bar's line on a terminal.
func (b *Bar) End() {
	if b.s.columns > 0 {
		b.write("\r\x1b[K")
	}
}

func (b *Bar) write(s string) { _, _ = io.WriteString(b.s.w, s) } // Output remembers a failure
