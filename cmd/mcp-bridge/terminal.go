package main

import (
	"errors"
	"io"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// shown returns w, or where w is a terminal, a writer that shows control and hidden characters there
// instead of sending them: what a server or the code of a run says could otherwise move the cursor,
// overwrite what was printed before, or have the terminal type an answer.
func shown(w io.Writer) io.Writer {
	f, ok := w.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return w
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return w
	}
	return visible{w: w}
}

// visible writes control and hidden characters as Go would in a string, other than ends of lines and
// tabs. A character that is cut between two writes comes out as two that aren't one.
type visible struct {
	w       io.Writer
	returns bool // carriage returns pass
}

func (v visible) Write(p []byte) (int, error) {
	parts := []string{string(p)}
	if v.returns {
		parts = strings.Split(string(p), "\r")
	}
	for i, part := range parts {
		parts[i] = text.Escape(part)
	}
	if _, err := io.WriteString(v.w, strings.Join(parts, "\r")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// codeOutput returns a writer for what the code of a run prints: as w, but carriage returns reach a
// terminal, since progress bars need them.
func codeOutput(w io.Writer) io.Writer {
	switch w := w.(type) {
	case *watched:
		return watching{w, codeOutput(w.w)}
	case visible:
		w.returns = true
		return w
	}
	return w
}

// console is the terminal that the process belongs to, wherever its standard streams lead.
type console struct{ in, out *os.File }

// openConsole opens the terminal that the process belongs to.
func openConsole() (io.ReadWriteCloser, error) {
	in, out := "/dev/tty", "/dev/tty"
	if goruntime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	r, err := os.OpenFile(in, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	w, err := os.OpenFile(out, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return console{r, w}, nil
}

func (c console) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c console) Write(p []byte) (int, error) { return c.out.Write(p) }
func (c console) Close() error                { return errors.Join(c.in.Close(), c.out.Close()) }
