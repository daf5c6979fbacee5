// Package terminal shows text to people. A terminal gets colours, lines that fit it, and no control
// characters of others; a file or a pipe gets each text as one line, for grep.
package terminal

import (
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Output is where a command prints. On a terminal it shows control and hidden characters as Go
// would in a string: what a server or the code of a run says could otherwise move the cursor,
// overwrite what was printed before, or have the terminal type an answer. It is safe for concurrent
// use as far as its writer is.
type Output struct {
	to     io.Writer
	escape bool
	file   *os.File // the terminal, if it is one

	mu  sync.Mutex
	err error
}

// New returns an output to w.
func New(w io.Writer) *Output {
	o := &Output{to: w}
	if f, ok := w.(*os.File); ok && Is(f) {
		o.escape, o.file = true, f
	}
	return o
}

// Write implements io.Writer. A character that is cut between two writes comes out as two others.
func (o *Output) Write(p []byte) (int, error) {
	if !o.escape {
		return o.raw(p)
	}
	if _, err := o.raw([]byte(text.Escape(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// raw writes what needs no escaping, and remembers the first failure.
func (o *Output) raw(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// Err returns the first failure: the disk is full, or the reader is gone.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Code returns a writer for what the code of a run prints. Carriage returns reach a terminal, since
// progress bars need them.
func (o *Output) Code() io.Writer { return code{o} }

type code struct{ *Output }

func (c code) Write(p []byte) (int, error) {
	if !c.escape {
		return c.raw(p)
	}
	parts := strings.Split(string(p), "\r")
	for i, part := range parts {
		parts[i] = text.Escape(part)
	}
	if _, err := c.raw([]byte(strings.Join(parts, "\r"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Is reports whether f is a terminal. It leaves the descriptor's mode alone, which File.Fd does
// not.
func Is(f *os.File) (is bool) {
	_ = control(f, func(fd int) { is = term.IsTerminal(fd) })
	return is
}

// control calls do with f's descriptor.
func control(f *os.File, do func(fd int)) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { do(int(fd)) })
}

// console is the terminal that the process belongs to.
type console struct {
	*Output
	in, out *os.File
}

// Open opens the terminal that the process belongs to, wherever its standard streams lead.
func Open() (io.ReadWriteCloser, error) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
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
	return console{&Output{to: w, escape: true}, r, w}, nil
}

func (c console) Read(p []byte) (int, error) { return c.in.Read(p) }
func (c console) Close() error               { return errors.Join(c.in.Close(), c.out.Close()) }

// readAnswer reads one line and nothing beyond it. yes reports whether it is y or yes; there is no
// answer if the input ends first.
func readAnswer(r io.Reader) (yes, answered bool) {
	const limit = 64 // bytes; a longer line is neither yes nor no
	var line []byte
	for b := make([]byte, 1); len(line) < limit; {
		n, err := r.Read(b)
		if line = append(line, b[:n]...); err != nil || n > 0 && b[0] == '\n' {
			break
		}
	}
	word := strings.ToLower(strings.TrimSpace(string(line)))
	return slices.Contains([]string{"y", "yes"}, word), len(line) > 0
}
