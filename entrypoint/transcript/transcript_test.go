package transcript

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLoad(t *testing.T) {
	all, err := Load(os.DirFS("../testdata/transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	sides := make(map[Side]int)
	for _, tr := range all {
		sides[tr.PlayedBy]++
		if strings.TrimSpace(tr.Prose) == "" || len(tr.Lines) == 0 {
			t.Errorf("%s: no prose or no lines", tr.Name)
		}
		for _, l := range tr.Lines {
			if l.Frame == nil {
				continue
			}
			if l.Type() == "" {
				t.Errorf("%s:%d: a frame without a type", tr.Name, l.At)
			}
			if err := Match(l.Frame, l.Sample()); err != nil && l.Type() != "execute" {
				t.Errorf("%s:%d: its own sample doesn't match: %v", tr.Name, l.At, err)
			}
		}
	}
	if sides[Both] < 12 || sides[Host] == 0 || sides[Guest] == 0 {
		t.Errorf("transcripts by side: %v", sides)
	}
}

func TestLoadRefusesNothing(t *testing.T) {
	if _, err := Load(fstest.MapFS{"x.txt": {}}); err == nil {
		t.Error("no error for a folder without transcripts")
	}
}

func TestParse(t *testing.T) {
	const text = "What it is.\nPlayed by: guest\n-- code.py --\npass\n-- frames --\n# comment\n\n" +
		`host> {"type":"execute","code":"@code","n":9007199254740993,"x":"@repeat(ab, 2)"}` + "\n" +
		"guest> @raw a@repeat(b, 3)c\nhost> @close\nguest> @exit 66\n-- result --\n{\"status\":\"error\"}\n"
	tr, err := Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if tr.PlayedBy != Guest || tr.Code != "pass\n" || len(tr.Lines) != 4 {
		t.Fatalf("got %+v", tr)
	}
	want := `{"code":"pass\n","n":9007199254740993,"type":"execute","x":"abab"}`
	if got := string(tr.Lines[0].Frame); got != want {
		t.Errorf("frame %s, want %s", got, want)
	}
	if got := tr.Lines[1]; string(got.Raw) != "abbbc" || got.From != Guest || got.At != 4 {
		t.Errorf("raw line %+v", got)
	}
	if !tr.Lines[2].Close || tr.Lines[3].Exit == nil || *tr.Lines[3].Exit != 66 {
		t.Errorf("lines %+v", tr.Lines[2:])
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"no result", "-- frames --\nhost> @close\n"},
		{"result without status", "-- result --\n{}\n"},
		{"unknown file", "-- frame --\n-- result --\n{\"status\":\"ok\"}\n"},
		{"a line of a third", "-- frames --\nthird> {}\n-- result --\n{\"status\":\"ok\"}\n"},
		{"no JSON", "-- frames --\nhost> {\n-- result --\n{\"status\":\"ok\"}\n"},
		{"what the guest can't do", "-- frames --\nguest> @close\n-- result --\n{\"status\":\"ok\"}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Parse("x", []byte(test.text)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		name, pattern, got string
		want               bool
	}{
		{"same", `{"a":[1,"x",null,true]}`, `{"a":[1,"x",null,true]}`, true},
		{"any value", `{"a":"*"}`, `{"a":{"b":1}}`, true},
		{"any text", `"a*c*e"`, `"abcde"`, true},
		{"text without its end", `"a*c"`, `"abcd"`, false},
		{"parts may not overlap", `"ab*ba"`, `"aba"`, false},
		{"missing", `{"a":1,"b":"*"}`, `{"a":1}`, false},
		{"more", `{"a":1}`, `{"a":1,"b":2}`, false},
		{"another type", `{"a":"1"}`, `{"a":1}`, false},
		{"big integers are exact", `9007199254740993`, `9007199254740992`, false},
		{"shorter", `[1,2]`, `[1]`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := Match(json.RawMessage(test.pattern), json.RawMessage(test.got)); (err == nil) != test.want {
				t.Errorf("Match gave %v", err)
			}
		})
	}
}
