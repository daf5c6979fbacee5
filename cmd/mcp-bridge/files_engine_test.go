package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesInAndOut: files of the user's are there when the code begins, whatever their size, and
// what the code hands over is in the user's directory when the call is answered.
func TestFilesInAndOut(t *testing.T) {
	needEngine(t)
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	big := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // 32 MB
	for name, data := range map[string][]byte{"a.csv": []byte("1,2"), "big.bin": big, "empty": nil} {
		must(t, os.WriteFile(filepath.Join(in, name), data, 0o600))
	}
	must(t, os.Symlink("/etc/hostname", filepath.Join(in, "link")))
	c := serve(t, with(command(t, nil, "serve"), "MCP_BRIDGE_INPUTS="+in, "MCP_BRIDGE_ARTIFACTS="+out))
	const code = `
import hashlib, os
os.chdir("/workspace/in")
print(sorted((n, os.path.getsize(n)) for n in os.listdir(".")))
print(hashlib.sha256(open("big.bin", "rb").read()).hexdigest())
_ = save_artifact("sums/a.txt", open("a.csv").read() + ",3")
`
	for range 2 { // the second has a container that has waited
		got := c.python(code, map[string]any{"files": []string{"a.csv", filepath.Join(in, "big.bin"), "empty"}})
		want := fmt.Sprintf("[('a.csv', 3), ('big.bin', %d), ('empty', 0)]\n%x\n[written to %s/", len(big),
			sha256.Sum256(big), out)
		if got.IsError || !strings.HasPrefix(got.Text, want) {
			t.Fatalf("got %s, want %s", got.Text, want)
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(got.Text, want[:len(want)-len(out)-1]), "]")
		if data, err := os.ReadFile(path); err != nil || string(data) != "1,2,3" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	if got := c.python("print(1)", map[string]any{"files": []string{"link"}}); !got.IsError ||
		!strings.Contains(got.Text, "is not below a directory whose files may be read, which are: "+in) {
		t.Errorf("got %s", got.Text)
	}
	if got := c.python("import os; print(os.path.exists('/workspace/in'))",
		nil); strings.TrimSpace(got.Text) != "False" {
		t.Errorf("a run without files has %s", got.Text)
	}
}
