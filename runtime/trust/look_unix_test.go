//go:build unix

package trust

import "testing"

func TestOnlyMember(t *testing.T) {
	const groups = "root:x:0:\nme:x:1007:\nteam:x:50:me\nshared:x:1008:me,other\nshut:x:1009:shut\n"
	for _, tt := range []struct {
		name string
		gid  int
		want bool
	}{{"me", 1007, true}, {"me", 50, false}, {"me", 7, false}, {"shared", 1008, false}, {"shut", 1009,
		true}, {"team", 50, false}} {
		if got := onlyMember(groups, tt.name, tt.gid); got != tt.want {
			t.Errorf("%s in %d: %v, want %v", tt.name, tt.gid, got, tt.want)
		}
	}
}
