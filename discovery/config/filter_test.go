package config

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter Filter
		tool   string
		want   bool
	}{
		{"none", Filter{}, "a", true},
		{"allowed", Filter{Allow: []string{"a"}}, "a", true},
		{"not among the allowed", Filter{Allow: []string{"a"}}, "b", false},
		{"nothing is allowed", Filter{Allow: []string{}}, "a", false},
		{"denied", Filter{Deny: []string{"a"}}, "a", false},
		{"not denied", Filter{Deny: []string{"a"}}, "b", true},
		{"allowed and denied", Filter{Allow: []string{"a"}, Deny: []string{"a"}}, "a", false},
		{"a pattern", Filter{Allow: []string{"browser_*"}, Globs: true}, "browser_open", true},
		{"not of the pattern", Filter{Allow: []string{"browser_*"}, Globs: true}, "open", false},
		{"denied by a pattern", Filter{Deny: []string{"rm*"}, Globs: true}, "rmdir", false},
		{"a slash is a character", Filter{Deny: []string{"delete*"}, Globs: true}, "delete/all", false},
		{"or any one character", Filter{Deny: []string{"delete?all"}, Globs: true}, "delete/all", false},
		{"or one of a class", Filter{Deny: []string{"delete[^a]all"}, Globs: true}, "delete/all", false},
		{"stars", Filter{Allow: []string{"*a/*/b*"}, Globs: true}, "xa/y/z/b", true},
		{"not of stars", Filter{Allow: []string{"*a/*/b"}, Globs: true}, "xa/y/bz", false},
		{"a malformed pattern allows nothing", Filter{Allow: []string{"["}, Globs: true}, "[", false},
		{"a malformed pattern denies all", Filter{Deny: []string{"["}, Globs: true}, "a", false},
		{"a star is a name where there are no patterns", Filter{Deny: []string{"*"}}, "a", true},
		{"names are exact", Filter{Deny: []string{"A"}}, "a", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.filter.Allows(tt.tool); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// FuzzGlob: without slashes it is path.Match.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"a*b", "axxb"}, {"[^a-c]?*", "dé"}, {`\*[\]]`, "*]"}, {"[", "a"},
		{"**a*", "bab"}, {`é\é[à-ü]`, "ééù"}, {"*", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.Contains(pattern+name, "/") || !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return
		}
		got, err := Match(pattern, name)
		if _, wrong := path.Match(pattern, ""); err != wrong {
			t.Fatalf("error %v, want %v", err, wrong)
		}
		if want, wrong := path.Match(pattern, name); wrong == nil && err == nil && got != want {
			t.Errorf("%q of %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// FuzzMatchStars: of names as they are there, it is as a glob without classes.
func FuzzMatchStars(f *testing.F) {
	for _, seed := range [][2]string{{"a*b?c", "axxbyc"}, {"**", ""}, {"*a*a", "aa"}, {"?", "a"}, {"", "a"},
		{"a_*", "a_"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.ContainsFunc(pattern+name, func(r rune) bool {
			return !InName(r) &&
				!strings.ContainsRune("*?", r)
		}) || strings.ContainsAny(name, "*?") {
			return
		}
		want, err := Match(pattern, name)
		if got := MatchStars(pattern, name); err != nil || got != want {
			t.Errorf("%q of %q: %v, want %v, %v", pattern, name, got, want, err)
		}
	})
}

// TestHidesAll: it is said of a list only where no name at all passes.
func TestHidesAll(t *testing.T) {
	for _, tt := range []struct {
		rules []ToolRule
		want  bool
	}{
		{nil, false},
		{[]ToolRule{{Pattern: "*", Deny: true}}, true},
		{[]ToolRule{{Pattern: "**", Deny: true}}, true},
		{[]ToolRule{{Pattern: "s_*", Deny: true}}, true},
		{[]ToolRule{{Pattern: "s*", Deny: true}}, true},
		{[]ToolRule{{Pattern: "s_?*", Deny: true}}, false}, // a tool without a name would pass
		{[]ToolRule{{Pattern: "s_", Deny: true}}, false},
		{[]ToolRule{{Pattern: "s_a*", Deny: true}}, false},
		{[]ToolRule{{Pattern: "?_*", Deny: true}}, false}, // it does, but that takes more to see
		{[]ToolRule{{Pattern: "*_x", Deny: true}}, false},
		{[]ToolRule{{Pattern: "s_*", Deny: true}, {Pattern: "s_get", Deny: false}}, false},
		{[]ToolRule{{Pattern: "s_*", Deny: true}, {Pattern: "*", Deny: false}}, false},
		{[]ToolRule{{Pattern: "s_*", Deny: true}, {Pattern: "t_*", Deny: false}}, true},
		{[]ToolRule{{Pattern: "s_get", Deny: false}, {Pattern: "s_*", Deny: true},
			{Pattern: "s_put", Deny: true}}, true},
	} {
		if got := (RuleList{Prefix: "s_", Rules: tt.rules}).HidesAll(); got != tt.want {
			t.Errorf("%v: got %v", tt.rules, got)
		}
	}
}
