package entrypoint

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quickOutput reads an output frame as the guest writes it, and says whether it is one: what code prints is nearly all that comes from a
// guest, and encoding/json takes three times as long over it. Whatever else comes, and however else it is written, is encoding/json's to
// read; what both can read, both read the same (FuzzQuickOutput).
func quickOutput(line []byte) (f FromGuest, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"output","id":"`))
	if !ok {
		return f, false
	}
	id, rest, ok := bytes.Cut(rest, []byte(`","stream":"`))
	if !ok {
		return f, false
	}
	stream, rest, ok := bytes.Cut(rest, []byte(`","seq":`))
	if !ok {
		return f, false
	}
	seq, rest, ok := bytes.Cut(rest, []byte(`,"text":"`))
	if !ok {
		return f, false
	}
	text, ok := bytes.CutSuffix(rest, []byte(`"}`))
	if !ok {
		return f, false
	}
	f.Type = TypeOutput
	var good [4]bool
	f.ID, good[0] = unquote(id)
	f.Stream, good[1] = unquote(stream)
	f.Seq, good[2] = natural(seq)
	f.Text, good[3] = unquote(text)
	if good != [4]bool{true, true, true, true} {
		return FromGuest{}, false
	}
	return f, true
}

// natural is a number as JSON writes those that are neither negative nor very large.
func natural(digits []byte) (int64, bool) {
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// unquote reads what stands between the quotation marks of a string of JSON, and says whether that is valid and has no surrogates
// among its escapes.
func unquote(b []byte) (string, bool) {
	if !utf8.Valid(b) {
		return "", false
	}
	n := plain(b)
	if n == len(b) {
		return string(b), true
	}
	var s strings.Builder
	s.Grow(len(b))
	for {
		s.Write(b[:n])
		if b = b[n:]; len(b) == 0 {
			return s.String(), true
		}
		size, ok := escape(&s, b)
		if !ok {
			return "", false
		}
		b = b[size:]
		n = plain(b)
	}
}

// special are the bytes that can't stand for themselves in a string of JSON.
var special = func() (is [256]bool) {
	for c := range 0x20 {
		is[c] = true
	}
	is['"'], is['\\'] = true, true
	return is
}()

// plain is how many bytes at the beginning stand for themselves.
func plain(b []byte) int {
	for i, c := range b {
		if special[c] {
			return i
		}
	}
	return len(b)
}

// escape writes what the escape at the beginning of b stands for, and says how long it is.
func escape(to *strings.Builder, b []byte) (size int, ok bool) {
	if len(b) < 2 || b[0] != '\\' {
		return 0, false
	}
	switch c := b[1]; c {
	case 'n':
		to.WriteByte('\n')
	case '"', '\\', '/':
		to.WriteByte(c)
	case 't':
		to.WriteByte('\t')
	case 'r':
		to.WriteByte('\r')
	case 'b':
		to.WriteByte('\b')
	case 'f':
		to.WriteByte('\f')
	case 'u':
		if len(b) < 6 {
			return 0, false
		}
		r, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		if err != nil || !utf8.ValidRune(rune(r)) { // half of a surrogate pair
			return 0, false
		}
		to.WriteRune(rune(r))
		return 6, true
	default:
		return 0, false
	}
	return 2, true
}
