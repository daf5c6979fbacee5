package docker

import (
	"os"
	"strings"
	"testing"
)

// TestDeviceNodesAreReadOnly: code can use the devices and not change their nodes, which are the
// host's where docker is rootless.
func TestDeviceNodesAreReadOnly(t *testing.T) {
	d := newDriver(t, Config{})
	if strings.HasSuffix(os.Getenv("MCP_BRIDGE_TEST_ENGINE"), "runsc") {
		t.Skip("gVisor's nodes are its own, and end with it")
	}
	out, _ := runProgram(t, d, target(d)(t).Spec(`
import os
for name in ("full", "null", "random", "urandom", "zero"):
    try: os.utime("/dev/" + name)
    except OSError as e: print(name, e.strerror)
open("/dev/null", "w").write("x")
print(len(open("/dev/urandom", "rb").read(8)), open("/dev/zero", "rb").read(2))
try: open("/dev/full", "wb", buffering=0).write(b"x")
except OSError as e: print(e.strerror)
`))
	const ro = "Read-only file system"
	want := "full " + ro + "\nnull " + ro + "\nrandom " + ro + "\nurandom " + ro + "\nzero " + ro +
		"\n8 b'\\x00\\x00'\nNo space left on device\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
