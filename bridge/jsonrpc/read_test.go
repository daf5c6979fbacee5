package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReader(t *testing.T) {
	r := NewReader(strings.NewReader("ab\n\n12345\n123456\n"+strings.Repeat("x", 200_000)+"\nlast"), 5)
	for _, want := range []string{"ab", "", "12345", "!long", "!long", "last", "!EOF"} {
		line, err := r.Next()
		got := string(line)
		if errors.As(err, new(*TooLongError)) {
			got = "!long"
		} else if err != nil {
			got = "!" + err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReaderGivesUp(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader(strings.Repeat("x", 300_000)),
		iotest.ErrReader(errors.New("read on"))), 5)
	r.MaxSkip = 100_000
	if _, err := r.Next(); !errors.Is(err, ErrNoEnd) {
		t.Errorf("got %v", err)
	}
}

// TestTooLongTellsTheID: the sender of a message that is too long must not wait for ever.
func TestTooLongTellsTheID(t *testing.T) {
	filler := strings.Repeat("x", 1000)
	tests := []struct {
		name, line, want string
		answer           bool
	}{
		{"id first", `{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":1,"x":"` + filler + `"}}`, "7", false},
		{"id last", `{"method":"m","params":{"x":"` + filler + `"},"jsonrpc":"2.0","id":"a-7"}`, `"a-7"`, false},
		{"id before the version", `{"method":"m","params":{"x":"` + filler + `"},"id":7,"jsonrpc":"2.0"}`, "7",
			false},
		{"an id of its own inside", `{"method":"m","params":{"x":"` + filler + `","id":9}}`, "", false},
		{"no id", `{"method":"m","params":{"x":"` + filler + `"}}`, "", false},
		{"no message", filler, "", false},
		{"an answer", `{"jsonrpc":"2.0","id":7,"result":{"x":"` + filler + `"}}`, "7", true},
		{"an answer with its id last", `{"result":{"x":"` + filler + `"},"id":7}`, "7", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewReader(iotest.OneByteReader(strings.NewReader(tt.line+"\n")), 50).Next()
			var long *TooLongError
			if !errors.As(err, &long) || string(long.ID) != tt.want || long.answer != tt.answer {
				t.Errorf("got %+v, want id %q, answer %v", err, tt.want, tt.answer)
			}
		})
	}
}

// FuzzReader compares the Reader with cutting the whole text at newlines, however it comes in
// parts.
func FuzzReader(f *testing.F) {
	f.Add([]byte("ab\n\n123456789\nlast"), 8)
	f.Add([]byte("\n"), 0)
	f.Add([]byte(`{"id":1,"result":`+strings.Repeat("x", 300)+"}\n{}"), 100)
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		if limit < 0 || limit > 1<<10 {
			return
		}
		lines := bytes.Split(text, []byte("\n"))
		if last := len(lines) - 1; len(lines[last]) == 0 {
			lines = lines[:last]
		}
		for _, src := range []io.Reader{bytes.NewReader(text), iotest.HalfReader(bytes.NewReader(text))} {
			r := NewReader(src, limit)
			for i, want := range lines {
				got, err := r.Next()
				if tooLong := errors.As(err, new(*TooLongError)); tooLong != (len(want) > limit) ||
					err != nil && !tooLong {
					t.Fatalf("line %d of %q: %v", i, text, err)
				}
				if err == nil && !bytes.Equal(got, want) {
					t.Fatalf("line %d: got %q, want %q", i, got, want)
				}
			}
			if got, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Fatalf("after the end: %q, %v", got, err)
			}
		}
	})
}
