//go:build unix

package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// tree makes files below a directory: their texts by their names, and links by their targets.
func tree(t *testing.T, dir string, files, links map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInputs: which paths are opened, under which names, and which are refused.
func TestInputs(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	one, two, outside := filepath.Join(base, "one"), filepath.Join(base, "two"), filepath.Join(base, "outside")
	tree(t, outside, map[string]string{"secret": "s"}, nil)
	tree(t, two, map[string]string{"data.csv": "two", "only": "o"}, nil)
	tree(t, one, map[string]string{"data.csv": "one", "sub/data.csv": "sub", "üñí 数.txt": "u", ".hidden": "h",
		"a\nb": "n", "e": ""}, map[string]string{
		"inner": "data.csv", "absolute": filepath.Join(one, "data.csv"), "other": filepath.Join(two, "only"),
		"up":  "../one/data.csv",
		"out": filepath.Join(outside, "secret"), "outdir": outside, "loop": "loop", "dangling": "nothing",
		"root": "/",
	})
	tree(t, base, nil, map[string]string{"linked": one, "oneish": outside})
	if err := syscall.Mkfifo(filepath.Join(one, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := NewInputs([]string{filepath.Join(base, "linked"), two})
	if err != nil {
		t.Fatal(err)
	}
	refused := "is not below a directory whose files may be read, which are: " + in.Dirs()
	for _, tc := range []struct {
		name  string
		paths []string
		want  map[string]string
		err   string
	}{
		{"relative", []string{"data.csv"}, map[string]string{"data.csv": "one"}, ""},
		{"of the second directory", []string{"only"}, map[string]string{"only": "o"}, ""},
		{"absolute", []string{filepath.Join(two, "data.csv")}, map[string]string{"data.csv": "two"}, ""},
		{"through the link to a directory", []string{filepath.Join(base, "linked", "data.csv")},
			map[string]string{"data.csv": "one"}, ""},
		{"below what a directory is", []string{filepath.Join(one, "data.csv")},
			map[string]string{"data.csv": "one"}, ""},
		{"same names", []string{"data.csv", "sub/data.csv", filepath.Join(two, "data.csv")},
			map[string]string{"data.csv": "one", "data-2.csv": "sub", "data-3.csv": "two"}, ""},
		{"odd names", []string{"üñí 数.txt", ".hidden", "a\nb", "e"},
			map[string]string{"üñí 数.txt": "u", ".hidden": "h", "a_b": "n", "e": ""}, ""},
		{"links within", []string{"inner", "absolute", "other", "up"},
			map[string]string{"inner": "one", "absolute": "one", "other": "o", "up": "one"}, ""},
		{"dots within", []string{"sub/../data.csv"}, map[string]string{"data.csv": "one"}, ""},
		{"a dot behind a file", []string{"data.csv/."}, map[string]string{"data.csv": "one"}, ""},
		{"dots and slashes behind a file", []string{"./data.csv/././"}, map[string]string{"data.csv": "one"}, ""},
		{"none", nil, map[string]string{}, ""},
		{"a link outside", []string{"out"}, nil, "out " + refused},
		{"below a link outside", []string{"outdir/secret"}, nil, refused},
		{"dots", []string{"../outside/secret"}, nil, refused},
		{"dots behind a link", []string{one + "/outdir/../outside/secret"}, nil, refused},
		{"absolute outside", []string{filepath.Join(outside, "secret")}, nil, refused},
		{"outside and not there", []string{filepath.Join(outside, "nothing")}, nil, refused},
		{"a directory whose name begins alike", []string{filepath.Join(base, "oneish", "secret")}, nil, refused},
		{"through the root", []string{"root" + outside + "/secret"}, nil, refused},
		{"the processes' own", []string{"/proc/self/environ"}, nil, refused},
		{"a directory itself", []string{one}, nil, refused},
		{"a directory within", []string{"sub"}, nil, "sub is a directory"},
		{"a pipe", []string{"pipe"}, nil, "pipe is no plain file"},
		{"a loop", []string{"loop"}, nil, "there is no file loop below"},
		{"a dangling link", []string{"dangling"}, nil, "there is no file dangling below"},
		{"not there", []string{"nothing"}, nil, "there is no file nothing below"},
		{"NUL", []string{"a\x00b"}, nil, "holds a NUL"},
		{"one of two", []string{"data.csv", "out"}, nil, refused},
		{"too many", make([]string, maxInputs+1), nil, "at most 100"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opened, closeAll, err := in.Open(tc.paths)
			defer closeAll()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) ||
					strings.Contains(err.Error(), "/outside/nothing: ") {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			got := map[string]string{}
			for _, o := range opened {
				text, rerr := io.ReadAll(o.Data)
				if rerr != nil || int64(len(text)) != o.Size {
					t.Errorf("%s: %d bytes of %d, %v", o.Name, len(text), o.Size, rerr)
				}
				got[o.Name] = string(text)
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestDevices aren't opened, wherever they are.
func TestDevices(t *testing.T) {
	in, err := NewInputs([]string{"/dev"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/dev/null", "zero"} {
		if _, closeAll, err := in.Open([]string{p}); err == nil || !strings.Contains(err.Error(), "no plain file") {
			closeAll()
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestInputsAreBounded(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(sandbox.MaxInputs/2 + 1); err != nil { // a hole
			t.Fatal(err)
		}
		f.Close()
	}
	in, err := NewInputs([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	_, closeAll, err := in.Open([]string{"a", "b"})
	closeAll()
	if err == nil || err.Error() != "with b the files take more than 64 MB, which is all that can be copied" {
		t.Errorf("got %v", err)
	}
	if _, err := NewInputs([]string{"data"}); err == nil {
		t.Error("a relative directory is taken")
	}
}

// TestInputNames: one part of a path, of bounded length, each of them once.
func TestInputNames(t *testing.T) {
	taken := map[string]bool{}
	long := strings.Repeat("ä", 200)
	for _, tc := range []struct{ path, want string }{
		{"/a/b.csv", "b.csv"}, {"b.csv", "b-2.csv"}, {"b-2.csv", "b-2-2.csv"}, {"x\x1b\u202e\xff", "x___"},
		{long + ".csv", strings.Repeat("ä", 98) + ".csv"}, {long + ".csv", strings.Repeat("ä", 98) + "-2.csv"},
		{"a." + long, "a." + strings.Repeat("ä", 49)},
	} {
		if got := inputName(tc.path, taken); got != tc.want || len(got) > 255 {
			t.Errorf("%.20q: got %q, want %q", tc.path, got, tc.want)
		}
	}
	opened := []sandbox.Input{{Name: "b.csv"}, {Name: "b-2.csv"}}
	if diff := cmp.Diff([]string{"c/b.csv was copied to /workspace/in/b-2.csv"},
		Renamed([]string{"a/b.csv/.", "c/b.csv"}, opened)); diff != "" {
		t.Error(diff)
	}
}
