package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDotenv(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       map[string]string
		bad        int
	}{
		{"nothing", "", map[string]string{}, 0},
		{"plain", "A=1\nexport B = two words # not this\n# C=3\n\nD=\nE=a#b",
			map[string]string{"A": "1", "B": "two words", "D": "", "E": "a#b"}, 0},
		{"quotes", "A=\"x # y\" # z\nB='a\\n\"'\nC=\"a\\n\\\"b\\\\\"",
			map[string]string{"A": "x # y", "B": "a\\n\"", "C": "a\n\"b\\"}, 0},
		{"windows, with a mark", "\ufeffA=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}, 0},
		{"the last one counts", "A=1\nA=2", map[string]string{"A": "2"}, 0},
		{"nothing is filled in", "A=${HOME}", map[string]string{"A": "${HOME}"}, 0},
		{"no equals sign", "A=1\nsecret", nil, 2},
		{"no name", "=secret", nil, 1},
		{"a name with a space", "two words=1", nil, 1},
		{"not closed", "A=\"secret", nil, 1},
		{"something behind", "A='x' y", nil, 1},
		{"very many", strings.Repeat("A=1\n", 3) + many(), nil, 1003},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, bad := dotenv(tt.text)
			if d := cmp.Diff(tt.want, got); d != "" || bad != tt.bad {
				t.Errorf("bad line %d, want %d; (-want +got):\n%s", bad, tt.bad, d)
			}
		})
	}
}

func many() string {
	var b strings.Builder
	for i := range maxVariables + 5 {
		b.WriteString("B" + strings.Repeat("x", i) + "=1\n")
	}
	return b.String()
}

func FuzzDotenv(f *testing.F) {
	for _, seed := range []string{"A=1", "export B='x' # y", "C=\"\\", "=", "\ufeff#", "D=\"a\\nb\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		variables, bad := dotenv(text)
		if (variables == nil) != (bad > 0) || len(variables) > maxVariables {
			t.Errorf("%d variables, bad line %d", len(variables), bad)
		}
		for name := range variables {
			if badVariable(name) && !strings.Contains(name, "\x00") {
				t.Errorf("variable %q", name)
			}
		}
	})
}
