//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck tries directories that can be used, and those that can't.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name        string
		dir         string // below a directory with a file "plain" and the directory "dir"
		mode        os.FileMode
		asRoot      bool // root is refused too
		out, inputs string
	}{
		{"fine", "dir", 0o700, true, "", ""},
		{"missing", "gone/too", 0o700, true, "", "there is no directory"},
		{"a plain file", "plain", 0o700, true, "is not a directory", "is not a directory"},
		{"below a plain file", "plain/x", 0o700, true, "not a directory", "not a directory"},
		{"everybody's", "dir", 0o777, true, "chmod o-w", ""},
		{"not writable", "dir", 0o500, false, "you can't write to", ""},
		{"not readable", "dir", 0o300, false, "", "permission denied"},
		{"not searchable", "dir", 0o600, false, "you can't write to", "permission denied"},
		{"missing, in one that is not writable", "dir/new", 0o500, false, "you can't write to",
			"there is no directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !tc.asRoot && os.Geteuid() == 0 {
				t.Skip("root may do all")
			}
			base := t.TempDir()
			if err := os.WriteFile(filepath.Join(base, "plain"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(base, "dir"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(base, "dir", "a"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(base, "dir"), tc.mode); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(filepath.Join(base, "dir"), 0o700) //nolint:errcheck // TempDir's removal says so
			s, err := Open(filepath.Join(base, tc.dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); !fits(err, tc.out) {
				t.Errorf("out: got %v, want %q", err, tc.out)
			}
			in, err := NewInputs([]string{base, filepath.Join(base, tc.dir)})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(in.Check()...); !fits(err, tc.inputs) {
				t.Errorf("in: got %v, want %q", err, tc.inputs)
			}
		})
	}
}

func fits(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), want)
}
