package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script/*.txtar: the real main, without an engine, in a home of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("XDG_RUNTIME_DIR", e.WorkDir)
			bin, _, _ := strings.Cut(e.Getenv("PATH"), string(os.PathListSeparator)) // testscript puts the program first
			e.Setenv("BIN", bin)
			return nil
		},
	})
}
