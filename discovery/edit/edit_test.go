package edit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var entry = config.Object{{Name: "command", Value: config.Of("/b")},
	{Name: "args", Value: config.Of([]string{"x"})}}

// TestApply: what a change makes of a text, and what taking it out again leaves.
func TestApply(t *testing.T) {
	set := func(path ...string) Change { return Change{Path: path, Value: entry.Value()} }
	for _, tt := range []struct{ name, file, text, want, back string }{
		{"an object with comments", "a.json",
			"{\n  // mine\n  \"m\": {\n    \"a\": {\"command\": \"x\"} // last\n  },\n}\n",
			"{\n  // mine\n  \"m\": {\n    \"a\": {\"command\": \"x\"}, // last\n    \"b\": {\n" +
				"      \"command\": \"/b\",\n      \"args\": [\"x\"]\n    }\n  },\n}\n", ""},
		{"a trailing comma and tabs", "a.jsonc", "{\n\t\"m\": {\n\t\t\"a\": 1,\n\t},\n}",
			"{\n\t\"m\": {\n\t\t\"a\": 1,\n\t\t\"b\": {\n\t\t\t\"command\": \"/b\",\n" +
				"\t\t\t\"args\": [\"x\"]\n\t\t},\n\t},\n}", ""},
		{"a mark and CRLF", "a.json", "\ufeff{\r\n    \"m\": {}\r\n}\r\n",
			"\ufeff{\r\n    \"m\": {\r\n        \"b\": {\r\n            \"command\": \"/b\",\r\n" +
				"            \"args\": [\"x\"]\r\n        }\r\n    }\r\n}\r\n", ""},
		{"one line", "a.json", `{"m":{"a":1},"z":"é"}`,
			`{"m":{"a":1, "b": {"command": "/b", "args": ["x"]}},"z":"é"}`, ""},
		{"nothing yet", "a.json", "{}", "{\n  \"m\": {\n    \"b\": {\n      \"command\": \"/b\",\n" +
			"      \"args\": [\"x\"]\n    }\n  }\n}", ""},
		{"null", "a.json", `{"m": null}`, `{"m": {"b": {"command": "/b", "args": ["x"]}}}`, `{"m": {}}`},
		{"an empty file", "a.json", "\n", "{\n  \"m\": {\n    \"b\": {\n      \"command\": \"/b\",\n" +
			"      \"args\": [\"x\"]\n    }\n  }\n}\n", "{}\n"},
		{"a table", "a.toml", "x = 1 # one\n\n[m.a] # a\ncommand = \"y\"\n",
			"x = 1 # one\n\n[m.a] # a\ncommand = \"y\"\n\n[m.b]\ncommand = \"/b\"\nargs = [\"x\"]\n", ""},
		{"no line end", "a.toml", "x = 1", "x = 1\n\n[m.b]\ncommand = \"/b\"\nargs = [\"x\"]\n", "x = 1\n"},
		{"an inline table", "a.toml", "m = { a = { c = 1 } } # t\nz = 2\n",
			"m = { a = { c = 1 }, b = { command = \"/b\", args = [\"x\"] } } # t\nz = 2\n", ""},
		{"a block", "a.yaml", "# top\nm: # servers\n  # first\n  a:\n    cmd: x\n\nz: 1 # end\n",
			"# top\nm: # servers\n  b:\n    command: /b\n    args: [x]\n  # first\n  a:\n    cmd: x\n\n" +
				"z: 1 # end\n", ""},
		{"a mapping in braces", "a.yaml", "m: {a: 1}\n", "m: {b: {command: /b, args: [x]}, a: 1}\n", ""},
		{"no value", "a.yaml", "m:\nz: 1\n", "m:\n  b:\n    command: /b\n    args: [x]\nz: 1\n", "m: {}\nz: 1\n"},
		{"no key", "a.yaml", "z: 1", "z: 1\nm:\n  b:\n    command: /b\n    args: [x]\n", "z: 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Apply(tt.file, []byte(tt.text), set("m", "b"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Errorf("set (-want +got):\n%s", d)
			}
			if again, err := Apply(tt.file, got, set("m", "b")); err != nil || string(again) != string(got) {
				t.Errorf("again: %v\n%s", err, again)
			}
			if tt.back == "" {
				tt.back = tt.text
			}
			if back := takeBack(t, tt.file, []byte(tt.text), got, set("m", "b")); back != tt.back {
				t.Errorf("taken back (-want +got):\n%s", cmp.Diff(tt.back, back))
			}
		})
	}
}

// takeBack returns now with the inverse of a change made to before.
func takeBack(t *testing.T, file string, before, now []byte, c Change) string {
	t.Helper()
	was, err := Parse(file, before)
	if err != nil {
		t.Fatal(err)
	}
	is, err := Parse(file, now)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Inverse(was, is, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range back {
		if now, err = Apply(file, now, c); err != nil {
			t.Fatalf("%v\n%s", err, now)
		}
	}
	return string(now)
}

// TestSingleValues: values that are there, elements of arrays and removals.
func TestSingleValues(t *testing.T) {
	path := func(p string) []string { return strings.Split(p, "/") }
	off := config.Of(false)
	for _, tt := range []struct {
		name, file, text string
		change           Change
		want             string
	}{
		{"a string", "a.json", `{"a": "x" /* y */}`, Change{Path: path("a"), Value: off}, `{"a": false /* y */}`},
		{"an element", "a.json", "{\"p\": {\"allow\": [\"a\", // first\n\"b\"]}}",
			Change{Path: path("p/allow"), Value: config.Of("c"), Add: true},
			"{\"p\": {\"allow\": [\"a\", // first\n\"b\",\n\"c\"]}}"},
		{"the first element", "a.json", `{}`, Change{Path: path("p/allow"), Value: config.Of("c"), Add: true},
			"{\n  \"p\": {\n    \"allow\": [\"c\"]\n  }\n}"},
		{"one that is there", "a.json", `{"a": ["c"]}`, Change{Path: path("a"), Value: config.Of("c"), Add: true},
			`{"a": ["c"]}`},
		{"the first of two", "a.json", `{"a": 1, "b": 2}`, Change{Path: path("a")}, `{ "b": 2}`},
		{"the last of two", "a.json", "{\n \"a\": 1, // n\n \"b\": 2\n}", Change{Path: path("b")},
			"{\n \"a\": 1 // n\n}"},
		{"what follows a comment", "a.json", "{\"a\": 1, // n\n\"b\": 2}", Change{Path: path("b")},
			"{\"a\": 1 // n\n}"},
		{"what isn't there", "a.json", `{"a": 1}`, Change{Path: path("b/c")}, `{"a": 1}`},
		{"TOML: a key of a table", "a.toml", "[m.a]\nc = 1\n\n# b\n[m.b]\nc = 2\n",
			Change{Path: path("m/a/enabled"), Value: off}, "[m.a]\nc = 1\nenabled = false\n\n# b\n[m.b]\nc = 2\n"},
		{"TOML: a value", "a.toml", "[m.a]\nenabled = true # on\n", Change{Path: path("m/a/enabled"), Value: off},
			"[m.a]\nenabled = false # on\n"},
		{"TOML: an array", "a.toml", "a = [1, # x\n 2] # y\n",
			Change{Path: path("a"), Value: config.Of([]string{"z"})},
			"a = [\"z\"] # y\n"},
		{"TOML: a table with tables", "a.toml", "[m.a]\nc = 1\n[m.a.env]\nX = \"1\"\n\n# b's\n[m.b]\nc = 2\n",
			Change{Path: path("m/a")}, "\n# b's\n[m.b]\nc = 2\n"},
		{"TOML: a key in braces", "a.toml", "m = { a = 1, b = 2 }\n", Change{Path: path("m/b")},
			"m = { a = 1 }\n"},
		{"TOML: at the root", "a.toml", "# c\na = 1\n[t]\n", Change{Path: path("b"), Value: off},
			"# c\na = 1\nb = false\n[t]\n"},
		{"YAML: a word", "a.yaml", "m:\n  a:\n    enabled: true # on\n",
			Change{Path: path("m/a/enabled"), Value: off},
			"m:\n  a:\n    enabled: false # on\n"},
		{"YAML: a key", "a.yaml", "m:\n  a:\n    cmd: 'x y'\n", Change{Path: path("m/a/enabled"), Value: off},
			"m:\n  a:\n    enabled: false\n    cmd: 'x y'\n"},
		{"YAML: a member", "a.yaml", "m:\n  a:\n    args:\n    - |\n      x\n    # of a\n\n  # of b\n  b: 1\n",
			Change{Path: path("m/a")}, "m:\n\n  # of b\n  b: 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Apply(tt.file, []byte(tt.text), tt.change)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestUnable: what is refused, since it would touch more than the change, or can't be told.
func TestUnable(t *testing.T) {
	for _, tt := range []struct{ name, file, text, want string }{
		{"no JSON", "a.json", `{"m": `, "not valid JSON"},
		{"an array", "a.json", `[]`, "not an object"},
		{"a string in its place", "a.json", `{"m": "x"}`, `its "m" is a string`},
		{"twice", "a.json", `{"m": {}, "m": {}}`, "more than once"},
		{"no TOML", "a.toml", "m = [", "not valid TOML"},
		{"an array of tables", "a.toml", "[[m]]\na = 1\n", "an array"},
		{"no YAML", "a.yaml", "a: [", "not valid YAML"},
		{"an alias", "a.yaml", "x: &x {a: 1}\nm: *x\n", "only a single word"},
		{"the end of a document", "a.yaml", "x: 1\n...\n", "can't be changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Apply(tt.file, []byte(tt.text), Change{Path: []string{"m", "b"}, Value: entry.Value()})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, tt.want)
			}
		})
	}
}

// FuzzApply: what is made parses, holds what was there and the change, and loses no byte of what
// was there; taking the change back leaves what was there.
func FuzzApply(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed.kind, seed.text, "mcpServers", "mcp-bridge")
	}
	f.Fuzz(func(t *testing.T, kind byte, text, key, member string) {
		file := kinds[int(kind)%len(kinds)]
		before, err := Parse(file, []byte(text))
		c := Change{Path: []string{key, member}, Value: entry.Value()}
		if err != nil || key == "" || member == "" {
			return
		}
		made, err := Apply(file, []byte(text), c)
		if err != nil {
			return
		}
		now, err := Parse(file, made)
		if err != nil {
			t.Fatalf("it no longer parses: %v\n%q\n%q", err, text, made)
		}
		was, _ := At(before, c.Path[:1])
		ours := config.Object{{Name: member, Value: c.Value}}
		inner, _ := was.Object()
		group := append(without(inner, member), ours...)
		want := append(without(before, key), config.Member{Name: key, Value: group.Value()})
		if !now.Value().Equal(want.Value()) {
			t.Fatalf("it doesn't hold what it held, and the change:\n%q\n%q", text, made)
		}
		_, depth := At(before, c.Path)
		if depth < len(c.Path) && !subsequence(text, string(made)) && !strings.Contains(text, "null") &&
			!strings.Contains(text, "~") && strings.TrimSpace(text) != "" {
			t.Fatalf("bytes are lost:\n%q\n%q", text, made)
		}
		back, err := Inverse(before, now, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range back {
			if made, err = Apply(file, made, c); err != nil {
				return // which is told, and leaves the file as it is
			}
		}
		if after, err := Parse(file, made); err != nil || !same(after, before, c.Path) {
			t.Fatalf("taken back it holds something else: %v\n%q\n%q", err, text, made)
		}
	})
}

var kinds = []string{"a.json", "a.toml", "a.yaml"}

type seed struct {
	kind byte
	text string
}

// seeds are the files of all hosts.
func seeds(f *testing.F) (all []seed) {
	f.Helper()
	paths, err := filepath.Glob("../testdata/hosts/*.txt")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range append(paths, "../install/testdata/hosts.txt") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
			name, body, _ := strings.Cut(part, " --\n")
			kind := 0
			if strings.Contains(name, ".toml") {
				kind = 1
			} else if strings.Contains(name, ".yaml") {
				kind = 2
			}
			all = append(all, seed{byte(kind), body})
		}
	}
	return all
}

func without(o config.Object, name string) config.Object {
	return slices.DeleteFunc(slices.Clone(o), func(m config.Member) bool { return m.Name == name })
}

// FuzzRemove: a member that is taken out, or switched off, is gone or false, and all else is there.
func FuzzRemove(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed.kind, seed.text, uint(0x121), false)
		f.Add(seed.kind, seed.text, uint(0x1000), true)
	}
	f.Fuzz(func(t *testing.T, kind byte, text string, pick uint, off bool) {
		file := kinds[int(kind)%len(kinds)]
		before, err := Parse(file, []byte(text))
		c := Change{}
		for o := before; len(o) > 0 && (len(c.Path) == 0 || pick > 0); pick /= 8 {
			m := o[int(pick%8)%len(o)]
			c.Path = append(c.Path, m.Name)
			o, _ = m.Value.Object()
		}
		if off {
			c.Value = config.Of(false)
		}
		if err != nil || len(c.Path) == 0 {
			return
		}
		made, err := Apply(file, []byte(text), c)
		if err != nil {
			return
		}
		now, err := Parse(file, made)
		if is, depth := At(now, c.Path); err != nil || off && !is.Is("false") || !off && depth == len(c.Path) {
			t.Fatalf("%v, %q:\n%q\n%q", err, c.Path, text, made)
		}
		was, _ := At(before, c.Path[:len(c.Path)-1])
		is, _ := At(now, c.Path[:len(c.Path)-1])
		a, _ := was.Object()
		b, _ := is.Object()
		last := c.Path[len(c.Path)-1]
		if !without(a, last).Value().Equal(without(b, last).Value()) {
			t.Fatalf("what stands beside %q is another:\n%q\n%q", c.Path, text, made)
		}
	})
}

// same reports whether two roots are the same except for an empty object, or null, on the way to
// path.
func same(a, b config.Object, path []string) bool {
	if a.Value().Equal(b.Value()) {
		return true
	}
	bare := func(o config.Object) config.Value {
		if inner := o.Object(path[0]); len(inner) == 0 {
			o = without(o, path[0])
		}
		return o.Value()
	}
	return bare(a).Equal(bare(b))
}

// subsequence reports whether all bytes of a stand in b, in their order.
func subsequence(a, b string) bool {
	for i := range len(a) {
		j := strings.IndexByte(b, a[i])
		if j < 0 {
			return false
		}
		b = b[j+1:]
	}
	return true
}
