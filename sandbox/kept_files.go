package sandbox

import (
	"context"
	"errors"
	"io"
	"time"
)

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

func (k *Kept) Undo(ctx context.Context) (KeptState, error)             { return KeptState{}, errUnfinished }
func (k *Kept) Exec(ctx context.Context, c Command) (Output, error)     { return Output{}, errUnfinished }
func (k *Kept) ReadFile(context.Context, string, int64) ([]byte, error) { return nil, errUnfinished }
func (k *Kept) WriteFile(context.Context, string, []byte) error         { return errUnfinished }
func (k *Kept) ListFiles(context.Context, string) ([]File, bool, error) {
	return nil, false, errUnfinished
}
func (k *Kept) ZipDir(context.Context, string, int64, io.Writer) error { return errUnfinished }
