package entrypoint

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAliases(t *testing.T) {
	for _, test := range []struct {
		name string
		in   []string
		want map[string]string
	}{
		{"none", nil, map[string]string{}},
		{"lower case", []string{"GitHub"}, map[string]string{"GitHub": "github"}},
		{"runs of other characters", []string{"a - b.c/d", "été"}, map[string]string{"a - b.c/d": "a_b_c_d", "été": "_t_"}},
		{"a digit first", []string{"3d"}, map[string]string{"3d": "_3d"}},
		{"keywords and builtins", []string{"import", "List", "lists"}, map[string]string{"import": "import_", "List": "list_", "lists": "lists"}},
		{"nothing left", []string{"", "漢字"}, map[string]string{"": "_", "漢字": "___2"}},
		{
			"collisions, by sorted name",
			[]string{"a b", "A-B", "a_b", "a_b__2", "a_b"},
			map[string]string{"A-B": "a_b", "a b": "a_b__2", "a_b": "a_b__3", "a_b__2": "a_b__2__2"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Aliases(test.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			backwards := slices.Clone(test.in)
			slices.Reverse(backwards)
			if diff := cmp.Diff(test.want, Aliases(backwards)); diff != "" {
				t.Errorf("in another order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReserved(t *testing.T) {
	if !slices.IsSorted(reserved) {
		t.Error("not sorted")
	}
	python := python(t)
	const list = `import keyword, builtins; print(*[n for n in {*keyword.kwlist, *dir(builtins)} if n == n.lower() and n != "_"])`
	out, err := exec.CommandContext(t.Context(), python, "-c", list).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		if !slices.Contains(reserved, name) {
			t.Errorf("%s reserves %q", python, name)
		}
	}
}
