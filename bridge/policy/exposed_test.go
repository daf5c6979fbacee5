//go:build unix

package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestExposedFile: a policy that others than the user and root could have written isn't followed.
func TestExposedFile(t *testing.T) {
	for _, tt := range []struct {
		name      string
		dir, file os.FileMode
		uid       int
		hint      string // empty: it is read
	}{
		{"the user's own", 0o755, 0o644, os.Getuid(), ""},
		{"everybody writes", 0o755, 0o666, os.Getuid(), "chmod o-w "},
		{"everybody replaces it", 0o777, 0o600, os.Getuid(), "chmod o-w "},
		{"another user's", 0o755, 0o600, 12345, "copy it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.uid != os.Getuid() && os.Getuid() != 0 {
				t.Skip("giving a file away takes root")
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "policy.toml")
			if err := errors.Join(os.WriteFile(path, []byte(`default = "deny"`), 0o600), os.Chown(path, tt.uid, -1),
				os.Chmod(path, tt.file), os.Chmod(dir, tt.dir)); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			var bad *FileError
			switch {
			case tt.hint == "" && err != nil:
				t.Error(err)
			case tt.hint != "" && (!errors.As(err, &bad) || !strings.Contains(bad.Hint(), tt.hint) ||
				!strings.Contains(err.Error(), dir)):
				t.Errorf("got %v, want a refusal that says %q", err, tt.hint)
			}
		})
	}
}

// TestUnreadable: the next step for a file that can't be read is to give leave, not to correct it.
func TestUnreadable(t *testing.T) {
	bad := &FileError{Path: "/p.toml", Err: syscall.EACCES}
	if got := bad.Hint(); !strings.Contains(got, "leave to read /p.toml") || strings.Contains(got, "correct") {
		t.Error(got)
	}
}
