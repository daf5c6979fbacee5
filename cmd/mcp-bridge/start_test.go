package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestPackagesStartSmall holds that no package of ours allocates much before main begins, since the
// heap's first collection would come before the answer to initialize then. A pattern with a counted
// repeat of a thousand takes half a megabyte.
func TestPackagesStartSmall(t *testing.T) {
	const most = 400_000 // bytes
	cmd := exec.Command(self(t), "version")
	cmd.Env = append(os.Environ(), asMain+"=1", "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ours := regexp.MustCompile(`(?m)^init (\S*mcp-bridge/\S+) .* (\d+) bytes`)
	lines := ours.FindAllStringSubmatch(string(out), -1)
	if len(lines) < 10 {
		t.Fatalf("only %d packages of ours in:\n%s", len(lines), out)
	}
	for _, line := range lines {
		if n, _ := strconv.Atoi(line[2]); n > most {
			t.Errorf("%s allocates %d bytes", line[1], n)
		}
	}
}
