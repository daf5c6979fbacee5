package sandbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
			_, i, err := s.Look(t.Context(), nil)
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
			_, i, err := s.Look(t.Context(), nil)
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
		ends  func(runtime.Stdio) (runtime.Exit, error) // nil: the image need not be run
		want  string                                    // in the error; empty: none
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
		{"without python, says crun", "x", has("1"), amd64, ends(runtime.Exit{}, "",
			errors.New("crun: executable file `python3` not found in $PATH: No such file or directory: OCI "+
				"runtime attempted to invoke a command that was not found")), "no python3"},
		{"without python, says runc", "x", has("1"), amd64, ends(runtime.Exit{}, "",
			errors.New(`runc create failed: unable to start container process: exec: "python3": executable file not `+
				`found in $PATH`)), "no python3"},
		{"without python, by code", "x", has("1"), amd64, ends(runtime.Exit{Code: 127}, "", nil), "no python3"},
		{"with Python 3.9", "x", has("1"), amd64, ends(runtime.Exit{Code: 1},
			"mcp-bridge guest: its Python is 3.9, and 3.10 or newer is needed", nil),
			"its Python is 3.9, and 3.10 or newer is needed"},
		{"with a Python that fails", "x", has("1"), amd64, ends(runtime.Exit{Code: 1}, "Fatal Python error", nil),
			"Fatal Python error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &engine{facts: tt.facts, images: map[string]runtime.Image{tt.ref: tt.image}, ends: tt.ends}
			s := prepareWith(t, e, func(c *sandbox.Config) { c.Images = []string{tt.ref} })
			err := look(s, t.Context(), nil)
			if err == nil && tt.ends != nil {
				_, err = s.Run(t.Context(), sandbox.Request{Code: "1", Timeout: time.Second}, nil)
			}
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
		e := &engine{images: map[string]runtime.Image{"any": has("1")}, ends: ends(runtime.Exit{}, "", gone)}
		var unfit *sandbox.UnfitError
		_, err := prepareWith(t, e, nil).Run(t.Context(), sandbox.Request{Code: "1", Timeout: time.Second}, nil)
		if !errors.Is(err, gone) || errors.As(err, &unfit) {
			t.Errorf("got %v, want the engine's error", err)
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
	if err := look(s, t.Context(), nil); err != nil {
		t.Error(err)
	}
	e.set(func(e *engine) {
		e.facts.Endpoint, e.images = "elsewhere",
			map[string]runtime.Image{"any": has("2")}
	})
	if f, i, err := s.Look(t.Context(), nil); err != nil || f.Endpoint != "elsewhere" || i.ID != has("2").ID {
		t.Errorf("another engine: got %+v, %+v, %v", f, i, err)
	}
}
