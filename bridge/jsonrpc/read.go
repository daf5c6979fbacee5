package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// A Reader reads lines up to a length. It is used by one goroutine at a time.
type Reader struct {
	// MaxSkip is how much of a line beyond the limit is skipped before Next returns ErrNoEnd. Zero
	// is no bound.
	MaxSkip int

	src   *bufio.Reader
	limit int
	cut   bool // the last line had no newline
}

// ErrNoEnd says that a line goes on beyond Reader.MaxSkip. The rest can't be read.
var ErrNoEnd = errors.New("the message doesn't end")

// NewReader returns a Reader of lines of at most limit bytes, their ends not counted.
func NewReader(src io.Reader, limit int) *Reader {
	return &Reader{src: bufio.NewReaderSize(src, 64<<10), limit: limit}
}

// A TooLongError reports a line beyond the limit. It has been skipped: the next one can be read.
type TooLongError struct {
	Limit int
	ID    json.RawMessage // of the message that it seems to be; nil where its ends don't tell

	answer bool // it seems to be an answer
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the message is longer than %d bytes, which is the limit", e.Limit)
}

// ends is how much is kept of both ends of a line that is too long: peers write the id first or
// last.
const ends = 256

var (
	idFirst = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d+|"[^"\\]*")\s*,`)
	idLast  = regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*` +
		`(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// Next returns the next line without its newline, which the last line needn't have. The line is
// the caller's. The error is io.EOF, a *TooLongError, ErrNoEnd, or that of the reader.
func (r *Reader) Next() ([]byte, error) {
	var line, head, tail []byte
	long, skipped := false, 0
	for {
		part, err := r.src.ReadSlice('\n')
		size := len(line) + len(bytes.TrimSuffix(part, []byte("\n")))
		if !long && size > r.limit {
			long = true
			whole := append(line, part...)
			head, tail, line = bytes.Clone(whole[:min(ends, len(whole))]), whole, nil
		} else if long {
			tail = append(tail, part...)
			if skipped += len(part); r.MaxSkip > 0 && skipped > r.MaxSkip {
				return nil, ErrNoEnd
			}
		}
		if long {
			tail = bytes.Clone(tail[max(0, len(tail)-ends):])
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, &TooLongError{r.limit, idAt(head, tail), isAnswer(head)}
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			r.cut = true
			return line, nil
		default:
			return nil, err
		}
	}
}

// idAt returns the id of a message that stands at one of its ends.
func idAt(head, tail []byte) json.RawMessage {
	m := idFirst.FindSubmatch(head)
	if m == nil {
		m = idLast.FindSubmatch(tail)
	}
	if m == nil {
		return nil
	}
	return bytes.Clone(m[1])
}

// isAnswer reports whether a message that begins so seems to be an answer.
func isAnswer(head []byte) bool {
	return !bytes.Contains(head, []byte(`"method"`)) &&
		(bytes.Contains(head, []byte(`"result"`)) || bytes.Contains(head, []byte(`"error"`)))
}
