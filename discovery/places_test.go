package discovery

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// golden compares got with a file of testdata, which -update rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-want +got), -update rewrites it:\n%s", d)
	}
}

// TestPlaces: where each file of each host is on each system, as places.golden has it. A user's is
// read there. A project's is found in the working directory and in the root of its repository, and
// no server of it is started without its user's yes.
func TestPlaces(t *testing.T) {
	vars := []string{"OPENCODE_CONFIG=/v/oc.json", "OPENCODE_CONFIG_DIR=/v/oc",
		"CLINE_MCP_SETTINGS_PATH=/v/cline.json"}
	var list strings.Builder
	for _, env := range []Env{
		{Home: "/home/u", Dir: "/w/p", GOOS: "linux", Getenv: getenv(vars...)},
		{Home: "/Users/u", Dir: "/w/p", GOOS: "darwin", Getenv: getenv(vars...)},
		{Home: `C:\Users\u`, Dir: `C:\w\p`, GOOS: "windows", Getenv: getenv(`OPENCODE_CONFIG=C:\v\oc.json`,
			`OPENCODE_CONFIG_DIR=C:\v\oc`, `CLINE_MCP_SETTINGS_PATH=C:\v\cline.json`)},
	} {
		_, paths := opened(profiles(env).fs(), env)
		for _, r := range rows() {
			for _, pattern := range paths(r) {
				if r.Scope != config.LocalScope {
					fmt.Fprintf(&list, "%s: %s, %s: %s\n", env.GOOS, r.host, r.Scope, pattern)
				}
				file := strings.Replace(pattern, "*", "s", 1)
				files := profiles(env).with(file, r.example(file, "s", "x", env.Dir))
				t.Run(env.GOOS+" "+file, func(t *testing.T) { checkPlace(t, r, files, file, env) })
			}
		}
	}
	golden(t, "places", list.String())
}

// checkPlace checks a scan of one file, which defines s.
func checkPlace(t *testing.T, r row, files tree, file string, env Env) {
	t.Helper()
	if !r.InProject() {
		if r.Scope != config.LocalScope {
			env.Dir = "" // where Gemini CLI needs no trust
		}
		c := Scan(files.fs(), env)
		want := Source{Host: r.host, Scope: r.Scope, Path: file}
		if len(c.Servers) != 1 || c.Servers[0].Command != "x" || c.Servers[0].Source != want {
			t.Errorf("got %v", c)
		}
		return
	}
	slash := string(file[len(env.Dir)])
	if !strings.HasPrefix(file, env.Dir+slash) {
		return // above the working directory
	}
	files[env.Dir+slash+".git"+slash+"HEAD"] = ""
	for _, below := range []string{"", slash + "deep" + slash + "er"} {
		here := env
		here.Dir += below
		c := Scan(files.fs(), here)
		if len(c.Servers) != 0 || len(c.Problems) != 1 || c.Problems[0].State != Unapproved ||
			c.Problems[0].Server != "s" {
			t.Errorf("in %s: %v, %v", here.Dir, c.Servers, c.Problems)
		}
	}
}

// profiles is a home in which each edition of VS Code has a profile p.
func profiles(env Env) tree {
	files := tree{}
	for _, edition := range []string{"Code/User", "Code - Insiders/User", "VSCodium/User"} {
		dir := map[string]string{"linux": env.Home + "/.config/", "windows": env.Home + `\AppData\Roaming\`,
			"darwin": env.Home + "/Library/Application Support/"}[env.GOOS] + edition
		files[dir+"/globalStorage/storage.json"] = `{"userDataProfiles": [{"location": "p"}]}`
	}
	return files
}
