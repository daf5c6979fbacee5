package upstream

import (
	"strings"
	"testing"
)

func TestRing(t *testing.T) {
	m := newMask(map[string]string{"A": "hunter22", "B": "yes", "C": "true", "D": "hunter22-long", "E": "first-line\nsecond-line",
		"DIR": "/data/files", "URL": "http://localhost:3000/x", "DB": "postgres://me:pw@host/db", "MODE": "prod", "OTHER": "production", "LANG": "de_DE.UTF-8", "SSH_KEY": "/secret/path", "PORT": "31337"},
		[]string{"--api-key", "arg-secret", "--token=tok-secret", "--dir", "/data/files"})
	for _, tt := range []struct {
		name  string
		write []string
		want  string
	}{
		{name: "nothing"},
		{name: "secrets", write: []string{"a hunter22 b hunter22-", "long c\n"}, want: "a *** b *** c"},
		{name: "secrets over lines", write: []string{"first-line and second-line"}, want: "*** and ***"},
		{name: "arguments", write: []string{"arg-secret tok-secret /data/files"}, want: "*** *** /data/files"},
		{name: "plain values stay", write: []string{"/data/files http://localhost:3000/x prod de_DE.UTF-8 31337"}, want: "/data/files http://localhost:3000/x prod de_DE.UTF-8 31337"},
		{name: "others don't", write: []string{"postgres://me:pw@host/db /secret/path production"}, want: "*** *** ***"},
		{name: "short values stay", write: []string{"yes true\n"}, want: "yes true"},
		{name: "colours and control characters", write: []string{"\x1b[1;31mred\x1b[0m\r\n\x00x\ty"}, want: "red\nx\ty"},
		{name: "bad UTF-8", write: []string{"a\xffb"}, want: "a�b"},
		{name: "the last lines", write: []string{strings.Repeat("line\n", 100_000), "last\n"}, want: strings.Repeat("line\n", (tailSize-5)/5) + "last"},
		{name: "a secret cut in two", write: []string{"hunter22\n", strings.Repeat("\n", ringSize-6), "end"}, want: "end"},
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
