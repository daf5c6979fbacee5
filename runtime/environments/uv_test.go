package environments_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// needUV puts the real uv on the PATH. Its own files and variables are the test's.
func needUV(t *testing.T) (home string) {
	t.Helper()
	dir := os.Getenv("MCP_BRIDGE_TEST_UV")
	if dir == "" {
		t.Skip("MCP_BRIDGE_TEST_UV names no directory with uv; make wheels sets it")
	}
	if _, err := os.Stat(filepath.Join(dir, "uv")); errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no uv, since test/uv didn't reach PyPI")
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	home = t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return home
}

// TestUV locks packages of PyPI.
func TestUV(t *testing.T) {
	needUV(t)
	b := newBench(t)
	err := b.Add(t.Context(), "mine", []string{"tabulate", "python-dateutil>=2.8"})
	if err != nil && strings.Contains(err.Error(), "client error (Connect)") {
		t.Skipf("PyPI isn't reachable: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if env := b.build(t, "mine"); !strings.HasPrefix(env.String(), "mine (python-dateutil ") {
		t.Errorf("built is %v", env)
	}
}

// TestUVBuildsNothing has the real uv lock packages of an index of the test's own. A package that
// has only its source is refused whatever uv's settings say, and nothing of it is executed. A
// release that is too young isn't taken.
func TestUVBuildsNothing(t *testing.T) {
	home := needUV(t)
	ran := filepath.Join(t.TempDir(), "ran")
	files := map[string][]byte{
		"one-1.0-py3-none-any.whl": wheel("one", member{"one.py", ""}),
		"one-2.0-py3-none-any.whl": nil,
		"evil-1.0.tar.gz":          sdist(t, ran),
	}
	index := httptest.NewServer(simpleIndex(t, files, map[string]time.Duration{
		"one-1.0-py3-none-any.whl": 10 * 24 * time.Hour, "one-2.0-py3-none-any.whl": 5 * 24 * time.Hour,
		"evil-1.0.tar.gz": 10 * 24 * time.Hour}))
	defer index.Close()
	for _, tt := range []struct {
		name, settings, variable string
		packages                 []string
		want                     string // in the error; empty for one 1.0
	}{
		{name: "a release of five days", packages: []string{"one"}},
		{name: "one that only it satisfies", packages: []string{"one>=2"}, want: "one>=2"},
		{name: "only its source", packages: []string{"evil"}, want: "evil"},
		{name: "no-binary", settings: "no-binary = true\nno-build = false", packages: []string{"evil"},
			want: "evil"},
		{name: "no-binary of a package", settings: "no-binary-package = [\"evil\"]\n[pip]\nno-binary = [\"evil\"]",
			packages: []string{"evil"}, want: "evil"},
		{name: "another file", variable: "[pip]\nno-binary = [\"evil\"]\nexclude-newer = \"2099-01-01T00:00:00Z\"",
			packages: []string{"evil"}, want: "evil"},
		{name: "wheels are left alone", settings: "[pip]\nno-binary = [\"one\"]", packages: []string{"one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := filepath.Join(home, "uv", "uv.toml")
			if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.variable != "" {
				other := filepath.Join(t.TempDir(), "uv.toml")
				write(t, other, "index-url = \""+index.URL+"/simple\"\n"+tt.variable)
				t.Setenv("UV_CONFIG_FILE", other)
			}
			write(t, settings, "index-url = \""+index.URL+"/simple\"\n"+tt.settings)
			b := newBench(t)
			err := b.Add(t.Context(), "mine", tt.packages)
			if _, serr := os.Stat(ran); !errors.Is(serr, fs.ErrNotExist) {
				t.Fatal("a package's own code was executed")
			}
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "Connect") {
					t.Errorf("got %v, want an error about %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := b.Locked("mine"); err != nil || len(got) != 1 || got[0].Version != "1.0" {
				t.Errorf("locked is %v, %v; want one 1.0", got, err)
			}
		})
	}
}

// sdist makes the source of evil 1.0, whose build begins with making a file.
func sdist(t *testing.T, makes string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, content := range map[string]string{
		"PKG-INFO":       "Metadata-Version: 1.1\nName: evil\nVersion: 1.0\n",
		"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"evil\"\nbackend-path = [\".\"]\n",
		"evil.py":        fmt.Sprintf("open(%q, 'w')\n", makes),
	} {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "evil-1.0/" + name, Mode: 0o644, Size: int64(len(content))}
		err := w.WriteHeader(h)
		_, werr := w.Write([]byte(content))
		if err = errors.Join(err, werr); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// simpleIndex serves files as PEP 700 has it, each with its age.
func simpleIndex(t *testing.T, files map[string][]byte, ages map[string]time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if content, has := files[name]; has {
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
			return
		}
		type file struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Time     string            `json:"upload-time"`
		}
		var page struct {
			Meta  map[string]string `json:"meta"`
			Name  string            `json:"name"`
			Files []file            `json:"files"`
		}
		page.Meta, page.Name = map[string]string{"api-version": "1.1"}, name
		for f, content := range files {
			if strings.HasPrefix(f, name+"-") {
				page.Files = append(page.Files, file{f, "http://" + r.Host + "/files/" + f,
					map[string]string{"sha256": sum(content)},
					time.Now().Add(-ages[f]).UTC().Format("2006-01-02T15:04:05.000000Z")})
			}
		}
		if page.Files == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	})
}

// TestListOfPackages has lists that the user has written. A line that isn't a package's is refused
// before uv sees it, and a name that uv would take for a file's is written otherwise.
func TestListOfPackages(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one")
	list, lock := filepath.Join(b.cfg.Dir, "mine.in"), filepath.Join(b.cfg.Dir, "pylock.mine.toml")
	standIn(t, "cp '"+lock+"' $out; echo \"$list\" >'"+b.cfg.Dir+"/said'\n")
	for _, line := range []string{"--no-binary one", "--no-binary=:all:", "-r other.in", "-c other.in", "-e .",
		"./one", "one --no-binary one", "one==1 --config-settings=x=y", "one @ file:///tmp/one", "one \\",
		"https://x/one.zip"} {
		write(t, list, "two\n"+line+"\n")
		err := b.Lock(t.Context(), "mine")
		var known *text.HintError
		if !errors.As(err, &known) || !strings.Contains(err.Error(), "mine.in") ||
			!strings.Contains(known.Next, "pandas>=2") {
			t.Errorf("%s: got %v", line, err)
		}
	}
	write(t, list, "# mine\n\n  One[extra]>=1 # why\ntwo.zip\nx_y ; python_version > '3'\n")
	if err := b.Lock(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	want := "one[extra]>=1\ntwo-zip\nx-y ; python_version > '3'\n"
	if said := read(t, filepath.Join(b.cfg.Dir, "said")); strings.TrimSpace(said) != strings.TrimSpace(want) {
		t.Errorf("uv is told %q, want %q", said, want)
	}
}
