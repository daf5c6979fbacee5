package entrypoint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outputs are frames, most of which are read quickly.
var outputs = []struct {
	line  string
	quick bool
}{
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"hi\\n"}`, true},
	{`{"type":"output","id":"r","stream":"stderr","seq":0,"text":""}`, true},
	{`{"type":"output","id":"r","stream":"stdout","seq":123456789012345678,"text":"é日😀\u007f\u2028"}`, true},
	{`{"type":"output","id":"\u0041\\\"","stream":"","seq":2,"text":"\\\"\/\b\f\r\t\u0000\u00e9\uFFFD"}`, true},
	{`{"type":"output","id":"r","stream":"x\",\"seq\":1","seq":3,"text":"\",\"text\":\"no"}`, true},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"\ud83d\ude00"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"\ud83d"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":-1,"text":"x"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":01,"text":"x"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1e3,"text":"x"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"x","text":"y"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"x","type":"done"}`, false},
	{`{"type":"output","id":"r","id":"s","stream":"stdout","seq":1,"text":"x"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"a	b"}`, false},
	{"{\"type\":\"output\",\"id\":\"r\",\"stream\":\"stdout\",\"seq\":1,\"text\":\"\xff\"}", false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"\x"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"\u12"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"\u+123"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"\"}`, false},
	{`{"type":"output","id":"r","stream":"stdout","seq":1,"text":"x"} `, false},
	{`{ "type":"output","id":"r","stream":"stdout","seq":1,"text":"x"}`, false},
	{`{"type":"done","id":"r","stream":"stdout","seq":1,"text":"x"}`, false},
}

func TestQuickOutput(t *testing.T) {
	for _, tt := range outputs {
		if got, ok := quickOutput([]byte(tt.line)); ok != tt.quick {
			t.Errorf("%s: %+v, %v", tt.line, got, ok)
		}
		sameAsJSON(t, tt.line)
	}
}

// TestOutputsAreReadQuickly: the frames are those that the guest writes, as far as that isn't rare.
func TestOutputsAreReadQuickly(t *testing.T) {
	line, err := marshal(struct {
		Type   string `json:"type"`
		ID     string `json:"id"`
		Stream string `json:"stream"`
		Seq    int    `json:"seq"`
		Text   string `json:"text"`
	}{TypeOutput, "3f", "stdout", 7, strings.Repeat("line\n\"quoted\" \\ é\x1b[0m\n", 1000)})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := quickOutput(line[:len(line)-1]); !ok {
		t.Errorf("%.200s isn't", line)
	}
}

// sameAsJSON: what is read quickly is what encoding/json reads.
func sameAsJSON(t *testing.T, line string) {
	t.Helper()
	got, ok := quickOutput([]byte(line))
	if !ok {
		return
	}
	var want FromGuest
	if err := json.Unmarshal([]byte(line), &want); err != nil {
		t.Fatalf("%q was read as %+v, and is none: %v", line, got, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q: %s", line, diff)
	}
}

func FuzzQuickOutput(f *testing.F) {
	for _, tt := range outputs {
		f.Add(tt.line, "x")
		f.Add(`{"type":"output","id":"%s","stream":"stdout","seq":1,"text":"%[1]s"}`, tt.line)
	}
	f.Fuzz(func(t *testing.T, line, part string) {
		sameAsJSON(t, line)
		sameAsJSON(t, fmt.Sprintf(`{"type":"output","id":"%s","stream":"stdout","seq":1,"text":"%s"}`, part, line))
	})
}

func BenchmarkReadOutput(b *testing.B) {
	line := `{"type":"output","id":"3f","stream":"stdout","seq":7,"text":"` + strings.Repeat(strings.Repeat("x", 99)+`\n`, 640) + `"}` + "\n"
	r := NewReader(&repeated{text: line}, 0)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// repeated is a text again and again.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
