// Package exit has the codes with which the program ends, and the errors by which commands say so.
package exit

import "fmt"

// Exit codes. A run of code that ended by itself ends the command with the code's own status
// instead.
const (
	OK          = 0
	Failed      = 1   // something went wrong; the code raised an exception
	Misused     = 2   // the command line or the environment is wrong
	Asked       = 3   // of policy test: the user would be asked
	Denied      = 4   // of policy test: the call would be denied
	Unavailable = 69  // the machine isn't ready, as EX_UNAVAILABLE in sysexits(3)
	Timeout     = 124 // the code's time was up, as in timeout(1)
	Interrupted = 130 // SIGINT, or the run was cancelled
	Memory      = 137 // the code ran out of memory
	Pipe        = 141 // the reader of standard output is gone, as after SIGPIPE
)

// Error ends the command with a code; everything to be said has been said.
type Error struct{ Code int }

func (e Error) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// With returns what ends the command with a code: nil for OK.
func With(code int) error {
	if code == OK {
		return nil
	}
	return Error{code}
}

// If returns what ends the command with Failed if something has failed, or else nil.
func If(failed bool) error {
	if failed {
		return Error{Failed}
	}
	return nil
}

// UsageError is a mistake in the command line or the environment. What it is about is no other
// error's: As and Is find nothing in it.
type UsageError struct{ error }

// Usage makes err such a mistake.
func Usage(err error) error { return UsageError{err} }
