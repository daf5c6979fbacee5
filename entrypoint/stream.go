package entrypoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// MaxFrame is the most bytes that one frame may have, its line end included, each way. The guest
// holds itself to the same.
const MaxFrame = 16 << 20

// Silence is after what time without any frame of the host the guest ends itself. Ping more often
// than that.
const Silence = 20 * time.Second

// FrameError is a frame that can't be passed on. The stream that it was read from, or was to be
// written to, is still good.
type FrameError struct {
	Size   int64  // bytes of the line
	Limit  int    // the limit that it passes; 0 when its size wasn't the trouble
	Reason string // what is wrong with it, when it isn't the size
	Start  string // how it begins
}

func (e *FrameError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("frame of %d bytes is above the limit of %d", e.Size, e.Limit)
	}
	return fmt.Sprintf("bad frame of %d bytes: %s", e.Size, e.Reason)
}

// Reader reads frames. It is for one goroutine at a time.
type Reader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// NewReader reads frames of up to max bytes from r. A max below 1 stands for MaxFrame.
func NewReader(r io.Reader, max int) *Reader {
	if max < 1 {
		max = MaxFrame
	}
	return &Reader{r: bufio.NewReaderSize(r, 8<<10), max: max}
}

// Read returns the next frame. A line that is no frame or is above the limit is a *FrameError; it
// is skipped, not held, and the next Read goes on behind it. At the end of the stream it is io.EOF;
// any other error is the stream's own. What ends a waiting Read is the end of the stream. A frame
// of an unknown type is no error.
func (r *Reader) Read() (FromGuest, error) {
	line, err := r.line()
	if err != nil {
		return FromGuest{}, err
	}
	var f FromGuest
	if err := decode(line, &f); err != nil {
		return FromGuest{}, err
	}
	if f.Type == "" {
		return FromGuest{}, &FrameError{Size: int64(len(r.buf)) + 1, Reason: "no type", Start: start(r.buf)}
	}
	return f, nil
}

func decode(line []byte, v any) error {
	if len(line) == 0 || line[0] != '{' {
		return &FrameError{Size: int64(len(line)) + 1, Reason: "no JSON object", Start: start(line)}
	}
	if err := json.Unmarshal(line, v); err != nil {
		return &FrameError{Size: int64(len(line)) + 1, Reason: err.Error(), Start: start(line)}
	}
	return nil
}

// keptBuffer is the largest buffer that is kept for the next frame.
const keptBuffer = 1 << 20

// line returns the next line without its end; it is good until the next call.
func (r *Reader) line() ([]byte, error) {
	if cap(r.buf) > keptBuffer {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	var size int64
	for {
		part, err := r.r.ReadSlice('\n')
		size += int64(len(part))
		if size <= int64(r.max) {
			r.buf = append(r.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && size == 0:
			return nil, err
		case size > int64(r.max):
			return nil, &FrameError{Size: size, Limit: r.max, Start: start(r.buf)}
		case err != nil: // without its end, the last line may not be whole; the next call gives err again
			return nil, &FrameError{
				Size:   size,
				Reason: "the stream ended in the middle of it",
				Start:  start(r.buf),
			}
		}
		r.buf = bytes.TrimSuffix(r.buf, []byte("\n"))
		return r.buf, nil
	}
}

func start(line []byte) string { return string(line[:min(len(line), 80)]) }

// Writer writes frames. It may be used by several goroutines at once: each frame is one Write of
// the stream.
type Writer struct {
	max int

	mu sync.Mutex
	w  io.Writer
}

// NewWriter writes frames of up to max bytes to w. A max below 1 stands for MaxFrame.
func NewWriter(w io.Writer, max int) *Writer {
	if max < 1 {
		max = MaxFrame
	}
	return &Writer{max: max, w: w}
}

// Write writes one frame. One above the limit, or that can't be JSON, is a *FrameError, and nothing
// of it is written; any other error is the stream's own.
func (w *Writer) Write(frame any) error {
	line, err := w.Encode(frame)
	if err != nil {
		return err
	}
	return w.WriteLine(line)
}

// Encode makes the line of a frame, its end included, for WriteLine. Its only error is a
// *FrameError, as of Write.
func (w *Writer) Encode(frame any) ([]byte, error) { return Line(frame, w.max) }

// Line makes the line of a frame, its end included, for any Writer's WriteLine. Its only error is a
// *FrameError: where the line would be longer than max bytes, or the frame can't be JSON.
func Line(frame any, max int) ([]byte, error) {
	line, err := marshal(frame)
	if err != nil {
		return nil, &FrameError{Reason: err.Error()}
	}
	if len(line) > max {
		return nil, &FrameError{Size: int64(len(line)), Limit: max, Start: start(line)}
	}
	return line, nil
}

// WriteLine writes a line that Encode made, or several, one behind the other, in one Write of the
// stream.
func (w *Writer) WriteLine(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(line)
	return err
}

// marshal leaves <, > and & as they are: a frame is never part of a page.
func marshal(frame any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(frame); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
