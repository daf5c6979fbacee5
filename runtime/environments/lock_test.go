package environments_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// standIn puts a uv on the PATH that is a shell script. $out is where its lock is to be.
func standIn(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	head := "#!/bin/sh\nlist=$(cat)\nargs=\"$*\"\nwhile [ \"$1\" != --output-file ]; do shift; done\nout=$2\n"
	if err := os.WriteFile(filepath.Join(dir, "uv"), []byte(head+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestAdd(t *testing.T) {
	b := newBench(t)
	b.define(t, "template", "", "one", "two")
	lock := filepath.Join(b.cfg.Dir, "pylock.template.toml")
	t.Setenv("SECRET", "hidden")
	t.Setenv("UV_INDEX_STRATEGY", "first-index")
	t.Setenv("UV_CONFIG_FILE", "/dev/null")
	t.Setenv("UV_DEFAULT_INDEX", "https://overruled.example/simple")
	t.Setenv("UV_EXTRA_INDEX_URL", "https://overruled.example/more")
	t.Setenv("PIP_PROXY", "proxy.example:3128")
	b.Follow("https://index.example/simple", 0) // as a policy that was edited
	standIn(t, "cp '"+lock+"' $out; echo \"$args\n$list\n$(env)\" >'"+b.cfg.Dir+"/said'\n")
	if err := b.Add(t.Context(), "mine", []string{"one", "two>=1"}); err != nil {
		t.Fatal(err)
	}
	said := read(t, filepath.Join(b.cfg.Dir, "said"))
	for _, want := range []string{"pip compile ", "--only-binary :all:", "--exclude-newer 2",
		"--python-version 3.",
		"--python-platform ", "-manylinux", "\none\ntwo>=1\n", "UV_INDEX_STRATEGY=first-index",
		"UV_PYTHON_DOWNLOADS=never", "UV_SYSTEM_PYTHON=1",
		"UV_DEFAULT_INDEX=https://index.example/simple", "HTTPS_PROXY=http://proxy.example:3128"} {
		if !strings.Contains(said, want) {
			t.Errorf("uv is told %s; %q is missing", said, want)
		}
	}
	if strings.Contains(said, "hidden") || strings.Contains(said, "overruled") ||
		strings.Contains(said, "UV_CONFIG_FILE") {
		t.Errorf("uv is given the whole environment, or another index: %s", said)
	}
	t.Setenv("PIP_PROXY", "") // the downloads of a build have TestProxy
	b.build(t, "mine")
	if err := b.Add(t.Context(), "mine", []string{"One>=1 ", "three"}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(b.cfg.Dir, "mine.in")); got != "One>=1\ntwo>=1\nthree\n" {
		t.Errorf("the list is %q", got)
	}
	if err := b.Lock(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
	if err := b.Delete("mine"); err != nil {
		t.Error(err)
	}
	b.clean(t)
}

// TestCantLock has what keeps a lock from being made. What was there stays.
func TestCantLock(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one")
	write(t, filepath.Join(b.cfg.Dir, "mine.in"), "one\n")
	before := read(t, filepath.Join(b.cfg.Dir, "pylock.mine.toml"))
	for _, tt := range []struct {
		name, environment, script, want, hint string
		packages                              []string
	}{
		{"unknown package", "mine", "echo 'nine was not found in the registry' >&2; exit 1",
			"nine was not found", "", []string{"nine"}},
		{"no wheel", "mine", "echo 'lock-version = \"1.0\"\n[[packages]]\nname=\"one\"' >$out", "no wheel of it",
			"", []string{"one"}},
		{"no lock", "mine", "echo >$out", "can't be used", "", []string{"one"}},
		{"a URL", "mine", "", "only packages by name", "", []string{"x @ https://example.org/x.whl"}},
		{"an option", "mine", "", "is no requirement", "", []string{"--index-url=x"}},
		{"data", "data", "", "comes with the program", "another name", []string{"one"}},
		{"a bad name", "../mine", "", "small letters", "", []string{"one"}},
		{"nothing listed", "other", "", "there is no environment", "env add", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			standIn(t, tt.script)
			err := b.Lock(t.Context(), tt.environment)
			if tt.packages != nil {
				err = b.Add(t.Context(), tt.environment, tt.packages)
			}
			var hinted interface{ Hint() string }
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				tt.hint != "" && (!errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), tt.hint)) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			b.clean(t)
			if read(t, filepath.Join(b.cfg.Dir, "mine.in")) != "one\n" ||
				read(t, filepath.Join(b.cfg.Dir, "pylock.mine.toml")) != before {
				t.Error("the list or the lock has changed")
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	err := b.Lock(t.Context(), "mine")
	var e *text.HintError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "uv") || !strings.Contains(e.Next, "install it") {
		t.Errorf("without uv: %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
