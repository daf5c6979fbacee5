//go:build unix

package main

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

const wantFiles = "MCP_BRIDGE_TEST_FILES" // in the environment of the child that has fewer

// TestOpenFiles: a user who may have fewer descriptors than a container would get gives it no more than those; an engine without root
// would start none otherwise.
func TestOpenFiles(t *testing.T) {
	if want, err := strconv.ParseInt(os.Getenv(wantFiles), 10, 64); err == nil {
		if got := openFiles(); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
		return
	}
	if got := openFiles(); got <= 0 || got > noFile {
		t.Errorf("here: got %d, want at most %d", got, noFile)
	}
	for _, limit := range []string{"200", strconv.Itoa(noFile)} {
		cmd := exec.Command("sh", "-c", "ulimit -n "+limit+` && exec "$0" -test.run='^TestOpenFiles$' -test.count=1`, os.Args[0])
		cmd.Env = append(os.Environ(), wantFiles+"="+limit)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with a limit of %s: %v: %s", limit, err, out)
		}
	}
}
