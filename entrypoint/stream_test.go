package entrypoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
)

func TestRead(t *testing.T) {
	long := `{"type":"output","text":"` + strings.Repeat("x", 1000) + `"}`
	for _, test := range []struct {
		name, in string
		want     []string // a type, or "error: " and what the *FrameError says
	}{
		{"nothing", "", nil},
		{"frames", "{\"type\":\"a\"}\n{\"type\":\"b\"}\n", []string{"a", "b"}},
		{"an unknown type", "{\"type\":\"grease\",\"other\":[{}]}\n", []string{"grease"}},
		{"no JSON", "hello\n{\"type\":\"a\"}\n", []string{"error: no JSON object", "a"}},
		{"no object", "[1]\nnull\n\n{\"type\":\"a\"}\n", []string{"error: no JSON object", "error: no JSON object",
			"error: no JSON object", "a"}},
		{"no type", "{}\n{\"type\":\"a\"}\n", []string{"error: no type", "a"}},
		{"another type of field", "{\"type\":\"a\",\"chunk\":\"x\"}\n{\"type\":\"a\"}\n",
			[]string{"error: cannot unmarshal", "a"}},
		{"bad UTF-8", "{\"type\":\"a\",\"text\":\"\xff\"}\n", []string{"a"}},
		{"too long", long + "\n{\"type\":\"a\"}\n", []string{"error: above the limit of 500", "a"}},
		{"just long enough", `{"type":"` + strings.Repeat("y", 488) + "\"}\n", []string{strings.Repeat("y", 488)}},
		{"one byte too long", `{"type":"` + strings.Repeat("y", 489) + "\"}\n",
			[]string{"error: above the limit of 500"}},
		{"cut off", "{\"type\":\"a\"}\n{\"type\":\"b\"}", []string{"a", "error: the stream ended in the middle"}},
		{"cut off and too long", long, []string{"error: above the limit of 500"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(test.in),
				iotest.OneByteReader(strings.NewReader(test.in))} {
				r := NewReader(in, 500)
				for i, want := range test.want {
					f, err := r.Read()
					text, isError := strings.CutPrefix(want, "error: ")
					var frameError *FrameError
					switch {
					case isError && (!errors.As(err, &frameError) || !strings.Contains(err.Error(), text)):
						t.Fatalf("frame %d: error %v, want %q", i, err, text)
					case !isError && (err != nil || f.Type != want):
						t.Fatalf("frame %d: %v, %v, want type %q", i, f, err, want)
					}
				}
				if _, err := r.Read(); err != io.EOF {
					t.Errorf("at the end: %v", err)
				}
			}
		})
	}
}

func TestReadKeepsTheStreamsOwnError(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader("{\"type\":\"a\"}\n"), iotest.ErrReader(broken)), 0)
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(); err != broken {
		t.Errorf("got %v", err)
	}
}

func TestReadHoldsNoMoreThanTheLimit(t *testing.T) {
	line := io.LimitReader(endless{}, 1<<26)
	r := NewReader(io.MultiReader(line, strings.NewReader("\n{\"type\":\"a\"}\n")), 1<<20)
	var frameError *FrameError
	if _, err := r.Read(); !errors.As(err, &frameError) || frameError.Size != 1<<26+1 {
		t.Fatalf("got %v", err)
	}
	if cap(r.buf) > 4<<20 {
		t.Errorf("%d bytes held for a limit of %d", cap(r.buf), 1<<20)
	}
	if f, err := r.Read(); err != nil || f.Type != "a" {
		t.Errorf("after it: %v, %v", f, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, 200)
	result := json.RawMessage(`{"n": 9007199254740993, "t": "<a&b>"}`)
	if err := w.Write(ToolResult{Type: TypeToolResult, CallID: "1", OK: true, Result: result}); err != nil {
		t.Fatal(err)
	}
	// The guest looks for this beginning, so as not to parse results of megabytes twice.
	want := `{"type":"tool_result","callId":"1","ok":true,"result":{"n":9007199254740993,"t":"<a&b>"}}` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	var frameError *FrameError
	if err := w.Write(Execute{Code: strings.Repeat("x", 200)}); !errors.As(err, &frameError) ||
		frameError.Limit != 200 {
		t.Errorf("above the limit: %v", err)
	}
	if err := w.Write(ToolResult{Result: json.RawMessage("{")}); !errors.As(err, &frameError) {
		t.Errorf("no JSON: %v", err)
	}
	if b.Len() != 0 {
		t.Errorf("written all the same: %q", b.String())
	}
}

func TestWriteFromSeveralGoroutines(t *testing.T) {
	var writes counted
	w := NewWriter(&writes, 0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				if err := w.Write(Ping{Type: TypePing, N: int64(i*100 + n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if writes.n != 800 {
		t.Errorf("%d writes for 800 frames", writes.n)
	}
	r := NewReader(&writes.b, 0)
	seen := make(map[int64]bool)
	for range 800 {
		f, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		seen[f.N] = true
	}
	if len(seen) != 800 {
		t.Errorf("%d different frames", len(seen))
	}
}

type counted struct {
	n int
	b bytes.Buffer
}

func (c *counted) Write(p []byte) (int, error) {
	c.n++
	return c.b.Write(p)
}

// FuzzRead: no panic, nothing above the limit, and what was read reads the same when it is written
// again.
func FuzzRead(f *testing.F) {
	all, err := transcript.Load(os.DirFS("testdata/transcripts"))
	if err != nil {
		f.Fatal(err)
	}
	seeds := 0
	for _, t := range all {
		var b bytes.Buffer
		for _, l := range t.Lines {
			if l.From == transcript.Guest && len(l.Frame)+len(l.Raw) < 1<<16 {
				fmt.Fprintf(&b, "%s%s\n", l.Sample(), l.Raw)
				seeds++
			}
		}
		f.Add(b.Bytes())
	}
	if seeds == 0 {
		f.Fatal("no guest's line in any transcript")
	}
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data), limit)
		var again bytes.Buffer
		w := NewWriter(&again, 16*limit) // escapes take more than what they stand for
		var read []FromGuest
		for {
			frame, err := r.Read()
			var frameError *FrameError
			if err == io.EOF {
				break
			} else if errors.As(err, &frameError) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			read = append(read, frame)
			if err := w.Write(frame); err != nil {
				t.Fatal(err)
			}
		}
		r = NewReader(&again, 16*limit)
		for _, want := range read {
			got, err := r.Read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(compacted(want), compacted(got)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// compacted is a frame whose raw parts are written as marshalling writes them.
func compacted(f FromGuest) FromGuest {
	for _, raw := range []*json.RawMessage{&f.Input, &f.Result} {
		if len(*raw) == 0 {
			*raw = nil
			continue
		}
		data, err := marshal(*raw)
		if err == nil {
			*raw = data
		}
	}
	return f
}

func BenchmarkFrames(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 10 << 20} {
		var stream bytes.Buffer
		frame := FromGuest{
			Type:   TypeOutput,
			ID:     "run-1",
			Stream: "stdout",
			Text:   strings.Repeat("x", size),
		}
		b.Run(fmt.Sprintf("write/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			w := NewWriter(io.Discard, 0)
			for b.Loop() {
				if err := w.Write(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := NewWriter(&stream, 0).Write(frame); err != nil {
			b.Fatal(err)
		}
		line := stream.Bytes()
		b.Run(fmt.Sprintf("read/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			r := NewReader(&repeating{line: line}, 0)
			for b.Loop() {
				if _, err := r.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeating is the same line again and again.
type repeating struct {
	line []byte
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.line[r.at:])
	r.at = (r.at + n) % len(r.line)
	return n, nil
}
