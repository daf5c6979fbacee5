package install

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPatches: patches of any two texts make the second of the first, and touch no line that they
// share.
func TestPatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteString([]string{"a", "b", "{", "}", "\n", "\n", "\r\n", "x y z\n"}[r.IntN(8)])
		}
		return b.String()
	}
	for range 5000 {
		a, b := some(30), some(30)
		if got := string(patched([]byte(a), patches([]byte(a), []byte(b)))); got != b {
			t.Fatalf("%q with patches to %q is %q", a, b, got)
		}
	}
	long := strings.Repeat("line\nother\n", 3000)
	edited := "first\n" + strings.Replace(long, "other", "new", 1) + "last\n"
	if all := patches([]byte(long), []byte(edited)); len(all) != 3 {
		t.Errorf("%d patches", len(all))
	}
	line, more := `{"a": [1, 2], "b": 3}`, `{"mine": 0,"a": [1, 2], "b": 3, "c": 4}`
	if all := patches([]byte(line), []byte(more)); len(all) != 2 {
		t.Errorf("%d patches of one line", len(all))
	}
	if all := patches([]byte(long), []byte(strings.Repeat("a\n", 3000))); len(all) != 1 {
		t.Errorf("%d patches of another text", len(all))
	}
}
