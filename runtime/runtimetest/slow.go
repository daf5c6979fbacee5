//go:build unix

package runtimetest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Slow stands for an OCI runtime. It makes every container as the real one does, but of the first
// it doesn't tell until Open: so an engine can be stopped exactly when a container is there that it
// hasn't written down.
type Slow struct {
	Program string // its path, whose last part is the real one's
	dir     string
}

const slowProgram = `#!/bin/sh
case " $* " in
*" create "*)
	%[1]s "$@"
	code=$?
	if mkdir %[2]s/first 2>/dev/null; then
		: >%[2]s/made
		read -r _ <%[2]s/gate
	fi
	exit $code
	;;
esac
exec %[1]s "$@"
`

// NewSlow stands for the OCI runtime at the path oci until the test ends.
func NewSlow(t *testing.T, oci string) Slow {
	t.Helper()
	dir := t.TempDir()
	s := Slow{Program: filepath.Join(dir, filepath.Base(oci)), dir: dir}
	if err := os.WriteFile(s.Program, fmt.Appendf(nil, slowProgram, oci, dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Made says whether the first container is there.
func (s Slow) Made() bool {
	_, err := os.Stat(filepath.Join(s.dir, "made"))
	return err == nil
}

// Open lets it tell of the first container.
func (s Slow) Open(t *testing.T) {
	t.Helper()
	// RDWR doesn't wait for a reader, who may be dead
	gate, err := os.OpenFile(filepath.Join(s.dir, "gate"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close() })
	if _, err := gate.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
}
