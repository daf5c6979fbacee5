package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// wheelhouse is an index with one wheel, an environment of it, and a cache.
type wheelhouse struct {
	t     *testing.T
	name  string // of the environment, which no other test has
	dirs  []string
	index *httptest.Server
	cache string
	lock  string // file
}

// member is a file of a wheel that may be there twice, or be none.
type member struct {
	name, content string
	mode          fs.FileMode
}

// newWheelhouse makes a wheel of big 1.0 from the files, by name, and what else it is to have.
func newWheelhouse(t *testing.T, files map[string]string, more ...member) *wheelhouse {
	t.Helper()
	const file = "big-1.0-py3-none-any.whl"
	lock := filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()), "test-wheelhouse.lock")
	free, err := filelock.Acquire(t.Context(), lock) // code that asks for big has any test's environment
	must(t, err)
	t.Cleanup(free)
	content := wheelOf(t, files, more...)
	s := &wheelhouse{t: t, name: "t" + strings.ToLower(rand.Text()[:12]), cache: t.TempDir()}
	s.index = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.index.Close)
	dir := t.TempDir()
	s.dirs = []string{"MCP_BRIDGE_ENVS=" + dir, "XDG_CACHE_HOME=" + s.cache}
	sum := sha256.Sum256(content)
	must(t, os.WriteFile(filepath.Join(dir, s.name+".toml"), nil, 0o600))
	s.lock = filepath.Join(dir, "pylock."+s.name+".toml")
	must(t, os.WriteFile(s.lock, fmt.Appendf(nil, "lock-version = \"1.0\"\n[[packages]]\nname = \"big\"\n"+
		"version = \"1.0\"\n[[packages.wheels]]\nurl = %q\nsize = %d\nhashes = { sha256 = %q }\n",
		s.index.URL+"/"+file, len(content), hex.EncodeToString(sum[:])), 0o600))
	t.Cleanup(func() { _ = s.command("env", "remove", s.name).Run() }) // it may be gone
	return s
}

// wheelOf makes a wheel of big 1.0.
func wheelOf(t *testing.T, files map[string]string, more ...member) []byte {
	t.Helper()
	const info = "big-1.0.dist-info/"
	if files[info+"WHEEL"] == "" {
		files[info+"WHEEL"] = "Wheel-Version: 1.0\nTag: py3-none-any\n"
	}
	var all []member
	for name, content := range files {
		all = append(all, member{name: name, content: content})
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	all = append(all, more...)
	record := ""
	for _, m := range all {
		sum := sha256.Sum256([]byte(m.content))
		record += m.name + ",sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]) + ",\n"
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range append(all, member{name: info + "RECORD", content: record + info + "RECORD,,\n"}) {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(cmp.Or(m.mode, 0o644))
		w, err := z.CreateHeader(h)
		must(t, err)
		_, err = io.WriteString(w, m.content)
		must(t, err)
	}
	must(t, z.Close())
	return b.Bytes()
}

// command is the real program with the wheelhouse's directories.
func (s *wheelhouse) command(args ...string) *exec.Cmd {
	return with(command(s.t, nil, args...), s.dirs...)
}

// says returns what a command prints, and fails the test if it fails.
func (s *wheelhouse) says(args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%q: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// state returns what env list knows of the environment.
func (s *wheelhouse) state() environmentJSON {
	s.t.Helper()
	var rows []environmentJSON
	must(s.t, json.Unmarshal([]byte(s.says("env", "list", "--json")), &rows))
	i := slices.IndexFunc(rows, func(r environmentJSON) bool { return r.Name == s.name })
	if i < 0 {
		s.t.Fatalf("%s is not listed", s.name)
	}
	return rows[i]
}

// run runs code in a container of the environment's image.
func (s *wheelhouse) run(code string) (stdout, stderr string, err error) {
	cmd := with(s.command("run", "-c", code), "MCP_BRIDGE_IMAGE=localhost/mcp-bridge/env-"+s.name+":latest",
		"MCP_BRIDGE_PULL=never")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// clean fails the test if builds have left files.
func (s *wheelhouse) clean() {
	s.t.Helper()
	if left := s.left(); len(left) > 0 {
		s.t.Errorf("left are %q", left)
	}
}

// left returns the files of builds, locks and downloads under way.
func (s *wheelhouse) left() (all []string) {
	s.t.Helper()
	for _, pattern := range []string{"l*", "wheels/*.part"} {
		left, err := filepath.Glob(filepath.Join(s.cache, "mcp-bridge", "environments", pattern))
		must(s.t, err)
		all = append(all, left...)
	}
	return all
}

// inert are files of a wheel that would do something if the wheel were installed.
func inert() map[string]string {
	const shout = "import sys; sys.stderr.write('SHOUT')\n"
	return map[string]string{
		"big/__init__.py": "value = 42\n", "big/broken.py": "def (:\n",
		"big/__pycache__/__init__.cpython-313.pyc": "junk",
		"big/big.pth": shout, "big.pth": shout, "big-1.0.data/scripts/big": "#!python\n" + shout,
		"big-1.0.data/data/etc/passwd": "root::0:0::/:", "big-1.0.data/headers/big.h": "x",
		"big-1.0.dist-info/entry_points.txt": "[console_scripts]\nbig = big:main\n",
	}
}

// TestEnvironmentOnEngine builds an environment on each engine: what a wheel has beside its
// packages does nothing, the image's Python takes the bytecode, what was exported is an environment
// once it is loaded, and a filled cache gives the same layer without an index.
func TestEnvironmentOnEngine(t *testing.T) {
	needTime(t)
	engine := anyEngine(t)
	s := newWheelhouse(t, inert())
	holds(t, s.says("env", "build", s.name), "env-"+s.name, "1 package,", "1 of 2 sources without bytecode")
	first := s.state()
	if first.State != "built" || first.Packages["big"] != "1.0" ||
		!strings.HasPrefix(first.Python, "CPython 3.") {
		t.Errorf("listed is %+v", first)
	}
	stdout, stderr, err := s.run("import os, subprocess, sys\nsys.path.append('/opt/env')\nimport big\n" +
		"print(big.value, os.path.exists(big.__cached__), os.stat(big.__file__).st_uid)\n" +
		"print(sorted(os.path.relpath(os.path.join(d, f), '/opt/env') for d, _, fs in os.walk('/opt/env') " +
		"for f in fs\n" +
		"             if not f.endswith('.pyc')))\n" +
		"print(sum(f.endswith('.pyc') for d, _, fs in os.walk('/opt/env') for f in fs))\n" +
		"print(repr(subprocess.run([sys.executable, '-c', ''], capture_output=True, text=True).stderr))")
	want := "42 True 0\n['big-1.0.dist-info/RECORD', 'big-1.0.dist-info/WHEEL', " +
		"'big-1.0.dist-info/entry_points.txt'," +
		" 'big/__init__.py', 'big/big.pth', 'big/broken.py']\n1\n''\n"
	if err != nil || stdout != want || strings.Contains(stderr, "SHOUT") {
		t.Errorf("a container sees %s, %s, %v; want %s", stdout, stderr, err, want)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	s.says("env", "export", s.name, "--oci", file)
	checkArchive(t, file)
	s.says("env", "remove", s.name)
	if got := s.state(); got.State != "not built" {
		t.Errorf("after its removal it is %+v", got)
	}
	s.index.Close()
	if out, err := exec.Command(engine, "load", "-i", file).CombinedOutput(); err != nil {
		t.Fatalf("%s load: %v: %s", engine, err, out)
	}
	if got := s.state(); got.State != "built" || got.Layer != first.Layer {
		t.Errorf("loaded is %+v; exported was %+v", got, first)
	}
	stdout, stderr, err = s.run("import sys\nsys.path.append('/opt/env')\nimport big\nprint(big.value)")
	if err != nil || stdout != "42\n" {
		t.Errorf("a container of what was loaded prints %q, %q, %v", stdout, stderr, err)
	}
	s.says("env", "remove", s.name)
	s.says("env", "build", s.name)
	if second := s.state(); second.Layer != first.Layer || second.Layer == "" {
		t.Errorf("the layer is %s, then %s", first.Layer, second.Layer)
	}
	s.clean()
}

// TestBadWheelsOnEngine has the twelve bad wheels of issue 16. Ten are refused, and no image is
// made. The other two become images in whose containers they do nothing.
func TestBadWheelsOnEngine(t *testing.T) {
	needTime(t)
	anyEngine(t)
	const shout = "import sys; sys.stderr.write('SHOUT'); print('SHOUT')\n"
	code := func() map[string]string { return map[string]string{"big/__init__.py": "value = 42\n"} }
	replaced := func(pattern, by string) func(string) string {
		return func(lock string) string { return regexp.MustCompile(pattern).ReplaceAllString(lock, by) }
	}
	for _, tt := range []struct {
		name string
		file member              // beside the package
		lock func(string) string // changes the lock
		want string              // of the error; empty for one that is inert
	}{
		{name: "hash", lock: replaced(`"[0-9a-f]{64}"`, `"`+strings.Repeat("0", 64)+`"`),
			want: "the lock says 0000"},
		{name: "size", lock: replaced(`size = \d+`, "size = 7"), want: "the lock says 7"},
		{name: "dots", file: member{name: "big/../../x.py"}, want: "below the wheel's root"},
		{name: "absolute path", file: member{name: "/etc/passwd"}, want: "below the wheel's root"},
		{name: "symlink", file: member{name: "big/x", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777},
			want: "no regular file"},
		{name: "duplicate", file: member{name: "big/__init__.py", content: shout}, want: "twice"},
		{name: "bomb", file: member{name: "big/zeros", content: strings.Repeat("\x00", 32<<20)}, want: "zip bomb"},
		{name: "sdist only", lock: replaced(`(?s)\[\[packages.wheels.*`,
			`sdist = { url = "https://x/big-1.0.tar.gz" }`),
			want: "no wheel of it"},
		{name: "wrong tag", file: member{name: "big-1.0.dist-info/WHEEL",
			content: "Wheel-Version: 1.0\nTag: cp313-cp313-win_amd64\n"}, want: "doesn't fit this interpreter"},
		{name: "sitecustomize", file: member{name: "sitecustomize.py", content: shout}, want: "at every start"},
		{name: "pth that prints", file: member{name: "big.pth", content: shout}},
		{name: "script", file: member{name: "big-1.0.data/scripts/python3", content: "#!/bin/sh\necho SHOUT\n",
			mode: 0o755}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, more := code(), []member{tt.file}
			if tt.file.name == "" || strings.HasSuffix(tt.file.name, "WHEEL") {
				files[tt.file.name], more = tt.file.content, nil
				delete(files, "")
			}
			s := newWheelhouse(t, files, more...)
			if tt.lock != nil {
				lock, err := os.ReadFile(s.lock)
				must(t, err)
				must(t, os.WriteFile(s.lock, []byte(tt.lock(string(lock))), 0o600))
			}
			out, err := s.command("env", "build", s.name).CombinedOutput()
			s.clean()
			if tt.want != "" {
				if err == nil || !strings.Contains(string(out), tt.want) || s.state().State != "not built" {
					t.Errorf("got %v, %s, want %q, and that it isn't built", err, out, tt.want)
				}
				return
			}
			stdout, stderr, rerr := s.run("import os, subprocess, sys\nsys.path.append('/opt/env')\nimport big\n" +
				"print(big.value, subprocess.run(['python3', '-c', ''], capture_output=True, text=True).stdout,\n" +
				"      [f for d, _, fs in os.walk('/opt/env') for f in fs if 'SHOUT' in open(os.path.join(d, f),\n" +
				"       errors='replace').read()])")
			if err != nil || rerr != nil || stdout != "42  []\n" || strings.Contains(stderr, "SHOUT") {
				t.Errorf("%v, %s: a container sees %s, %s, %v", err, out, stdout, stderr, rerr)
			}
		})
	}
}

// checkArchive fails the test unless a file is an archive of an image.
func checkArchive(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	found := false
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		found = found || h.Name == "oci-layout" || h.Name == "manifest.json"
	}
	if !found {
		t.Error("the archive has neither an OCI layout nor docker's manifest")
	}
}

// TestKilledBuild kills builds with SIGKILL at each of their parts. Nothing is left, and no image
// is there but a whole one.
func TestKilledBuild(t *testing.T) {
	needTime(t)
	needEngine(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("big/m%d.py", i)] = strings.Repeat(fmt.Sprintf("x%d = [%d, 'text', (1, 2)]\n", i, i), 200)
	}
	noise := make([]byte, 20<<20)
	_, _ = rand.Read(noise) // it never fails
	files["big/noise.bin"] = string(noise)
	s := newWheelhouse(t, files)
	for _, part := range []string{"asking", "fetching", "unpacking", "compiling", "copying", "making"} {
		t.Run(part, func(t *testing.T) {
			before, mark := runtimeDirs(t), fmt.Sprintf("%s=%s", markVar, rand.Text())
			cmd := with(s.command("env", "build", s.name), mark)
			stderr, err := cmd.StderrPipe()
			must(t, err)
			must(t, cmd.Start())
			killed := false
			for lines := bufio.NewScanner(stderr); !killed && lines.Scan(); {
				killed = strings.HasPrefix(lines.Text(), part)
			}
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			if !killed {
				t.Errorf("nothing was said of %s", part)
			}
			noneLeft(t, []int{cmd.Process.Pid}, before, mark)
			within(t, "no file is left", func() bool {
				return len(s.left()) == 0
			})
			if got := s.state(); got.State == "built" { // the engine had all of it
				if out, errs, err := s.run("import sys; sys.path.append('/opt/env'); import big.m299; " +
					"print(big.m299.x299)"); err != nil ||
					!strings.HasPrefix(out, "[299") {
					t.Errorf("an image is there, and it isn't whole: %s, %s, %v", out, errs, err)
				}
				s.says("env", "remove", s.name)
			}
		})
	}
	s.says("env", "build", s.name)
	s.clean()
}
