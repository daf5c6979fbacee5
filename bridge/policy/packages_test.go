package policy

import (
	"strings"
	"testing"
	"time"
)

func TestPackages(t *testing.T) {
	p := parse(t, `
[packages]
on_demand = true
allow = ["numpy", "Pandas >= 2", "polars"]
deny = ["polars<1", "left_pad"]
index = "https://index.example/simple"
min_age = "14d"
`).Packages()
	if !p.OnDemand || p.Index != "https://index.example/simple" || p.MinAge != 14*24*time.Hour {
		t.Errorf("got %+v", p)
	}
	for _, tc := range []struct{ name, version, refused string }{
		{"numpy", "", ""},
		{"numpy", "1.0", ""},
		{"pandas", "", ""},
		{"pandas", "2.1", ""},
		{"pandas", "1.9", "doesn't have the package pandas 1.9"},
		{"polars", "", ""},
		{"polars", "1.2", ""},
		{"polars", "0.9", `packages.deny in policy.toml has the package polars<1`},
		{"left-pad", "", "packages.deny"},
		{"nunpy", "", `doesn't have the package nunpy (did you mean "numpy"?)`},
		{"scipy", "", "doesn't have the package scipy"},
	} {
		err := p.Allows(tc.name, tc.version)
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s %s: got %v, want %q", tc.name, tc.version, err, tc.refused)
		}
	}
	none := parse(t, "").Packages()
	if none.OnDemand || none.Allows("anything", "1") != nil {
		t.Errorf("without a table: %+v", none)
	}
	if err := p.Denies("scipy", "1"); err != nil {
		t.Errorf("scipy is denied: %v", err)
	}
}

func TestBadPackages(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no bool", `on_demand = "yes"`, "line 2, key packages.on_demand: it must be true or false"},
		{"no list", `allow = "numpy"`, "key packages.allow"},
		{"a URL", `allow = ["a @ https://x/a.whl"]`, "asks for a URL"},
		{"no requirement", `deny = ["a b"]`, "is no requirement"},
		{"no index", `index = "file:///srv"`, "key packages.index: it is no URL"},
		{"no age", `min_age = "week"`, `"week" is no age such as "7d"`},
		{"no such key", `allowed = []`, `did you mean "allow"`},
	} {
		_, err := Parse("policy.toml", []byte("[packages]\n"+tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}
