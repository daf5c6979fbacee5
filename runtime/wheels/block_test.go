package wheels

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	text, err := os.ReadFile("testdata/pep440.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			continue
		}
		n++
		got := "0"
		v, err := parseVersion(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		if s, err := parseSpecifiers(fields[1]); err != nil {
			got = "E"
		} else if s.match(v) {
			got = "1"
		}
		if got != fields[2] {
			t.Errorf("%s %s: got %s, want %s", fields[0], fields[1], got, fields[2])
		}
	}
	if n < 300 {
		t.Errorf("there were %d cases", n)
	}
	for _, bad := range []string{"", "x", "1.", "1..2", "1+", "1.0 2", strings.Repeat("1", 19),
		"1" + strings.Repeat(".1", 200)} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q is %+v", bad, v)
		}
	}
	for _, bad := range []string{"1", "=1", "=>1", "==", ">=1.*", "~=1", ">1+x", "==1.* 2"} {
		if _, err := parseSpecifiers(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseBlock(t *testing.T) {
	tests := []struct{ name, code, want string }{
		{"none", "print(1)", "none"},
		{"as in PEP 723", "#!/usr/bin/env python\n# /// script\n# requires-python = \">=3.11\"\n" +
			"# dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n# ///\n\nimport requests\n",
			">=3.11 [requests<3 rich]"},
		{"CRLF", "# /// script\r\n# dependencies = [\"rich\"]\r\n# ///\r\n", " [rich]"},
		{"empty lines", "# /// script\n#\n# dependencies = []\n#\n# ///", " []"},
		{"other tools", "# /// script\n# dependencies = [\"x\"]\n# [tool.uv]\n# exclude-newer = \"2026\"\n# ///\n",
			" [x]"},
		{"other block", "# /// pyproject\n# dependencies = [\"x\"]\n# ///\n", "none"},
		{"not closed", "# /// script\n# dependencies = [\"x\"]\nimport x\n", `"# /// script" begins no block: `},
		{"a byte order mark", "\ufeff# /// script\n# dependencies = [\"x\"]\n# ///\n", " [x]"},
		{"prose", "# /// strict\n# The dependencies are few.\n# ///\n", "none"},
		{"with a colon", "# /// script:\n# dependencies = []\n# ///\n", `"# /// script:" begins no block`},
		{"misspelt", "# /// scrpt\r\n# dependencies = [\"x\"]\r\n# ///\r\n", `"# /// scrpt" begins no block`},
		{"other spaces", "#/// script \n# dependencies = [\"x\"]\n# ///\n", `"#/// script " begins no block`},
		{"a text", "s = \"\"\"\n# /// script\n# dependencies = []\n\"\"\"\n", "none"},
		{"a heading", "# /// scripts\n# They do nothing.\nx = 1\n", "none"},
		{"no comment", "open('file:///script')\n# see file:///script\n", "none"},
		{"not at the start of the line", " # /// script\n # dependencies = [\"x\"]\n # ///\n", "none"},
		{"no space", "# /// script\n#dependencies = [\"x\"]\n# ///\n", "begins no block"},
		{"closed by the last line", "# /// script\n# dependencies = [\"x\"]\n# ///\n# ///\n", "no TOML"},
		{"two", strings.Repeat("# /// script\n# dependencies = []\n# ///\n\n", 2), "two blocks"},
		{"a misspelt key", "# /// script\n# dependncies = [\"x\"]\n# ///\n",
			`has no key "dependncies" (did you mean "dependencies"?)`},
		{"no TOML", "# /// script\n# x\n# ///\n", `no TOML in its line 1, "# x"`},
		{"no list", "# /// script\n# dependencies = \"x\"\n# ///\n", "must be a list of strings"},
		{"a list of numbers", "# /// script\n# dependencies = [1]\n# ///\n", "must be a list of strings"},
		{"requires a number", "# /// script\n# requires-python = 3.9\n# ///\n", "must be a string"},
		{"no requirement", "# /// script\n# dependencies = [\"x y\"]\n# ///\n", `"x y" is no requirement`},
		{"requires", "# /// script\n# requires-python = \"3\"\n# ///\n", `"3" is no condition`},
		{"too many", "# /// script\n# dependencies = [" + strings.Repeat("'x',", maxDependencies+1) + "]\n# ///\n",
			"more than 200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := ParseBlock(tt.code)
			got := "none"
			if err != nil {
				got = err.Error()
			} else if b != nil {
				var names []string
				for _, d := range b.Dependencies {
					names = append(names, d.Text)
				}
				got = fmt.Sprint(b.RequiresPython, " ", names)
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	have := []Distribution{{Name: "pandas", Version: "3.1.1"}, {Name: "ruamel-yaml", Version: "0.19b1"}}
	tests := []struct{ requires, dependency, want string }{
		{"", "pandas", "[]"},
		{"", "Pandas >= 2, < 4", "[]"},
		{"", "pandas (>=2)", "[]"},
		{"", "pandas[excel,test] ~= 3.0", "[]"},
		{"", "pandas==3.1.*", "[]"},
		{"", "pandas<3", "[pandas<3]"},
		{"", "Ruamel_YAML>0.18", "[]"}, // a pre-release that is there counts
		{"", "polars", "[polars]"},
		{"", "polars; python_version < '3.9'", "[]"},
		{"", "polars>1 ; python_version >= '3.9'", "[polars>1 ; python_version >= '3.9']"},
		{">=3.14", "pandas", "[Python >=3.14]"},
		{">=3.9,<4", "pandas", "[]"},
	}
	for _, tt := range tests {
		r, err := ParseRequirement(tt.dependency)
		if err != nil {
			t.Errorf("%s: %v", tt.dependency, err)
			continue
		}
		b := &Block{RequiresPython: tt.requires, Dependencies: []Requirement{r}}
		if got, err := b.Missing(python, have); err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.dependency, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "-x", "x-", "x y", "x>", "x=1", "x @ https://x.example/x.whl",
		"x@https://x", "x[a", "x (>=1", "x;y;", "./x", "x\n>=1 y", "x; os_name == '\x1b'"} {
		r, err := ParseRequirement(bad)
		if err == nil {
			_, err = (&Block{Dependencies: []Requirement{r}}).Missing(python, have)
		}
		if err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// FuzzBlock reads any code: what is accepted can be asked of an environment.
func FuzzBlock(f *testing.F) {
	f.Add("# /// script\n# requires-python = \">=3.11\"\n" +
		"# dependencies = [\"requests[x]<3,!=2.*;os_name=='nt'\"]\n# ///\n")
	f.Add("# /// script\r\n# dependencies = [\"a (~=1.2rc1.post3.dev4+x)\"]\r\n# ///\r\n")
	f.Fuzz(func(t *testing.T, code string) {
		b, err := ParseBlock(code)
		if err != nil || b == nil {
			return
		}
		for _, d := range b.Dependencies {
			if d.Name != Normalize(d.Name) || !namePattern.MatchString(d.Name) {
				t.Errorf("a dependency is %q", d.Name)
			}
		}
		b.Missing(python, []Distribution{{Name: "a", Version: "1.2"}})
	})
}
