package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// maxLine bounds a line that is read. One with arguments, each byte of which may be escaped, is
// shorter.
const maxLine = 1 << 20

// Damage is what could not be read of one file of a log.
type Damage struct {
	Path  string
	Lines int   // that are no records
	Err   error // why the rest wasn't read; nil where all of it was
}

func (d Damage) String() string {
	s := fmt.Sprintf("%s: lines that are no records: %d", d.Path, d.Lines)
	if d.Err != nil {
		s += fmt.Sprintf("; the rest can't be read: %v", d.Err)
	}
	return s
}

// Read calls do with every record of a log, those of the oldest file first, and returns what could
// not be read. Bridges may write meanwhile: what they add is not read. The error is of ctx, or
// fs.ErrNotExist where there is no such log.
func Read(ctx context.Context, path string, do func(Record)) (damaged []Damage, err error) {
	parts := openAll(ctx, path)
	if len(parts) == 0 {
		return nil, &fs.PathError{Op: "reading the audit log", Path: path, Err: fs.ErrNotExist}
	}
	for _, p := range parts {
		d := Damage{Path: p.path, Err: p.err}
		if p.file != nil {
			d.Lines, d.Err = p.read(ctx, do)
		}
		if d.Lines > 0 || d.Err != nil {
			damaged = append(damaged, d)
		}
	}
	return damaged, ctx.Err()
}

// part is one file of a log.
type part struct {
	path string
	file *os.File
	size int64 // how much of it is read
	err  error // why there is no file
}

// openAll opens the files of a log, the oldest first, while no bridge rotates them.
func openAll(ctx context.Context, path string) (parts []part) {
	if _, err := os.Stat(path + ".lock"); err == nil { // a copy of a log has none, and gets none
		if release, err := filelock.Within(ctx, lockWait, path+".lock"); err == nil {
			defer release() // a reader who can't lock it reads all the same
		}
	}
	for i := maxFiles - 1; i >= 0; i-- {
		p := part{path: path}
		if i > 0 {
			p.path += "." + strconv.Itoa(i)
		}
		info, err := os.Stat(p.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			p.err = err
		case !info.Mode().IsRegular(): // a pipe would wait for its writer
			p.err = errors.New("it is not a regular file")
		default:
			p.size = info.Size()
			p.file, p.err = os.Open(p.path)
		}
		parts = append(parts, p)
	}
	return parts
}

// read calls do with the records of a file and closes it. It returns how many lines are no records.
func (p part) read(ctx context.Context, do func(Record)) (bad int, err error) {
	defer p.file.Close()
	in := bufio.NewReaderSize(io.LimitReader(p.file, p.size), maxLine)
	for ctx.Err() == nil {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		var r Record
		switch {
		case len(line) == 0:
		case long, json.Unmarshal(line, &r) != nil, !known(r.Kind), r.Time.IsZero():
			bad++
		default:
			do(r)
		}
		switch {
		case errors.Is(err, io.EOF):
			return bad, nil
		case err != nil:
			return bad, err
		}
	}
	return bad, nil
}

func known(kind string) bool { return kind == KindRun || kind == KindCall || kind == KindSandbox }
