package discovery

import "testing"

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
