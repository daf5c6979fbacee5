package environments_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// member is a file of a wheel.
type member struct{ name, content string }

// wheel makes one of version 1.0.
func wheel(name string, members ...member) []byte {
	info := name + "-1.0.dist-info/"
	members = append(members, member{info + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n"},
		member{info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"})
	var record strings.Builder
	for _, m := range members {
		sum := sha256.Sum256([]byte(m.content))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", m.name, base64.RawURLEncoding.EncodeToString(sum[:]),
			len(m.content))
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range append(members, member{info + "RECORD", record.String() + info + "RECORD,,\n"}) {
		f, err := w.Create(m.name)
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(f, m.content) // to memory
	}
	_ = w.Close()
	return out.Bytes()
}

// bench is a place to build in: an index of wheels, and a directory of settings.
type bench struct {
	*environments.Environments
	cfg    environments.Config
	engine *fake
	index  *httptest.Server
	wheels map[string][]byte // by file name
}

func newBench(t *testing.T) *bench {
	b := &bench{engine: &fake{inUse: map[string]bool{}}, wheels: map[string][]byte{}}
	b.index = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, has := b.wheels[path.Base(r.URL.Path)]
		if !has {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(b.index.Close)
	b.cfg = environments.Config{Driver: b.engine, Images: []string{"base"}, User: "65534:65534",
		Owner: runtime.Self(), Dir: t.TempDir(), CacheDir: filepath.Join(t.TempDir(), "cache")}
	b.Environments = environments.New(b.cfg)
	return b
}

// define writes NAME.toml and a lock of wheels of the packages, which have one module each.
func (b *bench) define(t *testing.T, name, settings string, packages ...string) {
	t.Helper()
	lock := "lock-version = \"1.0\"\n"
	for _, p := range packages {
		lock += b.locked(p, wheel(p, member{p + ".py", "name = '" + p + "'\n"}))
	}
	write(t, filepath.Join(b.cfg.Dir, name+".toml"), settings)
	write(t, filepath.Join(b.cfg.Dir, "pylock."+name+".toml"), lock)
}

// defineSources is define with a wheel of these files.
func (b *bench) defineSources(t *testing.T, name string, files map[string]string) {
	t.Helper()
	var members []member
	for file, content := range files {
		members = append(members, member{file, content})
	}
	write(t, filepath.Join(b.cfg.Dir, name+".toml"), "")
	write(t, filepath.Join(b.cfg.Dir, "pylock."+name+".toml"),
		"lock-version = \"1.0\"\n"+b.locked(name, wheel(name, members...)))
}

// locked puts a wheel on the index, and returns its entry in a lock.
func (b *bench) locked(p string, content []byte) string {
	file := p + "-1.0-py3-none-any.whl"
	b.wheels[file] = content
	return fmt.Sprintf("[[packages]]\nname = %q\nversion = \"1.0\"\n[[packages.wheels]]\nurl = %q\nsize = %d\n"+
		"hashes = { sha256 = %q }\n", p, b.index.URL+"/"+file, len(content), sum(content))
}

// sum returns a digest as indexes and locks have it.
func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// build builds an environment, and fails the test where that fails.
func (b *bench) build(t *testing.T, name string) environments.Environment {
	t.Helper()
	env, err := b.Build(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// clean fails the test if a build has left anything but wheels and locks.
func (b *bench) clean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(b.cfg.CacheDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if n := f.Name(); n != "wheels" && n != "build.lock" && !strings.HasPrefix(n, "used-") {
			t.Errorf("%s is left", n)
		}
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unpack returns the regular files of a tar, in their order, and their contents.
func unpack(t *testing.T, text []byte) (names []string, content map[string]string) {
	t.Helper()
	content = map[string]string{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, content
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 315532800 {
			t.Errorf("%s has owner %d:%d and time %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		if h.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
			content[h.Name] = string(text)
		}
	}
}

func TestBuild(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "imports = ['one']\n[limits]\nmemory = '1g'\n", "one", "two")
	var steps []environments.Step
	env, err := b.Build(t.Context(), "mine", func(s environments.Step) { steps = append(steps, s) })
	if err != nil {
		t.Fatal(err)
	}
	b.clean(t)
	for i, s := range steps {
		if i > 0 && (s == steps[i-1] || s.Percent < steps[i-1].Percent) || s.Text == "" || s.Percent > 100 ||
			strings.HasPrefix(s.Text, "waiting") {
			t.Errorf("step %d is %+v", i, s)
		}
	}
	if steps[len(steps)-1].Percent != 100 {
		t.Errorf("the last step is %+v", steps[len(steps)-1])
	}
	listed, err := b.List(t.Context())
	if err != nil || len(listed) != 1 {
		t.Fatalf("got %v, %v", listed, err)
	}
	got := listed[0]
	if got.String() != "mine (one 1.0, two 1.0)" || got.Image != env.Image || got.Base != "local:base" ||
		got.Limits.Memory != 1<<30 || !slices.Equal(got.Imports, []string{"one"}) || got.Lock != env.Lock ||
		got.Layer != env.Layer || got.Bytecode != (environments.Bytecode{Sources: 2}) ||
		got.Size != env.Size || !got.Built.Equal(env.Built) || got.Outdated != "" ||
		got.Interpreter != env.Interpreter || !slices.Equal(got.Distributions[1].Imports, []string{"two"}) {
		t.Errorf("listed is\n%+v, and built was\n%+v", got, env)
	}
	layer := b.engine.layers[env.Image.ID]
	if env.Layer != "sha256:"+sum(layer) || env.Size != int64(len(layer)) {
		t.Errorf("the layer is said to have %d bytes and %s", env.Size, env.Layer)
	}
	_, files := unpack(t, layer)
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".pyc") {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) != 2 || !strings.HasPrefix(names[0], "opt/env/__pycache__/one.cpython-3") {
		t.Errorf("the layer has the bytecode %q", names)
	}
	runs := b.engine.runs
	if again := b.build(t, "mine"); again.Image != env.Image || b.engine.runs != runs {
		t.Errorf("what is built was built again, as %v", again.Image)
	}
}

// TestBytecode runs what was compiled: Python doesn't look at the source again.
func TestBytecode(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one")
	_, files := unpack(t, b.engine.layers[b.build(t, "mine").Image.ID])
	dir := t.TempDir()
	for name, content := range files {
		if strings.HasSuffix(name, ".py") {
			content = "name = 'from the source'\n"
		}
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), content)
	}
	var out bytes.Buffer
	s := runtimetest.Target{}.Spec("import sys; sys.path.append(sys.argv[1]); import one; print(one.name)",
		dir+"/opt/env")
	s.Image, s.Env = "any", []string{"PATH=" + os.Getenv("PATH")}
	if _, err := (runtimetest.Local{}).Run(t.Context(), s, runtime.Stdio{Stdin: strings.NewReader(""),
		Stdout: &out,
		Stderr: &out}); err != nil || out.String() != "one\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// TestProxy holds that wheels come through the proxy that pip is configured to use.
func TestProxy(t *testing.T) {
	b := newBench(t)
	var proxied atomic.Int32
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		proxied.Add(1)
		r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(b.index.URL, "http://")
	}})
	defer proxy.Close()
	t.Setenv("PIP_PROXY", proxy.URL) // read when something is built, not at the start
	b.define(t, "mine", "", "one")
	b.build(t, "mine")
	if proxied.Load() != 1 {
		t.Errorf("%d requests went through the proxy", proxied.Load())
	}
}

// TestSameBytes builds the same lock in two places, the second time with a cache that was filled
// and no index.
func TestSameBytes(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one", "two", "three")
	first := b.build(t, "mine")
	b.index.Close()
	b.engine.images = nil
	if second := b.build(t, "mine"); second.Layer != first.Layer ||
		!bytes.Equal(b.engine.layers[first.Image.ID], b.engine.layers[second.Image.ID]) {
		t.Errorf("the layer is %s, then %s", first.Layer, second.Layer)
	}
}

func TestRebuild(t *testing.T) {
	b := newBench(t)
	b.engine.bases = map[string]string{"base": "sha256:1"}
	b.define(t, "mine", "", "one")
	first := b.build(t, "mine")
	for _, tt := range []struct {
		want   string
		change func()
	}{
		{"its lock has changed", func() { b.define(t, "mine", "", "one", "two") }},
		{"its base image is another one now", func() { b.engine.bases["base"] = "sha256:2" }},
	} {
		tt.change()
		if all, err := b.List(t.Context()); err != nil || len(all) != 1 || all[0].Outdated != tt.want {
			t.Fatalf("got %+v, %v; want %s", all, err, tt.want)
		}
		env := b.build(t, "mine")
		if env.Image.ID == first.Image.ID || env.Outdated != "" || len(b.engine.images) != 1 {
			t.Errorf("built is %+v; the engine has %d images", env, len(b.engine.images))
		}
		first = env
	}
	// A container uses the old image: it stays for a while, and is no environment any more.
	b.engine.inUse[first.Image.ID] = true
	b.define(t, "mine", "", "one")
	b.build(t, "mine")
	if all, err := b.List(t.Context()); err != nil || len(all) != 1 || len(b.engine.images) != 2 {
		t.Errorf("got %v, %v, of %d images", all, err, len(b.engine.images))
	}
	delete(b.engine.inUse, first.Image.ID)
	b.define(t, "other", "", "one")
	b.build(t, "other")
	if len(b.engine.images) != 2 {
		t.Errorf("the engine has %d images", len(b.engine.images))
	}
}

// TestBound has room for two environments of three.
func TestBound(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.define(t, name, "", "one")
	}
	b.cfg.Limit = 2*b.build(t, "a").Size + 1
	b.Environments = environments.New(b.cfg)
	b.build(t, "b")
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(b.cfg.CacheDir, "used-a"), later, later); err != nil {
		t.Fatal(err)
	}
	b.build(t, "c")
	all, err := b.List(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "c" {
		t.Errorf("left are %v, %v; b was not used for longest", all, err)
	}
}
