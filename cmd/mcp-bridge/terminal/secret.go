package terminal

import (
	"context"
	"errors"
	"os"

	"golang.org/x/term"
)

// ReadSecret reads a line from a terminal, which doesn't show it, and returns it without its end.
// The read can't be ended: when ctx ends, it stays behind, and the terminal shows again what is
// typed.
func ReadSecret(ctx context.Context, f *os.File) (line string, err error) {
	var before *term.State
	lost := control(f, func(fd int) { before, err = term.GetState(fd) })
	if err = errors.Join(lost, err); err != nil {
		return "", err
	}
	type answer struct {
		line []byte
		err  error
	}
	said := make(chan answer, 1)
	go func() {
		var a answer
		if err := control(f, func(fd int) { a.line, a.err = term.ReadPassword(fd) }); err != nil {
			a.err = err
		}
		said <- a
	}()
	select {
	case a := <-said:
		return string(a.line), a.err
	case <-ctx.Done():
		_ = control(f, func(fd int) { _ = term.Restore(fd, before) })
		return "", context.Cause(ctx)
	}
}
