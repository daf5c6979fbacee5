package config

import (
	"strconv"
	"strings"
	"testing"
)

func FuzzTOML(f *testing.F) {
	for _, seed := range []string{"", "a = 1", "[a.b]\nc = [1, {d = 'x'}]", "[[x]]\ny = 1e400",
		"a = '''\n'''", "\"\\u0000\" = 0x10", "a.b.c = 1979-05-27"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkTree(t, "x.toml", data) })
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"", "a: 1", "a: &x [1, *x]", "<<: {a: 1}\na: 2", "? [a]\n: b",
		"!!binary aGk=", "a: |\n  x\n  y\n", "%YAML 1.1\n---\n- ~", "a: .inf", laughs()} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkTree(t, "x.yaml", data) })
}

func checkTree(t *testing.T, name string, data []byte) {
	root, _, bad := Parse(name, data)
	if bad.Refused() {
		if root != nil {
			t.Fatalf("%v, and a refusal: %v", root, bad)
		}
		return
	}
	// An array under a dotted key may nest as deep as both together.
	if n := deepest(root.Value()); n > 2*maxDepth+2 {
		t.Fatalf("it nests %d levels deep", n)
	}
}

func deepest(v Value) int {
	most := 0
	members, _ := v.Object()
	for _, m := range members {
		most = max(most, 1+deepest(m.Value))
	}
	elements, _ := v.Array()
	for _, e := range elements {
		most = max(most, 1+deepest(e))
	}
	return most
}

// compact renders a value as JSON.
func compact(v Value) string {
	if o, ok := v.Object(); ok {
		var members []string
		for _, m := range o {
			members = append(members, strconv.Quote(m.Name)+":"+compact(m.Value))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	if text, ok := v.Text(); ok {
		return strconv.Quote(text)
	}
	text, _ := v.Literal()
	return text
}

func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		last, next := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + next + ": &a" + next + " [" + strings.Repeat("*a"+last+",", 9) + "*a" + last +
			"]\n")
	}
	return b.String()
}

// TestYAMLMerge: what a mapping holds, in order: of two merged ones the first one's members count,
// its own before both, wherever they stand; a key that only looks like a merge is one like all
// others.
func TestYAMLMerge(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"nothing", "{}", `{}`},
		{"in order", "{b: 1, a: 2}", `{"b":1,"a":2}`},
		{"own members last, and counting", "x: &x {a: 1, b: 2}\ny: {a: 3, <<: *x, c: 4}",
			`{"x":{"a":1,"b":2},"y":{"b":2,"a":3,"c":4}}`},
		{"several, the first one's last", "x: &x {a: 1}\ny: &y {a: 2, b: 3}\nz: {<<: [*x, *y]}",
			`{"x":{"a":1},"y":{"a":2,"b":3},"z":{"a":2,"b":3,"a":1}}`},
		{"merged of what is merged", "x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y}",
			`{"x":{"a":1},"y":{"a":1,"b":2},"z":{"a":1,"b":2}}`},
		{"not of a scalar", "{<<: text, a: 1}", `{"a":1}`},
		{"not of scalars in a list", "x: &x {a: 1}\ny: {<<: [text, *x, 7]}", `{"x":{"a":1},"y":{"a":1}}`},
		{"a name in quotes", `{"<<": {a: 1}, b: 2}`, `{"<<":{"a":1},"b":2}`},
		{"an alias as a key", "x: &x name\ny: {*x : 1}", `{"x":"name","y":{"name":1}}`},
		{"keys that are no texts", "{1: a, true: b, ~: c}", `{"1":"a","true":"b","~":"c"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, bad := parseYAML([]byte(tt.data))
			if bad != (Refusal{}) {
				t.Fatal(bad)
			}
			if got := compact(o.Value()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
