// Package audit keeps a record of what was run and called: one line of JSON for each run and for
// each call of a tool in it, appended to a file that several bridges may share. It knows what a
// record says and how it gets into the file, and nothing of runs or tools.
//
// What could not be written is kept in memory and written before the next record. Until then Ready
// says why, and its caller must let nothing happen that would have to be recorded.
package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Kinds of records.
const (
	KindRun  = "run"  // a run of code
	KindCall = "call" // a call of a tool by that code, or of what a server offers besides tools

	KindSandbox = "sandbox" // a call of one of our tools that works on a sandbox without code
)

// Command is the client of a run that the user has started by a command.
const Command = "mcp-bridge run"

// OutcomeOK is the outcome of a call that has a result; others are the codes of their errors.
const OutcomeOK = "ok"

const (
	maxArguments = 64 << 10        // bytes of arguments that a record takes
	maxPending   = 10_000          // records that wait to be written; far more than can be under way
	pendingBytes = 16 << 20        // of these
	lockWait     = 5 * time.Second // for another bridge that writes
	maxBytes     = 16 << 20        // of one file
	maxFiles     = 8               // with the newest, to which lines are appended

	// reserved is how many bytes the disk must have before anything begins that is to be recorded,
	// escapes included.
	reserved = 7 * maxArguments
)

// A Record is one line. Sizes are bytes of JSON, fields that say nothing of its kind are left out.
type Record struct {
	Time      time.Time `json:"time"` // of the end
	Kind      string    `json:"kind"`
	Run       string    `json:"run"`                 // id, as in the log
	Sandbox   string    `json:"sandbox,omitempty"`   // id of one that lasts
	Client    string    `json:"client,omitempty"`    // by what it calls itself; empty if it gave no name
	Principal string    `json:"principal,omitempty"` // who has asked over HTTP; else empty
	Server    string    `json:"server,omitempty"`    // real name, or the one that was asked for
	Tool      string    `json:"tool,omitempty"`      // likewise; or one of MCP's methods
	Verdict   string    `json:"verdict,omitempty"`   // of the policy: allow, ask, deny; else empty
	By        string    `json:"by,omitempty"`        // what of the policy decided
	Asked     bool      `json:"asked,omitempty"`     // the user, about this call
	Outcome   string    `json:"outcome"`             // the status of a run; ok or the error's code of a call
	TookMs    float64   `json:"took_ms"`

	ArgumentBytes  int             `json:"argument_bytes"`
	ArgumentSHA256 string          `json:"argument_sha256"`
	Arguments      json.RawMessage `json:"arguments,omitempty"` // only if asked for, and not too long
	ResultBytes    int             `json:"result_bytes"`
	Calls          int64           `json:"calls,omitempty"`       // that a run has made
	Environment    string          `json:"environment,omitempty"` // whose packages a run had
	PID            int             `json:"pid"`                   // of the bridge
}

// Config is what a Log is made from.
type Config struct {
	Path      string
	Arguments bool // keep arguments, not only their size and hash
}

// Log appends records to a file. It is safe for concurrent use, by several processes too, and holds
// nothing that has to be closed.
type Log struct {
	cfg      Config
	maxBytes int64
	maxFiles int

	turn chan struct{} // holds one while a caller writes, or waits to

	mu      sync.Mutex
	pending [][]byte // lines that have not been written
	held    int      // bytes of them
	lost    int      // lines beyond maxPending or pendingBytes
}

// Open makes the file if it isn't there, readable for the user alone, and sees whether it can be
// written.
func Open(cfg Config) (*Log, error) {
	l := &Log{cfg: cfg, maxBytes: maxBytes, maxFiles: maxFiles, turn: make(chan struct{}, 1)}
	return l, l.Ready(context.Background())
}

// SetArguments notes the arguments of what the record is of.
func (l *Log) SetArguments(r *Record, args json.RawMessage) {
	r.ArgumentBytes = len(args)
	sum := sha256.Sum256(args)
	r.ArgumentSHA256 = hex.EncodeToString(sum[:])
	if l.cfg.Arguments && len(args) <= maxArguments && json.Valid(args) {
		r.Arguments = args
	}
}

// Ready returns why nothing can be recorded now, having tried, or nil when everything is written.
// It takes lockWait at most, and ends with ctx.
func (l *Log) Ready(ctx context.Context) error { return l.flush(ctx, true) }

// Record writes a line. An error means that it is kept for later, as Ready will say too. It waits
// for others who write as long as Ready does.
func (l *Log) Record(ctx context.Context, r Record) error {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Time, r.PID = r.Time.UTC(), os.Getpid()
	var line bytes.Buffer
	enc := json.NewEncoder(&line) // ends each value with a line's end
	enc.SetEscapeHTML(false)      // nothing of it is HTML, and it would take six bytes for one
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("encoding a record of the audit: %w", err)
	}
	l.keep([]byte(text.EscapeJSON(line.String()))) // some print it on a terminal
	return l.flush(ctx, false)
}

// keep queues a line to be written.
func (l *Log) keep(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) < maxPending && l.held+len(line) <= pendingBytes {
		l.pending = append(l.pending, line)
		l.held += len(line)
	} else {
		l.lost++
	}
}

// flush writes what waits, in its order. With look it also looks whether there is room for more. A
// turn and a lock that are free are taken whatever ctx is.
func (l *Log) flush(ctx context.Context, look bool) (err error) {
	defer func() {
		if err != nil {
			err = &Error{Path: l.cfg.Path, Err: err}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	default:
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("another call was still waiting to write it: %w", context.Cause(ctx))
		}
	}
	defer func() { <-l.turn }()
	l.mu.Lock()
	lines := l.pending
	l.mu.Unlock()
	written := 0
	if look || len(lines) > 0 {
		written, err = l.append(ctx, lines)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range lines[:written] {
		l.held -= len(line)
	}
	if l.pending = l.pending[written:]; len(l.pending) == 0 {
		l.pending = nil // and the array that it was part of
	}
	if err == nil && l.lost > 0 {
		err = fmt.Errorf("lost %s, since nothing could be written for a while; restart the bridge",
			text.Plural(l.lost, "record"))
	}
	return err
}

// An Error says that nothing can be recorded.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string {
	var p *fs.PathError
	if err := e.Err; errors.As(err, &p) && p.Path == e.Path {
		return fmt.Sprintf("the audit log %s can't be written: %v", e.Path, p.Err)
	}
	return fmt.Sprintf("the audit log %s can't be written: %v", e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *Error) Hint() string {
	if bad := (*trust.Error)(nil); errors.As(e.Err, &bad) {
		return bad.Hint() + ", or name another file with MCP_BRIDGE_AUDIT: others could change what is recorded"
	}
	return "nothing is run that can't be recorded: make room or give leave for that file, name another with " +
		"MCP_BRIDGE_AUDIT, or unset it"
}

// append writes lines to the file, each whole or not at all, and returns how many. The caller has
// the turn. Other bridges wait meanwhile, so that none moves the file away.
func (l *Log) append(ctx context.Context, lines [][]byte) (written int, err error) {
	err = trust.System().Path(filepath.Dir(l.cfg.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the lock's error says that
		return 0, err
	}
	release, err := filelock.Acquire(ctx, l.cfg.Path+".lock")
	if err != nil {
		return 0, err
	}
	defer release()
	f, size, err := l.open()
	if err != nil {
		return 0, err
	}
	defer func() {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if len(lines) == 0 {
		return 0, reserve(f, size, reserved)
	}
	for i, line := range lines {
		if size > 0 && size+int64(len(line)) > l.maxBytes {
			err = errors.Join(f.Close(), l.rotate())
			f = nil
			if err == nil {
				f, size, err = l.open()
			}
			if err != nil {
				return i, err
			}
		}
		n, err := f.Write(line)
		if err != nil {
			if n > 0 { // the beginning of a line for which there was no room
				err = errors.Join(err, f.Truncate(size))
			}
			return i, err
		}
		size += int64(n)
	}
	return len(lines), nil
}

// own opens the file, or makes it, if only the user and root can write to it or replace it.
func (l *Log) own() (*os.File, fs.FileInfo, error) {
	// a pipe would wait for its reader, and a link is another's place
	if there, err := os.Lstat(l.cfg.Path); err == nil && !there.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	f, err := os.OpenFile(l.cfg.Path, os.O_CREATE|os.O_APPEND|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = trust.System().File(l.cfg.Path)
	}
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(l.cfg.Path); err == nil && !os.SameFile(info, there) {
			err = errors.New("it was replaced while it was opened")
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// open opens the file, whose last line ends as one does.
func (l *Log) open() (*os.File, int64, error) {
	f, info, err := l.own()
	if err != nil {
		return nil, 0, err
	}
	size := info.Size()
	last := []byte{'\n'}
	if size > 0 {
		if _, err = f.ReadAt(last, size-1); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err == nil && last[0] != '\n' { // its writer was cut off, by a power failure perhaps
		_, err = f.WriteString("\n")
		size++
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// rotate makes room for a new file: PATH becomes PATH.1, that PATH.2, and the last one goes.
func (l *Log) rotate() error {
	name := func(i int) string {
		if i == 0 {
			return l.cfg.Path
		}
		return l.cfg.Path + "." + strconv.Itoa(i)
	}
	for i := l.maxFiles - 1; i > 0; i-- {
		if err := os.Rename(name(i-1), name(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
