package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// Streams are what a command reads and prints, and where it asks the user.
type Streams struct {
	In       io.Reader
	Out, Err *Output
	Open     func() (io.ReadWriteCloser, error) // Open of this package, except in tests

	asking sync.Mutex // held while In is read for an answer
}

// Say writes a line for people to standard error.
func (s *Streams) Say(line string) { fmt.Fprintln(s.Err, line) }

// Complain says what went wrong with one of several things; the others go on.
func (s *Streams) Complain(err error) {
	s.Say("mcp-bridge: " + text.Escape(err.Error()))
	if next := text.Hint(err); next != "" {
		s.Say("next: " + text.Escape(next))
	}
}

// AtTerminal reports whether standard input is a terminal.
func (s *Streams) AtTerminal() bool {
	f, ok := s.In.(*os.File)
	return ok && Is(f)
}

// Ask asks on standard error, one question at a time, and returns the answer from standard input.
// What was typed at a terminal before it was asked is no answer.
// The read of a terminal can't be ended: when ctx ends, it stays behind, and the next question
// waits.
func (s *Streams) Ask(ctx context.Context, question string) (yes, answered bool, err error) {
	type answer struct{ yes, answered bool }
	said := make(chan answer, 1)
	go func() {
		s.asking.Lock()
		defer s.asking.Unlock()
		if ctx.Err() != nil {
			return
		}
		if f, ok := s.In.(*os.File); ok && Is(f) {
			_ = control(f, discard)
		}
		fmt.Fprint(s.Err, question)
		yes, answered := readAnswer(s.In)
		said <- answer{yes, answered}
	}()
	select {
	case got := <-said:
		return got.yes, got.answered, nil
	case <-ctx.Done():
		return false, false, context.Cause(ctx)
	}
}

// Confirm shows what the user is to say yes to, and returns nil if the user does, at the terminal
// that the process belongs to. A pipe in the place of standard input doesn't count. With yes it
// doesn't ask. It waits until ctx ends at most.
func (s *Streams) Confirm(ctx context.Context, shown, question string, yes bool) error {
	if yes {
		fmt.Fprint(s.Err, shown)
		return nil
	}
	t, err := s.Open()
	if err != nil {
		return exit.Usage(fmt.Errorf("there is no terminal to ask at (%w); at one, type the command again, or "+
			"type --yes", err))
	}
	defer t.Close()
	fmt.Fprint(t, shown+question)
	said := make(chan bool, 1) // a read of a terminal can't be ended
	go func() {
		yes, _ := readAnswer(t)
		said <- yes
	}()
	select {
	case yes := <-said:
		return exit.If(!yes)
	case <-ctx.Done():
		fmt.Fprintln(t)
		return context.Cause(ctx)
	}
}

// List writes all as JSON, or else a table of rows, of which the first is its head. Where that is
// the only one it writes the sentence none.
func (s *Streams) List(asJSON bool, all any, rows [][]string, none string) error {
	switch {
	case asJSON:
		return JSON(s.Out, all)
	case len(rows) == 1:
		fmt.Fprintln(s.Out, none)
	default:
		s.Out.Screen().Table(Table{Rows: rows})
	}
	return nil
}

// JSON writes one indented document to w.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
