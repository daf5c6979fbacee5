package upstream

import (
	"strings"
	"testing"
)

func TestRing(t *testing.T) {
	m := newMask([]string{"hunter22", "hunter22-long"})
	for _, tt := range []struct {
		name  string
		write []string
		want  string
	}{
		{name: "nothing"},
		{name: "secrets", write: []string{"a hunter22 b hunter22-", "long c\n"}, want: "a *** b *** c"},
		{name: "colours and control characters", write: []string{"\x1b[1;31mred\x1b[0m\r\n\x00x\ty"},
			want: "red\nx\ty"},
		{name: "bad UTF-8", write: []string{"a\xffb"}, want: "a�b"},
		{name: "the last lines", write: []string{strings.Repeat("line\n", 100_000), "last\n"},
			want: strings.Repeat("line\n", (tailSize-5)/5) + "last"},
		{name: "few lines of stdout", write: []string{"first\n", strings.Repeat(noiseMark+"junk\n", 100), "last\n"},
			want: "first\n" + strings.Repeat(noiseMark+"junk\n", noiseLines) + "last"},
		{name: "a secret cut in two", write: []string{"hunter22\n", strings.Repeat("\n", ringSize-6), "end"},
			want: "end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &ring{mask: m}
			for _, w := range tt.write {
				if n, err := r.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			if got := r.tail(); got != tt.want {
				t.Errorf("got %d bytes %.100q, want %d bytes %.100q", len(got), got, len(tt.want), tt.want)
			}
		})
	}
}
