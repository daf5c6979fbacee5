package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestLocalImage: no registry is asked for an image whose name begins with localhost/.
func TestLocalImage(t *testing.T) {
	const local = "localhost/mine:1"
	for _, policy := range []sandbox.PullPolicy{sandbox.PullMissing, sandbox.PullAlways, sandbox.PullNever} {
		for _, images := range []map[string]runtime.Image{nil, {local: has("1")}} {
			e := &engine{images: images, pulls: func(ref string, _ runtime.Progress) (runtime.Image, error) {
				return runtime.Image{Ref: ref, ID: "sha256:new", Arch: "amd64"}, nil
			}}
			s := prepareWith(t, e, func(c *sandbox.Config) { c.Images, c.Pull = []string{local}, policy })
			_, i, _, err := s.Look(t.Context(), nil)
			var missing *runtime.ImageError
			switch {
			case images == nil && (!errors.As(err, &missing) || missing.Ref != local ||
				!strings.Contains(missing.Hint(), "mcp-bridge image build")):
				t.Errorf("%s, not there: got %v", policy, err)
			case images != nil && (err != nil || i.ID != has("1").ID):
				t.Errorf("%s, there: got %+v, %v", policy, i, err)
			}
			if n := e.count("pull " + local); n != 0 {
				t.Errorf("%s: pulled %d times", policy, n)
			}
		}
	}
}

func TestPullPolicy(t *testing.T) {
	registry := func(ref string, p runtime.Progress) (runtime.Image, error) {
		p("pulling " + ref)
		return runtime.Image{Ref: ref, ID: "sha256:new", Arch: "amd64"}, nil
	}
	tests := []struct {
		name   string
		policy sandbox.PullPolicy
		images map[string]runtime.Image
		pulls  func(string, runtime.Progress) (runtime.Image, error)
		id     string
		pulled int
		want   string // in the error
		hint   string
	}{
		{"missing, and there", sandbox.PullMissing, map[string]runtime.Image{"first": has("1")}, registry,
			has("1").ID, 0, "", ""},
		{"missing, and the second is there", sandbox.PullMissing, map[string]runtime.Image{"second": has("2")},
			registry, has("2").ID, 0, "", ""},
		{"missing, and not there", sandbox.PullMissing, nil, registry, "sha256:new", 1, "", ""},
		{"the default is missing", "", nil, registry, "sha256:new", 1, "", ""},
		{"missing, and no registry", sandbox.PullMissing, nil, nil, "", 1, "can't be reached", "image build"},
		{"never, and there", sandbox.PullNever, map[string]runtime.Image{"second": has("2")}, registry, has("2").ID,
			0, "", ""},
		{"never, and not there", sandbox.PullNever, nil, registry, "", 0, "MCP_BRIDGE_PULL=never", "image pull"},
		{"always, and there", sandbox.PullAlways, map[string]runtime.Image{"first": has("1")}, registry,
			"sha256:new", 1, "", ""},
		{"always, and no registry", sandbox.PullAlways, map[string]runtime.Image{"first": has("1")}, nil, "", 1,
			"can't be reached", "image build"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &engine{images: tt.images, pulls: tt.pulls}
			s := prepareWith(t, e, func(c *sandbox.Config) {
				c.Images, c.Pull = []string{"first", "second"},
					tt.policy
			})
			_, i, _, err := s.Look(t.Context(), nil)
			if tt.want == "" && (err != nil || i.ID != tt.id) {
				t.Errorf("got %+v, %v; want id %s", i, err, tt.id)
			}
			var image *runtime.ImageError
			if tt.want != "" && (!errors.As(err, &image) || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(image.Hint(), tt.hint)) {
				t.Errorf("got %v, want an *ImageError with %q and the hint %q", err, tt.want, tt.hint)
			}
			if n := e.count("pull first"); n != tt.pulled {
				t.Errorf("pulled %d times, want %d", n, tt.pulled)
			}
		})
	}
	cfg := config()
	cfg.Pull = "sometimes"
	if _, err := sandbox.New(&engine{}, cfg); err == nil {
		t.Error("a policy that doesn't exist is taken")
	}
}

// TestUnfit: each reason why an image that is there can't be used.
func TestUnfit(t *testing.T) {
	digest := "sha256:" + strings.Repeat("d", 64)
	pinnedRef := "python@" + digest
	amd64 := runtime.Facts{Arch: "amd64"}
	says := func(line string) func(runtime.Stdio) (runtime.Exit, error) {
		return func(std runtime.Stdio) (runtime.Exit, error) { return probed(std, line) }
	}
	ends := func(exit runtime.Exit, stderr string, err error) func(runtime.Stdio) (runtime.Exit, error) {
		return func(std runtime.Stdio) (runtime.Exit, error) {
			fmt.Fprintln(std.Stderr, stderr)
			return exit, err
		}
	}
	other := has("1")
	other.Digest = "sha256:" + strings.Repeat("e", 64)
	right := has("1")
	right.Digest = digest
	byID := runtime.Image{ID: digest}
	arm := has("1")
	arm.Arch = "arm64"
	small := has("1")
	small.Arch = "386"
	tests := []struct {
		name  string
		ref   string
		image runtime.Image
		facts runtime.Facts
		probe func(runtime.Stdio) (runtime.Exit, error)
		want  string // in the error; empty: none
	}{
		{"fit", "x", has("1"), amd64, nil, ""},
		{"of the pinned digest", pinnedRef, right, amd64, nil, ""},
		{"of the pinned id", pinnedRef, byID, amd64, nil, ""},
		{"of another digest", pinnedRef, other, amd64, nil,
			"another one under that name: its digest is " + other.Digest},
		{"of no digest", pinnedRef, has("1"), amd64, nil, "its digest is not known"},
		{"of another architecture", "x", arm, amd64, nil, "made for arm64, and the engine's machine is amd64"},
		{"of an architecture that runs there", "x", small, amd64, nil, ""},
		{"of another architecture, as the kernel says", "x", has("1"), runtime.Facts{},
			ends(runtime.Exit{Code: 1}, "exec /usr/bin/python3: exec format error", nil), "another architecture"},
		{"without python, says crun", "x", has("1"), amd64, ends(runtime.Exit{}, "", errors.New("crun: executable file `python3` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found")), "no python3"},
		{"without python, says runc", "x", has("1"), amd64, ends(runtime.Exit{}, "", errors.New(`runc create failed: unable to start container process: exec: "python3": executable file not found in $PATH`)), "no python3"},
		{"without python, by code", "x", has("1"), amd64, ends(runtime.Exit{Code: 127}, "", nil), "no python3"},
		{"with Python 3.9", "x", has("1"), amd64, says("3.9.19 1"),
			"its Python is 3.9.19, and the guest needs 3.10"},
		{"with Python 2", "x", has("1"), amd64, says("2.7.18 1"), "its Python is 2.7.18"},
		{"with Python 4", "x", has("1"), amd64, says("4.0.0 1"), ""},
		{"with something else", "x", has("1"), amd64, says("hello"), "did not start Python"},
		{"with a Python that fails", "x", has("1"), amd64, ends(runtime.Exit{Code: 1}, "Fatal Python error", nil),
			"Fatal Python error"},
		{"without ctypes", "x", has("1"), amd64, says("3.12.0 0"), "no ctypes"},
		{"without ctypes, under a strict profile", "x", has("1"), runtime.Facts{Arch: "amd64", Seccomp: "strict"},
			says("3.12.0 0"), ""},
		{"without ctypes, under the engine's own profile", "x", has("1"),
			runtime.Facts{Arch: "amd64", Seccomp: "engine"}, says("3.12.0 0"), "no ctypes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &engine{facts: tt.facts, images: map[string]runtime.Image{tt.ref: tt.image}, probe: tt.probe}
			s := prepareWith(t, e, func(c *sandbox.Config) { c.Images = []string{tt.ref} })
			err := look(s, t.Context(), nil)
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var hinted interface{ Hint() string }
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &hinted) ||
				hinted.Hint() == "" {
				t.Errorf("got %v, want %q in it and a hint", err, tt.want)
			}
		})
	}
	t.Run("the engine fails", func(t *testing.T) {
		// the words alone don't make it the image's fault
		gone := &runtime.UnavailableError{Engine: "fake", Err: errors.New("python3 not found")}
		e := &engine{images: map[string]runtime.Image{"any": has("1")}, probe: ends(runtime.Exit{}, "", gone)}
		var unfit *sandbox.UnfitError
		if err := look(prepareWith(t, e, nil), t.Context(), nil); !errors.Is(err, gone) || errors.As(err, &unfit) {
			t.Errorf("got %v, want the engine's error", err)
		}
	})
}

// TestProbeIsRemembered: good answers on disk, bad ones until the end, and none where it may have
// been the engine's fault.
func TestProbeIsRemembered(t *testing.T) {
	fresh := func() *engine { return &engine{images: map[string]runtime.Image{"any": has("1")}} }
	prepare := func(t *testing.T, e *engine, dir string) (sandbox.Python, error) {
		t.Helper()
		s := prepareWith(t, e, func(c *sandbox.Config) { c.CacheDir = dir })
		_, _, p, err := s.Look(t.Context(), nil)
		if cerr := s.Close(); cerr != nil {
			t.Error(cerr)
		}
		return p, err
	}
	t.Run("on disk", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new", "mcp-bridge")
		for i, want := range []int{1, 0} {
			e := fresh()
			if p, err := prepare(t, e, dir); err != nil || p != (sandbox.Python{Version: "3.12.1", Ctypes: true}) ||
				e.count("run") != want {
				t.Errorf("bridge %d: got %+v, %v after %d probes, want %d", i, p, err, e.count("run"), want)
			}
		}
		path := filepath.Join(dir, "images.json")
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", fi, err)
		}
		if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
			t.Errorf("got %v, %v; want one file", names, err)
		}
		e := fresh()
		e.images["any"] = has("2") // the name means another one now
		if _, err := prepare(t, e, dir); err != nil || e.count("run") != 1 {
			t.Errorf("another image: %v after %d probes", err, e.count("run"))
		}
		for name, garbage := range map[string]string{
			"no JSON": "{", "another type": "[1]", "empty": "", "null": "null",
			"too old":    `{"fake ` + has("1").ID + `":{"python":"3.2.1"}}`,
			"no version": `{"fake ` + has("1").ID + `":{"version":"../../etc"}}`,
			"huge":       `{"x":"` + strings.Repeat("x", 1<<20) + `"}`,
		} {
			if err := os.WriteFile(path, []byte(garbage), 0o600); err != nil {
				t.Fatal(err)
			}
			e := fresh()
			if _, err := prepare(t, e, dir); err != nil || e.count("run") != 1 {
				t.Errorf("%s: %v after %d probes", name, err, e.count("run"))
			}
		}
	})
	t.Run("where nothing can be written", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := prepare(t, fresh(), file); err != nil {
			t.Error(err)
		}
	})
	t.Run("bad answers", func(t *testing.T) {
		dir := t.TempDir()
		e := fresh()
		e.probe = func(std runtime.Stdio) (runtime.Exit, error) { return probed(std, "3.8.0 1") }
		s := prepareWith(t, e, func(c *sandbox.Config) { c.CacheDir = dir })
		for range 3 {
			if err := look(s, t.Context(), nil); err == nil {
				t.Error("no error")
			}
		}
		if n := e.count("run"); n != 1 {
			t.Errorf("%d probes, want 1", n)
		}
		if _, err := os.Stat(filepath.Join(dir, "images.json")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a bad answer was written down: %v", err)
		}
	})
	t.Run("the engine's failures", func(t *testing.T) {
		e := fresh()
		e.probe = func(runtime.Stdio) (runtime.Exit, error) { return runtime.Exit{}, errors.New("storage is busy") }
		s := prepareWith(t, e, nil)
		for range 3 {
			if err := look(s, t.Context(), nil); err == nil {
				t.Error("no error")
			}
		}
		if n := e.count("run"); n != 3 {
			t.Errorf("%d probes, want 3", n)
		}
	})
}

// TestEngineAtRest is started with progress; and again when it has gone to rest meanwhile.
func TestEngineAtRest(t *testing.T) {
	e := &engine{images: map[string]runtime.Image{"any": has("1")}, resting: true}
	s := prepareWith(t, e, nil)
	var mu sync.Mutex
	var lines []string
	p := func(l string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l)
	}
	for round := 1; round <= 2; round++ {
		if err := look(s, t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if n := e.count("start"); n != round {
			t.Errorf("it was started %d times, want %d", n, round)
		}
		e.set(func(e *engine) { e.resting = true })
	}
	if !slices.Equal(lines, []string{"starting fake", "booting", "starting fake", "booting"}) {
		t.Errorf("got %q", lines)
	}
	failed := errors.New("no virtual machine")
	e.set(func(e *engine) { e.startErr = failed })
	if err := look(s, t.Context(), nil); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestLateWaiter is told what those before it were told last, and waits for the same pull.
func TestLateWaiter(t *testing.T) {
	pulling, done := make(chan struct{}), make(chan struct{})
	e := &engine{pulls: func(ref string, p runtime.Progress) (runtime.Image, error) {
		p("layer 1")
		p("layer 2")
		close(pulling)
		<-done
		return has("1"), nil
	}}
	s := prepareWith(t, e, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := look(s, t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	<-pulling
	told := ""
	err := look(s, t.Context(), func(line string) {
		if told == "" {
			close(done)
		}
		told += line
	})
	wg.Wait()
	if err != nil || told != "layer 2" || e.count("pull any") != 1 {
		t.Errorf("got %q, %v, %d pulls", told, err, e.count("pull any"))
	}
}

// TestEngineThatWentAway fails fast, with the hint, and is used again when it is back.
func TestEngineThatWentAway(t *testing.T) {
	e := &engine{images: map[string]runtime.Image{"any": has("1")}}
	s := prepareWith(t, e, nil)
	for range 2 {
		if err := look(s, t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		e.set(func(e *engine) { e.away = true })
		var gone *runtime.UnavailableError
		if err := look(s, t.Context(), nil); !errors.As(err, &gone) || gone.Hint() != "start it" {
			t.Errorf("got %v", err)
		}
		e.set(func(e *engine) { e.away = false })
	}
	if n := e.count("run"); n != 1 {
		t.Errorf("%d probes of the same image, want 1", n)
	}
	if err := look(s, t.Context(), nil); err != nil {
		t.Error(err)
	}
	e.set(func(e *engine) {
		e.facts.Endpoint, e.images = "elsewhere",
			map[string]runtime.Image{"any": has("2")}
	})
	if f, i, _, err := s.Look(t.Context(), nil); err != nil || f.Endpoint != "elsewhere" || i.ID != has("2").ID {
		t.Errorf("another engine: got %+v, %+v, %v", f, i, err)
	}
}
