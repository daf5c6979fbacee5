package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNearest(t *testing.T) {
	names := []string{"github", "gitlab", "filesystem", "my_files", "list-issues", "a", "🦑", "日本"}
	for _, tc := range []struct {
		wrong string
		want  []string
	}{
		{"githbu", []string{"github"}}, {"git_lub", []string{"github", "gitlab"}}, {"GitHub", []string{"github"}},
		{"files", []string{"my_files", "filesystem"}},
		{"list_issues", []string{"list-issues"}}, {"zzz", nil}, {"", nil}, {"b", nil}, {"a.b", nil},
		{"A", []string{"a"}}, {"日", nil}, {strings.Repeat("g", 1<<20), nil},
	} {
		got := Nearest(tc.wrong, names)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%.20q (-want +got):\n%s", tc.wrong, diff)
		}
	}
}
