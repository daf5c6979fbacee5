package entrypoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
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
		{"runs of other characters", []string{"a - b.c/d", "été"}, map[string]string{"a - b.c/d": "a_b_c_d",
			"été": "_t_"}},
		{"a digit first", []string{"3d"}, map[string]string{"3d": "_3d"}},
		{"keywords and builtins", []string{"import", "List", "lists"},
			map[string]string{"import": "import_", "List": "list_", "lists": "lists"}},
		{"nothing left", []string{"", "写", "读", "-"}, map[string]string{"": "tool", "-": "tool__2", "写": "tool__3",
			"读": "tool__4"}},
		{"nothing left beside a tool", []string{"读", "tool"}, map[string]string{"读": "tool__2", "tool": "tool"}},
		{"Python's own", []string{"__class__", "__dict__", "__x", "____"},
			map[string]string{"__class__": "x__class__", "__dict__": "x__dict__", "__x": "__x", "____": "tool"}},
		{"the guest's own", []string{"_load", "_loads"}, map[string]string{"_load": "_load_", "_loads": "_loads"}},
		{"its own alias first", []string{"GitHub", "github", "GITHUB"},
			map[string]string{"github": "github", "GITHUB": "github__2", "GitHub": "github__3"}},
		{
			"collisions, by sorted name",
			[]string{"a b", "A-B", "a_b", "a_b__2", "a_b"},
			map[string]string{"A-B": "a_b__3", "a b": "a_b__4", "a_b": "a_b", "a_b__2": "a_b__2"},
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

// TestAliasesSimply compares with the definition, which is quadratic, on names that collide in
// every way.
func TestAliasesSimply(t *testing.T) {
	simple := func(names []string) map[string]string {
		aliases, taken := map[string]string{}, map[string]bool{}
		taboo := [][]string{reserved, ofGuest}
		for _, own := range []bool{true, false} {
			for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
				base := alias(name, "tool", taboo)
				if (base == name) != own {
					continue
				}
				unique := base
				for n := 2; taken[unique]; n++ {
					unique = fmt.Sprintf("%s__%d", base, n)
				}
				taken[unique] = true
				aliases[name] = unique
			}
		}
		return aliases
	}
	parts := []string{"a", "A", "_", "-", "__2", "__3", "__2__2", "1", "list", "é", " "}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		names := make([]string, r.IntN(40))
		for i := range names {
			for range r.IntN(4) {
				names[i] += parts[r.IntN(len(parts))]
			}
		}
		if diff := cmp.Diff(simple(names), Aliases(names)); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", names, diff)
		}
	}
}

// TestAliasesOfMany: names that all have one alias cost what their number says. It took the square
// of that when every collision was counted from two.
func TestAliasesOfMany(t *testing.T) {
	const many = 5_000
	var names []string
	for i := range many {
		names = append(names, strings.Map(func(r rune) rune { return '漢' + r - '0' }, strconv.Itoa(i)))
	}
	var aliases map[string]string
	if n := testing.AllocsPerRun(1, func() { aliases = Aliases(names) }); n > 50*many {
		t.Errorf("%v allocations", n)
	}
	last := 0
	for _, a := range aliases {
		n, _ := strconv.Atoi(strings.TrimPrefix(a, "tool__"))
		last = max(last, n)
	}
	if len(aliases) != many || last != many {
		t.Errorf("%d aliases, the last number is %d", len(aliases), last)
	}
}

func TestReserved(t *testing.T) {
	for _, names := range [][]string{reserved, ofGuest, keywords} {
		if !slices.IsSorted(names) {
			t.Errorf("not sorted: %v", names)
		}
	}
	python := python(t)
	const list = `import keyword, builtins; print(*[n for n in {*keyword.kwlist, *dir(builtins)} if n == ` +
		`n.lower() and n != "_"])`
	const words = `import keyword; print(*sorted(n for n in keyword.kwlist if n == n.lower()))`
	const own = `from guest.servers import Server; print(*(n for n in {*vars(Server), *vars(Server(None, ` +
		`{}))} if not n.startswith("__")))`
	for _, tt := range []struct {
		code    string
		aliases func([]string) map[string]string
	}{{list, Aliases}, {words, ServerAliases}, {own, Aliases}} {
		cmd := exec.CommandContext(t.Context(), python, "-c", tt.code)
		cmd.Dir, cmd.Stderr = ".", os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(out)) {
			if tt.aliases([]string{name})[name] == name {
				t.Errorf("%s reserves %q", python, name)
			}
		}
	}
	if got := ServerAliases([]string{"servers"})["servers"]; got != "servers_" { // mcp_servers is all of them
		t.Errorf("server \"servers\" is mcp_%s", got)
	}
	for _, name := range []string{"any", "list", "type", "_load"} { // behind mcp_ they are nothing else
		if got := ServerAliases([]string{name})[name]; got != name {
			t.Errorf("server %q is mcp_%s", name, got)
		}
	}
}
