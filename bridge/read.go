package bridge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

// tooLongError is a line longer than the limit; the next one can be read.
type tooLongError struct {
	id json.RawMessage // of the request that it seems to be; nil when that can't be told from its ends
}

func (*tooLongError) Error() string { return "the message is too long" }

// ends is how much is kept of both ends of a line that is too long: clients write the id first or last.
const ends = 256

var (
	idFirst = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d+|"[^"\\]*")\s*,`)
	idLast  = regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// readLine reads up to and without the next newline. A line longer than limit is skipped whole and reported as a
// *tooLongError. The last line needs no newline.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line, head, tail []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long && len(line)+len(part) > limit+1 {
			long = true
			whole := append(line, part...)
			head, line = bytes.Clone(whole[:min(ends, len(whole))]), nil
		}
		if long {
			tail = append(tail, part[max(0, len(part)-ends):]...)
			tail = tail[max(0, len(tail)-ends):]
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, &tooLongError{idAt(head, tail)}
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// idAt looks for a request's id at both ends of it.
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
