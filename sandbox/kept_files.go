package sandbox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// Command is a shell command.
type Command struct {
	Line      string            // for sh -c
	Dir       string            // empty for /workspace
	Variables map[string]string // beside those of the KeepRequest
	Timeout   time.Duration     // as in Request
	Output    func(Chunk)       // as in Request
}

// Output is how a Command ended.
type Output struct {
	Status    Status // as in Result, except for StatusError
	ExitCode  int    // 128+n after signal n; -1 when it was stopped or is not known
	Signal    int
	Message   string  // what ended it; empty when Status is StatusOK
	Output    []Chunk // as in Result
	Truncated Dropped
	Took      time.Duration
	Kept      KeptState // the variables are as before, unless the command has ended their process
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
	MaxListed    = 1000 // entries of a directory

	filesTimeout = 30 * time.Second // for what is done without code
)

// ErrNoUndo is what Undo returns when there is no call that it could take back: there was none, or
// it was taken back already, or no way back from it was kept.
var ErrNoUndo = errors.New("there is no call that could be undone")

// Undo gives the variables the values of before the last call. After an error they have not got
// those; an *EndedError says that the sandbox has ended.
func (k *Kept) Undo(ctx context.Context) (KeptState, error) {
	n, res, err := k.ask(ctx, Request{Timeout: k.patience()}, func(id string, _ entrypoint.Options) any {
		return entrypoint.Undo{Type: entrypoint.TypeUndo, ID: id}
	})
	switch {
	case err != nil:
		return KeptState{}, err
	case res.Kept.State == StateLost:
		return KeptState{}, &EndedError{res.Kept.Reason}
	case n.done.Error != nil:
		err := ErrNoUndo
		if n.done.Error.Code != entrypoint.CodeValidation {
			err = fmt.Errorf("the call was not undone: %s", n.short(n.done.Error.Message))
		}
		if note := res.Kept.Note; note != "" {
			err = fmt.Errorf("%w (%s)", err, note)
		}
		return KeptState{}, err
	}
	if res.Kept.State == StateBefore {
		res.Kept.Reason = ""
	}
	return *res.Kept, nil
}

// Exec runs a command. What it leaves running is stopped with it until the next call, unless
// KeepRequest.Running is set. Errors are those of Run.
func (k *Kept) Exec(ctx context.Context, c Command) (Output, error) {
	_, res, err := k.ask(ctx, Request{Timeout: c.Timeout, Output: c.Output},
		func(id string, o entrypoint.Options) any {
			return entrypoint.Exec{Type: entrypoint.TypeExec, ID: id, Command: c.Line, Directory: c.Dir,
				Variables: c.Variables, Options: o}
		})
	if err != nil {
		return Output{}, err
	}
	return Output{
		Status: res.Status, ExitCode: res.ExitCode, Signal: res.Signal, Output: res.Output,
		Message:   strings.Replace(res.Message, "The code ", "The command ", 1),
		Truncated: res.Truncated, Took: res.Took.Run, Kept: *res.Kept,
	}, nil
}

// ReadFile returns a file of at most limit bytes, MaxReadFile at most. Relative paths are of
// /workspace, here and below. The error may be a *FileError.
func (k *Kept) ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	n, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesRead, Path: path,
		Limit: min(limit, MaxReadFile)})
	if err != nil {
		return nil, err
	}
	return n.data.bytes, nil
}

// WriteFile writes a file whole, and makes the directories above it.
func (k *Kept) WriteFile(ctx context.Context, path string, data []byte) error {
	if len(data) > MaxWriteFile {
		return &FileError{Path: path, Code: "too_large",
			Err: fmt.Sprintf("it would have %d bytes; at most %d can be written", len(data), MaxWriteFile)}
	}
	_, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesWrite, Path: path,
		Data: base64.StdEncoding.EncodeToString(data)})
	return err
}

// ListFiles lists a directory by name. more says that it has more than MaxListed entries.
func (k *Kept) ListFiles(ctx context.Context, path string) (files []File, more bool, err error) {
	n, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesList, Path: path})
	if err != nil {
		return nil, false, err
	}
	for _, e := range n.done.Entries[:min(len(n.done.Entries), MaxListed)] {
		files = append(files, File{Name: e.Name, Type: e.Type, Size: e.Size,
			Modified: time.UnixMicro(int64(e.Modified * 1e6))})
	}
	return files, n.done.More, nil
}

// ZipDir writes a directory as a zip file of at most limit bytes, MaxZip at most.
func (k *Kept) ZipDir(ctx context.Context, path string, limit int64, w io.Writer) error {
	n, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesZip, Path: path, Limit: min(limit, MaxZip)})
	if err != nil {
		return err
	}
	_, err = w.Write(n.data.bytes)
	return err
}

// Note returns what happened to the variables before the last operation on files, as
// KeptState.Note does for other calls, and forgets it. It is called between that and the next call.
func (k *Kept) Note() string {
	note := k.note
	k.note = ""
	return note
}

// files has the guest do something with files.
func (k *Kept) files(ctx context.Context, f entrypoint.Files) (*session, error) {
	n, res, err := k.ask(ctx, Request{Timeout: k.patience()}, func(id string, _ entrypoint.Options) any {
		f.Type, f.ID = entrypoint.TypeFiles, id
		return f
	})
	if err == nil {
		k.note = res.Kept.Note
	}
	switch {
	case err != nil:
		return nil, err
	case res.Status == StatusCancelled:
		return nil, context.Cause(ctx)
	case n.done != nil && n.done.Error != nil && wait(n.done).Exited:
		return nil, &FileError{Path: f.Path, Code: n.short(n.done.Error.Code), Err: n.short(n.done.Error.Message)}
	case res.Status != StatusOK:
		return nil, &FileError{Path: f.Path, Code: "failed", Err: res.Message}
	}
	return n, nil
}

func (k *Kept) patience() time.Duration { return min(filesTimeout, k.sandbox.cfg.MaxTimeout) }

// ask has the guest's supervisor do something without code, in the turn of a call.
func (k *Kept) ask(ctx context.Context, r Request,
	frame func(id string, o entrypoint.Options) any) (*session, Result, error) {
	s := k.sandbox
	r.Environment, r.Principal = k.req.Environment, k.req.Principal
	if err := s.check(&r); err != nil {
		return nil, Result{}, err
	}
	if err := k.enter(ctx); err != nil {
		return nil, Result{}, err
	}
	defer k.leave()
	n := newSession(s, r, noCalls{})
	n.kept, n.machine, n.data = k, k.guest.machine, &received{}
	n.ticket.own = true
	res, err := k.admitted(ctx, n, func() (Result, error) {
		o := s.options(r, n.machine.facts)
		o.Variables, o.Running = k.req.Variables, k.req.Running
		line, err := entrypoint.Line(frame(n.req.ID, o), entrypoint.MaxFrame)
		if err != nil {
			return Result{}, fmt.Errorf("it can't be sent to the container: %w", err)
		}
		n.begin = time.Now()
		return k.talk(ctx, n, line)
	})
	if err == nil && res.Kept == nil { // it was cancelled before it began
		err = context.Cause(ctx)
	}
	return n, res, err
}

// received is what a guest sends of a file. It is used by one goroutine.
type received struct{ bytes []byte }

// add takes a piece. False means that the frame makes no sense.
func (r *received) add(f entrypoint.FromGuest, id string) bool {
	if r == nil || f.ID != id {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(f.Data)
	if err != nil || len(r.bytes)+len(data) > max(MaxReadFile, MaxZip) {
		return false
	}
	r.bytes = append(r.bytes, data...)
	return true
}

// noCalls refuses tool calls: there is no code that makes any.
type noCalls struct{}

func (noCalls) Call(context.Context, Call) (json.RawMessage, error) {
	return nil, &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: "no code runs"}
}

// Home is the directory that the code of a sandbox begins in.
const Home = "/workspace"

// MaxPiece bounds a Piece, and what Unpack takes.
const MaxPiece = 8 << 20

// Piece is a part of a tar archive.
type Piece struct {
	Data []byte
	Left []File // what the whole archive leaves out; Type is "too_large", "too_many", "denied" or "other"
	More bool   // there are bytes after these
}

// Pack returns the bytes from offset on, MaxPiece at most, of a tar archive of what is below a
// directory. Pieces are parts of one archive while nothing in the directory changes. All of it is
// the guest's word, as what it writes to a file is. The error may be a *FileError.
func (k *Kept) Pack(ctx context.Context, path string, offset int64) (Piece, error) {
	n, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesPack, Path: path, Offset: offset,
		Limit: MaxPiece})
	if err != nil {
		return Piece{}, err
	}
	p := Piece{Data: n.data.bytes, More: n.done.More}
	for _, e := range n.done.Entries[:min(len(n.done.Entries), MaxListed)] {
		p.Left = append(p.Left, File{Name: n.short(e.Name), Type: n.short(e.Type), Size: e.Size})
	}
	return p, nil
}

// Unpack adds what a tar archive has to a directory: directories, regular files and symbolic links.
// A file that is there goes on where it ends. The error may be a *FileError.
func (k *Kept) Unpack(ctx context.Context, path string, archive []byte) error {
	if len(archive) > MaxPiece {
		return fmt.Errorf("sandbox: an archive of %d bytes is more than can be unpacked at a time", len(archive))
	}
	_, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesUnpack, Path: path,
		Data: base64.StdEncoding.EncodeToString(archive)})
	return err
}
