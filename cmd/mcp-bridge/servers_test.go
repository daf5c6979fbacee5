package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// allHosts is a real home directory with every host's files in it, those of discovery's tests, and
// a project.
func allHosts(t *testing.T) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	archive, err := txtar.ParseFile("../../discovery/testdata/all-hosts.txt")
	if err != nil || len(archive.Files) < 20 {
		t.Fatalf("%v, %d files", err, len(archive.Files))
	}
	moved := strings.NewReplacer("/home/u", root+"/home/u", "/w/shop", root+"/w/shop")
	for _, f := range archive.Files {
		p := moved.Replace(f.Name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		must(t, os.WriteFile(p, []byte(moved.Replace(string(f.Data))), 0o600))
	}
	return root
}

// TestServersOfAllHosts: the listing of a home with all hosts at once, for people and for programs,
// tells what is where, in which state and why, and no secret.
func TestServersOfAllHosts(t *testing.T) {
	root := allHosts(t)
	for golden, args := range map[string][]string{"servers.golden": {"servers"},
		"servers.json.golden": {"servers", "--json"}} {
		t.Run(golden, func(t *testing.T) {
			cmd := exec.Command(self(t), args...)
			cmd.Dir = filepath.Join(root, "w/shop")
			cmd.Env = []string{asMain + "=1", "HOME=" + root + "/home/u", "PATH=" + os.Getenv("PATH"),
				"MCP_BRIDGE_CONFIG=~/extra"}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || stderr.Len() > 0 {
				t.Fatalf("%v, stderr %q", err, stderr.String())
			}
			if strings.HasPrefix(golden, "servers.json") && !json.Valid(out) {
				t.Error("it is no JSON")
			}
			got := strings.ReplaceAll(string(out), root, "")
			if strings.Contains(got, "secret") {
				t.Error("it tells a secret")
			}
			file := filepath.Join("testdata", golden)
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got), -update rewrites it:\n%s", d)
			}
		})
	}
}
