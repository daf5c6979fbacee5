package bridge

import (
	"bufio"
	"errors"
	"io"
)

// errTooLong is a line longer than the limit; the next one can be read.
var errTooLong = errors.New("the message is too long")

// readLine reads up to and without the next newline. A line longer than limit is skipped whole and reported as errTooLong. The last
// line needs no newline.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long && len(line)+len(part) > limit+1 {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLong
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}
