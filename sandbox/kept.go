package sandbox

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// KeepRequest describes a guest that is to last.
type KeepRequest struct {
	Environment *Environment      // as in Request; it is that of all calls of the guest
	MaxAge      time.Duration     // after which the engine itself ends the container; must be positive
	Variables   map[string]string // of the environment of the code and of commands, beside the usual ones

	// Running lets processes run on between calls. Otherwise all are stopped when a call has ended.
	Running bool

	Queued   func()           // as in Request
	Progress runtime.Progress // as in Request
}

// State is what became of a kept guest's variables in a call.
type State string

// The states of a kept guest.
const (
	StateKept   State = "kept"   // as the call left them
	StateLost   State = "lost"   // the guest has ended, or is about to
	StateBefore State = "before" // as before the call
)

// KeptState says what a call has left in a kept guest.
type KeptState struct {
	State  State
	Reason string // of StateBefore and StateLost, for a person: what the call did, or what failed

	// NoWayBack says why the next bad call would lose the variables: they are too large, or a
	// library doesn't survive a fork. It is empty when a bad call can be undone.
	NoWayBack string

	Calls int // runs so far, this one included
}

// Kept is a guest that runs one piece of code after the other, in order of arrival, in one
// interpreter. It is safe for concurrent use. Close must be called.
type Kept struct{}

// EndedError is why a Kept takes no more calls.
type EndedError struct{ Reason string }

func (e *EndedError) Error() string { return "the sandbox has ended: " + e.Reason }

// Command is a shell command.
type Command struct {
	Line      string            // for sh -c
	Dir       string            // empty for /workspace
	Variables map[string]string // beside those of the KeepRequest
	Timeout   time.Duration     // must be positive
	Output    func(Chunk)       // as in Request
}

// Output is how a Command ended.
type Output struct {
	Status    Status // StatusExit (also for 0), StatusTimeout, StatusCancelled, StatusMemoryLimit or StatusEngine
	ExitCode  int    // 128+n after signal n; -1 when it was stopped or is not known
	Signal    int
	Message   string  // what stopped it; empty where it ended by itself
	Output    []Chunk // as in Result: bounded by Config.OutputLimit
	Truncated Dropped
	Took      time.Duration
}

// File is an entry of a directory.
type File struct {
	Name     string
	Type     string // "file", "directory", "link" or "other"
	Size     int64
	Modified time.Time
}

// A FileError is an operation on a file that could not be done. The sandbox is as it was.
type FileError struct {
	Path string
	Err  string // for a person
	Code string // "not_found", "not_a_file", "not_a_directory", "too_large", "denied" or "failed"
}

func (e *FileError) Error() string { return e.Path + ": " + e.Err }

// Bounds of the files of a Kept.
const (
	MaxReadFile  = 8 << 20
	MaxWriteFile = 8 << 20
	MaxZip       = 10 << 20
	MaxListed    = 1000
)

var errUnfinished = errors.New("sandbox: not written yet")

// Keep takes a place in the queue like a run, and returns a guest that lasts: until Close, its
// MaxAge, or a call that it didn't survive. ctx bounds the start, not the guest. Errors are those
// of Run.
func (s *Sandbox) Keep(ctx context.Context, r KeepRequest) (*Kept, error) { return nil, errUnfinished }

// Run runs code where the last call left off. It waits for the calls before it, and for a place
// among all runs. Environment of the Request is ignored. An *EndedError means that nothing was run
// and that nothing will be.
func (k *Kept) Run(ctx context.Context, r Request, h Host) (Result, error) {
	return Result{}, errUnfinished
}

// Undo gives the variables the values of before the last call. An error means that nothing has
// changed.
func (k *Kept) Undo(ctx context.Context) (KeptState, error) { return KeptState{}, errUnfinished }

// Exec runs a command. What it leaves running ends with it, unless KeepRequest.Running is set.
func (k *Kept) Exec(ctx context.Context, c Command) (Output, error) { return Output{}, errUnfinished }

// ReadFile returns a file of at most limit bytes, MaxReadFile at most. Relative paths are of
// /workspace, here and below. The error may be a *FileError.
func (k *Kept) ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	return nil, errUnfinished
}

// WriteFile writes a file whole, and makes the directories above it.
func (k *Kept) WriteFile(ctx context.Context, path string, data []byte) error { return errUnfinished }

// ListFiles lists a directory by name. more says that it has more than MaxListed entries.
func (k *Kept) ListFiles(ctx context.Context, path string) (files []File, more bool, err error) {
	return nil, false, errUnfinished
}

// ZipDir writes a directory as a zip file of at most limit bytes, MaxZip at most.
func (k *Kept) ZipDir(ctx context.Context, path string, limit int64, w io.Writer) error {
	return errUnfinished
}

// Ended reports why the guest takes no more calls, if that is so.
func (k *Kept) Ended() (reason string, ok bool) { return "", false }

// Done is closed when the guest has ended.
func (k *Kept) Done() <-chan struct{} { return nil }

// Close ends the guest, and a call under way in it.
func (k *Kept) Close() error { return nil }
