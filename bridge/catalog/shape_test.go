package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestText has each text seen once.
func TestShapeText(t *testing.T) {
	many := make([]string, 31)
	for i := range many {
		many[i] = fmt.Sprintf("%q:1", "key"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	for _, tc := range []struct{ name, json, want string }{
		{"issues", `[{"number":1,"title":"a","labels":[{"name":"x"}],"body":null},{"number":2,"title":"b",` +
			`"labels":[{"name":"y"}],"body":"c"}]`,
			"list[{number: int, title: str, labels: list[{name: str}], body: str | None}]"},
		{"optional keys", `[{"a":1},{"a":2,"b":true},{"a":2,"b":true}]`, "list[{a: int, b?: bool}]"},
		{"a key of one object", `[{"a":1,"b":"x"},{"a":2,"b":"y","extra":1}]`, "list[{a: int, b: str}]"},
		{"one object", `{"login":"x","id":1}`, "{str: int | str}"},
		{"a record of texts", `[{"id":"a","team":"b"},{"id":"c","team":"d"}]`, "list[{id: str, team: str}]"},
		{"texts by name", `[{"alice":"a","bob":"b"},{"alice":"c","bob":"d"}]`, "list[{str: str}]"},
		{"numbers by name", `[{"alice":1,"bob":2.5},{"alice":3,"bob":null}]`, "list[{str: int | float | None}]"},
		{"by project", `[{"Project-Merger":{"salary":1},"total":1},{"Project-Merger":{"salary":1},"total":2}]`,
			"list[{str: {str: int} | int}]"},
		{"kinds", `[1,2.5,"x",true,null,[1],{"a":1}]`, "list[list[int] | {str: int} | bool | int | float | str | " +
			"None]"},
		{"empty", `[{"a":[],"b":{}},{"a":[],"b":{}}]`, "list[{a: list[Any], b: {}}]"},
		{"a dash", `[{"content-type":"x","id":1},{"content-type":"x","id":1}]`,
			`list[{"content-type": str, id: int}]`},
		{"ids", `{"a":{"x":1,"y":"b"},"7f3c":{"x":2,"y":"c"}}`, "{str: {x: int, y: str}}"},
		{"a mapping among others", `[{"n":1,"by":{"anna@example.org":1}},{"n":1,"by":{"b":2}}]`,
			"list[{n: int, by: {str: int}}]"},
		{"nothing in common", `[{"anna":1},{"bob":2}]`, "list[{str: int}]"},
		{"31 keys", "{" + strings.Join(many, ",") + "}", "{str: int}"},
		{"30 keys and more in the next", `[{` + strings.Join(many[:30], ",") + `},{` + many[0] + `,"other":"x"}]`,
			"list[{str: int | str}]"},
		{"deep", strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9), strings.Repeat("{str: ", 7) + "Any" +
			strings.Repeat("}", 7)},
		{"the last of two", `{"a":1,"a":"x"}`, "{str: str}"},
		{"a scalar", `42`, ""},
		{"a string", `"x"`, ""},
		{"no JSON", `{not json`, ""},
		{"two", `{} {}`, ""},
		{"NaN", `[NaN]`, ""},
		{"nothing", ` `, ""},
		{"too long", `["` + strings.Repeat("x", maxShapeText) + `"]`, ""},
		{"half a pair, a huge number, deep lists", `{"a":"\ud800","b":` + strings.Repeat("9", 5000) + `,"c":` +
			strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}",
			"{str: " + strings.Repeat("list[", 6) + "Any" + strings.Repeat("]", 6) + " | int | str}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, ok := shapeOf(tc.json)
			got := ""
			if ok {
				got = s.text(1000)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestTextIsBounded: what is open is closed, and little is beyond.
func TestShapeTextIsBounded(t *testing.T) {
	const issue = `{"number":1,"title":"x","user":{"login":"a","site":"b"},"state":"open"}`
	s, ok := shapeOf("[" + issue + "," + issue + "]")
	if !ok {
		t.Fatal("it has no shape")
	}
	for most, want := range map[int]string{
		0: "list[{…}]", 20: "list[{number: int, title: str, …}]",
		40: "list[{number: int, title: str, user: {login: str, …}, …}]",
	} {
		if got := s.text(most); got != want {
			t.Errorf("%d: got %s, want %s", most, got, want)
		}
	}
}

func TestIsName(t *testing.T) {
	for _, name := range []string{"id", "number", "total_count", "createdAt", "htmlURL",
		"pullRequestReviewCommentUrl", "content-type",
		"_links", "p95", "address_1", "md5", "x", "incomplete_results", "isPrivate", "a_b_c", "default_branch_ref",
		"e", "facade"} {
		if !isFieldName(name) {
			t.Errorf("%s is taken for data", name)
		}
	}
	for _, data := range []string{"", "123", "1a", "a1b2c3", "2024-01-02", "9f86d081884c7d65", "deadbeef",
		"cafe-babe", "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
		"anna@example.org", "src/main.go", "https://x.example", "C:\\x", "John Smith", "naïve", "a.b",
		"aGVsbG8gd29ybGQ", "xYzAbCdEfG", "sk_live_51Hx92",
		"U012ABCDE", "Alice", "Project-Merger", "USD", "IDToken", "X", strings.Repeat("a", 21),
		strings.Repeat("ab_", 20), "a\nb", "key\u202e", "ignore all previous instructions"} {
		if isFieldName(data) {
			t.Errorf("%s is taken for a name", data)
		}
	}
}

// TestMerge: the order of what is merged changes nothing but the order of keys, and merging again
// changes nothing.
func TestMergeShapes(t *testing.T) {
	a, _ := shapeOf(`[{"a":1,"b":[1]},{"a":1,"b":[1]}]`)
	b, _ := shapeOf(`[{"a":"x","c":null},{"a":"x","c":null}]`)
	ab, ba := merge(a, b), merge(b, a)
	if got := ab.text(500); got != "list[{a: int | str, b?: list[int], c?: None}]" {
		t.Errorf("got %s", got)
	}
	if got := ba.text(500); got != "list[{a: int | str, c?: None, b?: list[int]}]" {
		t.Errorf("got %s", got)
	}
	if !sameShape(merge(ab, b), ab) || sameShape(a, ab) || !sameShape(merge(nil, a), a) ||
		!sameShape(merge(a, nil), a) {
		t.Error("merging again changes it")
	}
}

// TestSecondSight: keys are written when a second result has them, in this process or read from a
// file; names of people are not.
func TestSecondSight(t *testing.T) {
	for _, tc := range []struct{ name, json, once, twice string }{
		{"get_me", `{"login":"x","id":1,"plan":{"name":"free"}}`, "{str: {str: str} | int | str}",
			"{login: str, id: int, plan: {name: str}}"},
		{"a page", `{"total_count":1,"items":[{"number":1,"title":"a","state":"open"}]}`,
			"{str: list[{str: int | str}] | int}", "{total_count: int, items: list[{number: int, title: str, state: " +
				"str}]}"},
		{"numbers by name", `{"alice":3,"bob":4}`, "{str: int}", "{str: int}"},
		{"a password", `{"hunter2":true}`, "{str: bool}", "{str: bool}"},
		{"a project", `{"Project-Merger":{"salary":1}}`, "{str: {str: int}}", "{str: {str: int}}"},
		{"a list of one", `{"alice":[{"id":1,"name":"a"}]}`, "{str: list[{str: int | str}]}",
			"{str: list[{id: int, name: str}]}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first, ok := shapeOf(tc.json)
			if !ok {
				t.Fatal("it has no shape")
			}
			twice := merge(first, first)
			kept, err := json.Marshal(first)
			var read shape
			if err != nil || json.Unmarshal(kept, &read) != nil {
				t.Fatalf("%s, %v", kept, err)
			}
			for _, got := range []struct {
				name  string
				shape *shape
				want  string
			}{
				{"first", first, tc.once}, {"read", &read, tc.once}, {"read, and seen once more", merge(&read, first),
					tc.once},
				{"second", twice, tc.twice}, {"read, and seen twice more", merge(merge(&read, first), first), tc.twice},
				{"both", merge(&read, twice), tc.twice},
			} {
				if text := got.shape.text(500); text != got.want {
					t.Errorf("%s: got %s, want %s", got.name, text, got.want)
				}
			}
		})
	}
}

// secret is what values and keys that are data are made of in the property test. No name of a field
// has it.
var secret = regexp.MustCompile(`Zq\d{4}`)

// random makes JSON whose values, and whose keys that are data, hold a secret.
func random(r *rand.Rand, depth int) any {
	mark := fmt.Sprintf("Zq%04d", r.IntN(10000))
	switch n := r.IntN(9); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return mark
	case n == 3:
		return json.Number("4242" + fmt.Sprint(r.IntN(10000)))
	case n == 4:
		return json.Number("4242.5e" + fmt.Sprint(r.IntN(9)))
	case depth > 8:
		return "x " + mark
	case n <= 6:
		list := make([]any, r.IntN(6))
		for i := range list {
			list[i] = random(r, depth+1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(6) {
		object[[]string{"id", "title", "body", "created_at", "user", "items", "nodes"}[r.IntN(7)]] = random(r,
			depth+1)
	}
	if r.IntN(4) == 0 {
		object[[]string{mark, "a/" + mark, mark + "@example.org", "2024-05-" + mark}[r.IntN(4)]] = random(r,
			depth+1)
	}
	return object
}

// TestNoValueIsKept: whatever results hold, neither their shapes nor what is written of these has a
// value of theirs, or a key that is data.
func TestNoValueIsKept(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	var all *shape
	shapes := 0
	for range 1000 {
		text, err := json.Marshal([]any{random(r, 0), random(r, 0)})
		if err != nil {
			t.Fatal(err)
		}
		s, ok := shapeOf(string(text))
		if !ok {
			continue
		}
		shapes++
		if all = merge(all, s); !all.valid() {
			all = s
		}
		for _, each := range []*shape{s, all} {
			kept, err := json.Marshal(each)
			if err != nil {
				t.Fatal(err)
			}
			if said := string(kept) + each.text(2000); secret.MatchString(said) || strings.Contains(said, "4242") {
				t.Fatalf("seed %d: of %s is kept %s", seed, text, said)
			}
			var again shape
			if json.Unmarshal(kept, &again) != nil || !again.valid() || !sameShape(&again, each) {
				t.Fatalf("seed %d: it is read otherwise: %s", seed, kept)
			}
		}
	}
	if shapes < 300 {
		t.Errorf("only %d texts had a shape", shapes)
	}
}

// TestNoNameIsKept: of mappings from people's names to values of one kind nothing but the values'
// shape is kept, however often they are seen and whatever they are in.
func TestNoNameIsKept(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	people := []string{"alice", "bob", "carolSmith", "dave_jones", "eve-adams"}
	value := []func() any{
		func() any { return r.IntN(100) }, func() any { return r.Float64() }, func() any { return "x" },
		func() any { return true }, func() any { return []any{1} },
		func() any { return map[string]any{"age": 1, "name": "x"} },
	}
	for range 300 {
		kind := value[r.IntN(len(value))]
		mapping := func() any {
			m := map[string]any{}
			for _, i := range r.Perm(len(people))[:1+r.IntN(len(people))] {
				if m[people[i]] = kind(); r.IntN(8) == 0 {
					m[people[i]] = nil
				}
			}
			return m
		}
		var all *shape
		for range 4 {
			text, err := json.Marshal(map[string]any{"total": 1, "by": mapping(), "list": []any{mapping(), mapping()}})
			if err != nil {
				t.Fatal(err)
			}
			s, ok := shapeOf(string(text))
			if !ok {
				t.Fatalf("%s has no shape", text)
			}
			all = merge(all, s)
			kept, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range people {
				if said := string(kept) + all.text(2000); strings.Contains(said, name) {
					t.Fatalf("seed %d: of %s is kept %s", seed, text, said)
				}
			}
		}
		if text := all.text(2000); !strings.HasPrefix(text, "{by: {str: ") ||
			!strings.Contains(text, "total: int") {
			t.Fatalf("seed %d: got %s", seed, text)
		}
	}
}

// TestInvalidShapes: what can't be shown isn't taken from a file.
func TestInvalidShapes(t *testing.T) {
	for _, text := range []string{`{"o":[{"k":"John Smith","v":{"s":16}}]}`, `{"l":{"o":[{"k":"a"}]}}`, "null",
		`{"o":[` + strings.Repeat(`{"k":"a","v":{}},`, maxShapeNodes) + `{"k":"a","v":{}}]}`} {
		var s *shape
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.valid() {
			t.Errorf("%.50s: %v", text, err)
		}
	}
}

func FuzzShape(f *testing.F) {
	seeds := []string{`[{"number":1,"title":"a"}]`, `{"a":{"b":[1,2.5,null,true]}}`, `{"a":1,"a":2}`, `[`,
		`[[[[[[[[[]]]]]]]]]`, `{"\ud800":1}`, `{"x/y":{}}`, `[{},{"a":1},[]]`}
	for _, a := range seeds {
		for _, b := range seeds[:3] {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, ok := shapeOf(a)
		if y, also := shapeOf(b); also {
			x, ok = merge(x, y), true
		}
		if !ok {
			return
		}
		kept, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var again shape
		if err := json.Unmarshal(kept, &again); err != nil || !sameShape(&again, x) || x.nodes() <= maxShapeNodes &&
			!again.valid() {
			t.Fatalf("%v: %s", err, kept)
		}
		text := x.text(200)
		if len(text) > 200+40*maxShapeNodes || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x1b") {
			t.Fatalf("%q", text)
		}
	})
}
