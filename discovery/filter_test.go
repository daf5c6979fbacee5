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
		{"names are exact", Filter{Deny: []string{"A"}}, "a", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.filter.Allows(tt.tool); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
