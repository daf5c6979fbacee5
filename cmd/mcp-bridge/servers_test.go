package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
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
			advice := strings.NewReplacer("mcp-bridge secret set NAME", "", "${secret:NAME}", "")
			if strings.Contains(advice.Replace(got), "secret") {
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

// TestNoneMayBeUsed: where servers were found, and none may be used, the user isn't told to add
// some.
func TestNoneMayBeUsed(t *testing.T) {
	held := discovery.Problem{Server: "files", State: discovery.New, Reason: "it is new"}
	for _, tc := range []struct {
		problems    []discovery.Problem
		has, hasNot string
	}{
		{nil, "no servers that can be used were found", "none of them"},
		{[]discovery.Problem{{Reason: "it is no JSON"}}, "no servers that can be used were found", "none of them"},
		{[]discovery.Problem{held}, "servers were found, and none of them may be used", "add some"},
	} {
		var b bytes.Buffer
		printServers(terminal.New(&b), discovery.Catalog{Problems: tc.problems})
		if got := b.String(); !strings.Contains(got, tc.has) || strings.Contains(got, tc.hasNot) {
			t.Errorf("%v: it printed %s", tc.problems, got)
		}
	}
}
