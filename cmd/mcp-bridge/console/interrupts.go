package console

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
)

// errCtrlC ends a command in a sandbox, and not the shell.
var errCtrlC = errors.New("the command was interrupted")

// Interrupts tells what SIGINT ends: the command that runs in a sandbox, or else the program.
type Interrupts struct{ end atomic.Pointer[func()] }

// Takes reports whether a signal ends something else than the program, which it does then.
func (i *Interrupts) Takes(s os.Signal) bool {
	end := i.end.Load()
	if s != os.Interrupt || end == nil {
		return false
	}
	(*end)()
	return true
}

// until returns a context that SIGINT ends with errCtrlC, until done is called.
func (i *Interrupts) until(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(errCtrlC) }
	i.end.Store(&end)
	return ctx, func() {
		i.end.Store(nil)
		cancel(nil)
	}
}
