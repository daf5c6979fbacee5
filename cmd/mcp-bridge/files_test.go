package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestInputsSetting: absolute directories, or none.
func TestInputsSetting(t *testing.T) {
	if in, err := (config{}).inputs(); in != nil || err != nil {
		t.Errorf("got %v, %v", in, err)
	}
	t.Setenv("MCP_BRIDGE_INPUTS", "/a"+string(os.PathListSeparator)+"/b/")
	c, err := readConfig()
	must(t, err)
	if in, err := c.inputs(); err != nil || in.Dirs() != "/a, /b" {
		t.Errorf("got %v, %v", in, err)
	}
	if _, err := (config{Inputs: pathList{"data"}}).inputs(); err == nil ||
		err.Error() != "MCP_BRIDGE_INPUTS: data is not an absolute path" {
		t.Errorf("got %v", err)
	}
}

// TestArtifactsSetting: a directory, none, or one of the user's.
func TestArtifactsSetting(t *testing.T) {
	home := t.TempDir()
	plain := filepath.Join(home, "file")
	must(t, os.WriteFile(plain, nil, 0o600))
	t.Setenv("HOME", home)
	for _, tc := range []struct{ name, setting, data, want, err string }{
		{"a directory", filepath.Join(home, "out"), "", filepath.Join(home, "out"), ""},
		{"none", "none", "", "", ""},
		{"the default", "", "", filepath.Join(home, ".local/share/mcp-bridge/artifacts"), ""},
		{"the user's", "", filepath.Join(home, "data"), filepath.Join(home, "data/mcp-bridge/artifacts"), ""},
		{"a relative data directory counts for nothing", "", "data",
			filepath.Join(home, ".local/share/mcp-bridge/artifacts"), ""},
		{"a file", plain, "", "", "is no directory"},
		{"a relative path", "relative/x", "", "", "MCP_BRIDGE_ARTIFACTS: relative/x is not an absolute path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && tc.setting == "" {
				t.Skip("the default is another")
			}
			t.Setenv("XDG_DATA_HOME", tc.data)
			s, err := config{Artifacts: tc.setting}.artifacts()
			got := ""
			if s != nil {
				got = s.Dir()
			}
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil &&
				!strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v, want %q, %q", got, err, tc.want, tc.err)
			}
		})
	}
}
