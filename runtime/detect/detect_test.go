package detect_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
)

func TestChoice(t *testing.T) {
	tests := []struct {
		name    string
		scripts []*script
		want    string        // empty: none
		within  time.Duration // from the first call
	}{
		{"the first that is well", []*script{{kind: rootless}, {kind: rootless}}, "a", 0},
		{"the first, though it is slower", []*script{{kind: rootless, delay: time.Second}, {kind: rootless}}, "a",
			time.Second},
		{"the second, when the first takes too long",
			[]*script{{kind: rootless, delay: 3 * time.Second}, {kind: rootless}}, "b", 2 * time.Second},
		{"the second at once, when the first refuses",
			[]*script{{kind: refuses}, {kind: rootless, delay: 100 * time.Millisecond}}, "b", 100 * time.Millisecond},
		{"the only one, though it is slow", []*script{{kind: rootless, delay: 9 * time.Second}, {kind: refuses}},
			"a", 9 * time.Second},
		{"none that takes longer", []*script{{kind: rootless, delay: 11 * time.Second}, {kind: refuses}}, "",
			10 * time.Second},
		{"rootful comes last", []*script{{kind: rootful}, {kind: rootless, delay: time.Second}}, "b", time.Second},
		{"rootful after a virtual machine", []*script{{kind: rootful}, {kind: desktop, delay: time.Second}}, "b",
			time.Second},
		{"rootful, when nothing else answers", []*script{{kind: rootful}, {kind: hangs}}, "a", 10 * time.Second},
		{"rootful after one that takes longer to start",
			[]*script{{kind: rootless, delay: 2500 * time.Millisecond}, {kind: rootful}}, "a",
			2500 * time.Millisecond},
		{"rootful, when the others have refused",
			[]*script{{kind: refuses, delay: 3 * time.Second}, {kind: rootful}}, "b", 3 * time.Second},
		{"what hangs holds up nothing that is preferred", []*script{{kind: rootless}, {kind: hangs}}, "a", 0},
		{"what is at rest, when something runs", []*script{{kind: rests}, {kind: rootless, delay: time.Second}},
			"b", time.Second},
		{"nothing", []*script{{kind: refuses}, {kind: refuses}}, "", 0},
		{"nothing but what hangs", []*script{{kind: hangs}}, "", 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := over(t, tt.scripts...)
				begin := time.Now()
				f, err := d.Facts(t.Context())
				if f.Engine != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("got %q, %v; want %q", f.Engine, err, tt.want)
				}
				if took := time.Since(begin); took > tt.within {
					t.Errorf("it took %v, want %v", took, tt.within)
				}
				var gone *runtime.UnavailableError
				if err != nil && !errors.As(err, &gone) {
					t.Errorf("the error is %v, want an *UnavailableError", err)
				}
				for i, v := range d.Verdicts() {
					if v.Chosen != (v.Name == tt.want) || v.Err == nil != (v.Facts.Engine != "") || v.Took > 10*time.Second {
						t.Errorf("verdict %d is %+v", i, v)
					}
				}
				closed(t, d, tt.scripts...)
			})
		})
	}
}

// oracle is the choice by the package's words, as of each moment at which something changes.
func oracle(scripts []*script) (string, time.Duration) {
	rank := func(i int) int {
		if scripts[i].kind == rootful {
			return i + len(scripts)
		}
		return i
	}
	moments := []time.Duration{0, 2 * time.Second, 10 * time.Second}
	for _, s := range scripts {
		moments = append(moments, s.delay)
	}
	slices.Sort(moments)
	for _, now := range moments {
		best, sure := -1, true
		answered := func(s *script) bool { return s.kind != hangs && s.delay <= now }
		for i, s := range scripts {
			if answered(s) && s.kind <= desktop && (best < 0 || rank(i) < rank(best)) {
				best = i
			}
		}
		for i, s := range scripts {
			sure = sure && (answered(s) || best >= 0 && i > rank(best))
		}
		if best >= 0 && (sure || now >= 2*time.Second && scripts[best].kind != rootful || now >= 10*time.Second) {
			return scripts[best].name, now
		}
		if sure || now >= 10*time.Second {
			return "", now
		}
	}
	return "", 10 * time.Second
}

// TestChoiceOfAny compares choices among random engines with the oracle's.
func TestChoiceOfAny(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	chosen := 0
	for i := range 400 {
		scripts := make([]*script, 1+r.IntN(4))
		var kindsOf []string
		for j := range scripts {
			// Apart by odd steps, so that no two things happen at the same moment.
			scripts[j] = &script{name: string(rune('a' + j)), kind: kind(r.IntN(int(kinds))),
				delay: time.Duration(r.IntN(1250))*10*time.Millisecond + time.Duration(j+1)*time.Millisecond}
			kindsOf = append(kindsOf, fmt.Sprintf("%s: kind %d after %v", scripts[j].name, scripts[j].kind,
				scripts[j].delay))
		}
		want, when := oracle(scripts)
		synctest.Test(t, func(t *testing.T) {
			d := over(t, scripts...)
			begin := time.Now()
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					f, err := d.Facts(t.Context())
					if took := time.Since(begin); f.Engine != want || (err == nil) != (want != "") || took != when {
						t.Errorf("%d: %v: got %q after %v (%v), want %q after %v", i, kindsOf, f.Engine, took, err, want, when)
					}
				})
			}
			wg.Wait()
			for _, s := range scripts {
				if n := s.asked.Load(); s.name != want && n != 1 {
					t.Errorf("%s was asked %d times", s.name, n)
				}
			}
			closed(t, d, scripts...)
		})
		if want != "" {
			chosen++
		}
	}
	if chosen < 100 {
		t.Errorf("only %d of 400 had anything to choose", chosen)
	}
}

func TestSurveyHearsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := []*script{{kind: rootless}, {kind: rootless, delay: 5 * time.Second},
			{kind: refuses, delay: time.Second}, {kind: hangs}}
		d := over(t, scripts...)
		if f, err := d.Survey(t.Context()); err != nil || f.Engine != "a" {
			t.Errorf("got %+v, %v", f, err)
		}
		v := d.Verdicts()
		if !v[0].Chosen || v[1].Err != nil || v[1].Facts.Engine != "b" || v[1].Chosen ||
			!strings.Contains(v[2].Err.Error(), "nothing listens") || v[3].Err == nil {
			t.Errorf("got %+v", v)
		}
		closed(t, d, scripts...)
	})
}

// TestNone: one line for each candidate, and the best next step.
func TestNone(t *testing.T) {
	missing := &runtime.UnavailableError{Engine: "podman",
		Err: fmt.Errorf("no program podman: %w", exec.ErrNotFound), Next: "install it"}
	rootfulOnly := &runtime.UnavailableError{Engine: "docker", Endpoint: "unix:///var/run/docker.sock",
		Err: errors.New("it runs\nas root"), Next: "accept that risk"}
	nothing := &runtime.UnavailableError{Engine: "docker", Err: fmt.Errorf("no socket: %w", exec.ErrNotFound)}
	tests := []struct {
		name   string
		os     string
		errs   []error
		want   []string
		hint   string
		hidden string
	}{
		{"one is installed", "linux", []error{missing, rootfulOnly},
			[]string{"podman: no program podman", "\ndocker: at unix:///var/run/docker.sock: it runs as root"},
			"accept that risk", "install"},
		{"none is", "linux", []error{missing, nothing}, []string{"podman: ", "\ndocker: no socket"},
			"sudo apt install podman", "brew"},
		{"none is, on macOS", "darwin", []error{missing, nothing}, []string{"no container engine can be used"},
			"brew install podman", "apt"},
		{"none is, on Windows", "windows", []error{missing, nothing}, nil, "winget install", "apt"},
		{"one is broken in a way without a hint", "linux", []error{missing, errors.New("odd")},
			[]string{"docker: odd"}, "mcp-bridge doctor", "apt"},
		{"none is where one was named", "at", []error{missing, nothing}, []string{"podman: "}, "install it", "apt"},
		{"the only one", "linux", []error{missing}, []string{"podman is not available: no program podman"},
			"install it", "apt"},
		{"the only one, oddly", "linux", []error{errors.New("odd")}, []string{"podman is not available: odd"},
			"mcp-bridge doctor", "apt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := detect.Config{OS: tt.os}
				for i, err := range tt.errs {
					s := &script{t: t, name: []string{"podman", "docker"}[i], kind: refuses, err: err}
					c := detect.Candidate{Name: s.name, Open: s.driver}
					if tt.os == "at" {
						c.Endpoint = "unix:///named"
					}
					cfg.Candidates = append(cfg.Candidates, c)
				}
				d := detect.New(cfg)
				defer d.Close()
				_, err := d.Facts(t.Context())
				for _, want := range tt.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q in it", err, want)
					}
				}
				if hint := text.Hint(err); !strings.Contains(hint, tt.hint) || strings.Contains(hint, tt.hidden) {
					t.Errorf("got the hint %q, want %q", hint, tt.hint)
				}
			})
		})
	}
}
