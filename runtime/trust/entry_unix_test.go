//go:build unix

package trust

import "testing"

func TestOnlyMember(t *testing.T) {
	const groups = "root:x:0:\nme:x:1007:\nteam:x:50:me\nshared:x:1008:me,other\nshut:x:1009:shut\n" +
		"alice:x:1010:www-data\ncommon:x:1011:\n"
	const users = "me:x:1007:1007::/:/bin/sh\ncommon:x:1011:1011::/:/bin/sh\nguest:x:1012:1011::/:/bin/sh\n"
	for _, tt := range []struct {
		name string
		gid  int
		want bool
	}{{"me", 1007, true}, {"me", 50, false}, {"me", 7, false}, {"shared", 1008, false}, {"shut", 1009,
		true}, {"team", 50, false}, {"alice", 1010, false}, {"common", 1011, false}} {
		if got := onlyMember(groups, users, tt.name, tt.gid); got != tt.want {
			t.Errorf("%s in %d: %v, want %v", tt.name, tt.gid, got, tt.want)
		}
	}
}
