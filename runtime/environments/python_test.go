package environments

import (
	"strings"
	"testing"
)

func TestParsePython(t *testing.T) {
	const sound = `{"implementation":"cpython","abiflags":"","version":"3.13.1","machine":"x86_64",` +
		`"glibc":"2.36",` +
		`"musl":"","tag":"cpython-313","magic":"f30d0d0a","cxx":true}`
	p, err := parsePython(sound)
	if err != nil || p.String() != "CPython 3.13.1 on x86_64 with glibc 2.36" || !p.cxx ||
		p.bytecodeName("opt/env/a/b.py") != "opt/env/a/__pycache__/b.cpython-313.pyc" {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, tt := range []struct{ old, by, want string }{
		{sound, "", "no answer"},
		{`"cpython"`, `"pypy"`, `"pypy" and not CPython`},
		{`"abiflags":""`, `"abiflags":"t"`, "special build"},
		{"3.13.1", "3.13.1; rm", "can't be right"},
		{"x86_64", "../x", "can't be right"},
		{"2.36", "", "can't be right"},
		{"cpython-313", "../../etc/x", "can't be right"},
		{"f30d0d0a", "f30d", "can't be right"},
	} {
		if _, err := parsePython(strings.Replace(sound, tt.old, tt.by, 1)); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.by, err, tt.want)
		}
	}
}
