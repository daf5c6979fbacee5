package hosts

import "testing"

func TestWildcard(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a", true}, {"a", "a", true}, {"a", "ab",
			false}, {"a*", "ab", true},
		{"*b", "ab", true}, {"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "axxbyyc", true}, {"a*b*c",
			"axxcyyb", false}, {"*a*a*", "a", false},
	} {
		if got := wildcard(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q, %q: got %v", tt.pattern, tt.text, got)
		}
	}
}
