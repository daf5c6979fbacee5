package trust

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestACL: who may write by the ACL of a real file.
func TestACL(t *testing.T) {
	const user, named, group, mask, other, none = 1, 2, 4, 16, 32, 0xffffffff
	acl := func(entries ...[3]uint32) []byte {
		text := binary.LittleEndian.AppendUint32(nil, 2)
		for _, e := range entries {
			text = binary.LittleEndian.AppendUint16(text, uint16(e[0]))
			text = binary.LittleEndian.AppendUint16(text, uint16(e[1]))
			text = binary.LittleEndian.AppendUint32(text, e[2])
		}
		return text
	}
	for _, tt := range []struct {
		name       string
		may, masks uint32
		bad        bool
	}{{"writes", 6, 6, true}, {"reads", 4, 6, false}, {"is masked", 6, 4, false}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			text := acl([3]uint32{user, 6, none}, [3]uint32{named, tt.may, 12345}, [3]uint32{group, 4, none},
				[3]uint32{mask, tt.masks, none}, [3]uint32{other, 0, none})
			if err := syscall.Setxattr(path, "system.posix_acl_access", text, 0); err != nil {
				t.Skip("no ACLs here: ", err)
			}
			owners := System()
			owners.Private = func(int) bool { return true }
			if err := owners.File(path); (err != nil) != tt.bad ||
				tt.bad && !strings.Contains(err.Error(), "by user 12345, as its ACL says") {
				t.Errorf("got %v", err)
			}
		})
	}
}
