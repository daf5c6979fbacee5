package settings

import (
	"path/filepath"
	"runtime"
	"testing"
)

// TestArtifactsSetting: a directory, none, or one of the user's. What is none is in the script
// directories.
func TestArtifactsSetting(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, tc := range []struct{ name, setting, data, want string }{
		{"a directory", filepath.Join(home, "out"), "", filepath.Join(home, "out")},
		{"none", "none", "", ""},
		{"the default", "", "", filepath.Join(home, ".local/share/mcp-bridge/artifacts")},
		{"the user's", "", filepath.Join(home, "data"), filepath.Join(home, "data/mcp-bridge/artifacts")},
		{"a relative data directory counts for nothing", "", "data",
			filepath.Join(home, ".local/share/mcp-bridge/artifacts")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && tc.setting == "" {
				t.Skip("the default is another")
			}
			t.Setenv("XDG_DATA_HOME", tc.data)
			s, err := Settings{Artifacts: tc.setting}.OpenArtifacts(nil)
			got := ""
			if s != nil {
				got = s.Dir()
			}
			if got != tc.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
