package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// environment returns one whose image is called as it is.
func environment(name string) *sandbox.Environment {
	return &sandbox.Environment{Name: name, Image: runtime.Image{ID: name}, Path: "/opt/env",
		Modules: []string{"numpy", "pandas", "matplotlib", "slow"}}
}

// callIn runs code in an environment.
func callIn(t *testing.T, s *sandbox.Sandbox, e *sandbox.Environment, code string) sandbox.Result {
	t.Helper()
	req := sandbox.Request{Code: code, Timeout: time.Minute, Environment: e}
	r, err := s.Run(t.Context(), req, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusOK {
		t.Errorf("got %+v, %v", r, err)
	}
	return r
}

// TestEnvironments: a run has the image of its environment, from its first on, and later ones don't
// wait for their guests.
func TestEnvironments(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 2 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		data := environment("data")
		for i := range 4 {
			for _, e := range []*sandbox.Environment{nil, data} {
				want := "first"
				if e != nil {
					want = "data"
				}
				r := callIn(t, s, e, "1ms")
				if !strings.HasSuffix(r.Stdout(), " "+want) {
					t.Errorf("a run in %s had the image of guest %q", want, r.Stdout())
				}
				if warm := r.Took.Start == 0; warm != (i > 0) {
					t.Errorf("run %d in %s had its guest after %v", i, want, r.Took.Start)
				}
				time.Sleep(time.Second)
			}
		}
	})
}

// TestStandbyOfAll: however runs in several environments follow each other, no more guests wait
// than may, and those that wait are of use.
func TestStandbyOfAll(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 2 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		all := []*sandbox.Environment{nil, environment("data"), environment("text"), environment("maps")}
		random := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			e := all[random.IntN(len(all))]
			for range 1 + random.IntN(6) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(400))*time.Millisecond)
				_, _ = s.Run(ctx, sandbox.Request{Code: "5ms", Timeout: time.Minute, Environment: e}, hostFunc(echo))
				cancel()
				for range random.IntN(10) {
					time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
					synctest.Wait()
					if _, idle := fl.count(); idle > 2 {
						t.Fatalf("%d wait", idle)
					}
				}
			}
		}
		time.Sleep(10 * time.Second)
		if alive, idle := fl.count(); alive != 2 || idle != 2 {
			t.Errorf("%d are alive and %d wait, want 2 and 2", alive, idle)
		}
	})
}

// TestGivenBack: a guest that comes back from a run that never began isn't one more than may wait.
func TestGivenBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		callIn(t, s, nil, "1ms")
		time.Sleep(time.Second)
		_, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute,
			Files: func() ([]sandbox.Input, error) {
				time.Sleep(20 * time.Second)
				if _, idle := fl.count(); idle != 2 {
					t.Errorf("%d wait, want this run's and the next one's", idle)
				}
				return nil, errors.New("no such file")
			}}, hostFunc(echo))
		if err == nil {
			t.Error("the run began")
		}
		time.Sleep(time.Second)
		if alive, _ := fl.count(); alive != 1 {
			t.Errorf("%d are alive, want the one that waits", alive)
		}
	})
}

// TestUnusedEnvironment: the guest of an environment without runs goes as others do, and gives its
// place to the one in use.
func TestUnusedEnvironment(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 2 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		waiting := func() (images []string) {
			fl.mu.Lock()
			defer fl.mu.Unlock()
			for id := range fl.idle {
				images = append(images, fl.specs[id-1].Image)
			}
			slices.Sort(images)
			return images
		}
		data := environment("data")
		callIn(t, s, data, "1ms")
		callIn(t, s, nil, "1ms")
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"data", "first"}, waiting()); diff != "" {
			t.Errorf("after a run of each (-want +got):\n%s", diff)
		}
		for range 3 {
			time.Sleep(2 * time.Minute)
			callIn(t, s, nil, "1ms")
		}
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff([]string{"first", "first"}, waiting()); diff != "" {
			t.Errorf("after six minutes (-want +got):\n%s", diff)
		}
	})
}

// TestTurns: two environments that take turns don't have each other's only guest replaced each
// time, and one that is used from now on gets it.
func TestTurns(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		data := environment("data")
		warm := 0
		for range 20 {
			for _, e := range []*sandbox.Environment{nil, data} {
				if callIn(t, s, e, "1ms").Took.Start == 0 {
					warm++
				}
				time.Sleep(time.Second)
			}
		}
		if n := fl.started(); warm < 15 || n > 45 {
			t.Errorf("%d of 40 runs found a guest, for which %d were started; want half, and at most 45", warm, n)
		}
		for range 5 {
			callIn(t, s, data, "1ms")
			time.Sleep(time.Second)
		}
		if r := callIn(t, s, data, "1ms"); r.Took.Start != 0 {
			t.Errorf("after five runs in it the guest was ready after %v", r.Took.Start)
		}
	})
}

// TestLearned: what runs of an environment import, those that wait for it have imported ahead, as
// far as it is known to be of the environment.
func TestLearned(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		data := environment("data")
		ahead := func() []string {
			time.Sleep(time.Second)
			fl.mu.Lock()
			defer fl.mu.Unlock()
			if len(fl.idle) != 1 {
				t.Errorf("%d wait, want 1", len(fl.idle))
			}
			for id := range fl.idle {
				return importsAhead(fl.specs[id-1])
			}
			return nil
		}
		check := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, ahead()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		callIn(t, s, data, "1ms")
		check("before anything was imported")
		callIn(t, s, data, `1ms imports ["pandas","os","subprocess","pandas.io.x y","pandas; import os","pandas",`+
			`"numpy","matplotlib.pyplot","../pandas","pandas.`+strings.Repeat("x", 200)+`"]`)
		check("after a run with pandas", "pandas", "numpy", "matplotlib.pyplot")
		callIn(t, s, nil, "1ms")
		for range 3 {
			callIn(t, s, data, "1ms")
		}
		check("after three without", "pandas", "numpy", "matplotlib.pyplot")
		for range 8 {
			callIn(t, s, data, `1ms imports ["numpy"]`)
		}
		check("after eight with numpy alone", "numpy")
	})
}

// TestAheadFromTheBeginning: what an environment wants imported ahead is, until runs show
// otherwise.
func TestAheadFromTheBeginning(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		data := environment("data")
		data.Ahead = []string{"numpy", "os"}
		for i, want := range [][]string{nil, {"numpy"}, {"numpy"}} {
			callIn(t, s, data, "1ms")
			time.Sleep(time.Second)
			fl.set(func() {
				if diff := cmp.Diff(want, importsAhead(fl.specs[i])); diff != "" {
					t.Errorf("guest %d (-want +got):\n%s", i, diff)
				}
			})
		}
	})
}

// TestLimitsOfAnEnvironment: containers of it have those, and all else that others have.
func TestLimitsOfAnEnvironment(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		data := environment("data")
		data.Limits = runtime.Limits{Memory: 1 << 30, CPUs: 2}
		callIn(t, s, nil, "1ms")
		callIn(t, s, data, `1ms imports ["pandas"]`)
		callIn(t, s, data, "1ms")
		time.Sleep(time.Second)
		for _, spec := range fl.specs {
			want := fl.specs[0]
			if spec.Image == "data" {
				want.Image, want.Limits.Memory, want.Limits.CPUs = "data", 1<<30, 2
				if len(spec.Command) != len(want.Command)+1 ||
					!slices.Equal(spec.Command[:len(want.Command)], want.Command) {
					t.Errorf("the command is %q", spec.Command)
				}
				want.Command = spec.Command
			}
			if diff := cmp.Diff(want, spec); diff != "" {
				t.Errorf("of image %s (-want +got):\n%s", spec.Image, diff)
			}
			if len(importsAhead(spec)) == 0 {
				continue
			}
			var e entrypoint.Environment
			if err := json.Unmarshal([]byte(spec.Command[len(spec.Command)-1]), &e); err != nil {
				t.Fatal(err)
			}
			// The fleet's engine enforces none of them.
			if e.Rlimits["nofile"] != want.Limits.NoFile || e.Watch.MemoryBytes != 1<<30 ||
				e.Watch.Processes != want.Limits.PIDs ||
				e.Cores != 2 {
				t.Errorf("modules are imported ahead with the limits %+v", e)
			}
			more := *data
			more.Limits.Memory = 2 << 30
			before := fl.started()
			if r := callIn(t, s, &more, "1ms"); r.Took.Start == 0 || fl.specs[before].Limits.Memory != 2<<30 {
				t.Errorf("with other limits, a guest waited that had %+v", fl.specs[before].Limits)
			}
			return
		}
		t.Error("no guest has imported anything ahead")
	})
}

// TestImportAheadThatEndsTheGuest: such a guest is started without it, and no other waits longer.
func TestImportAheadThatEndsTheGuest(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 2 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		data := environment("data")
		fl.set(func() { fl.unready = "pandas" })
		callIn(t, s, nil, "1ms")
		callIn(t, s, data, `1ms imports ["pandas"]`)
		time.Sleep(time.Second)
		before := fl.started()
		for range 3 {
			for _, e := range []*sandbox.Environment{nil, data} {
				if r := callIn(t, s, e, `1ms imports ["pandas"]`); r.Took.Start != 0 {
					t.Errorf("its guest was ready after %v", r.Took.Start)
				}
				time.Sleep(time.Second)
			}
		}
		if n := fl.started() - before; n != 6 {
			t.Errorf("%d guests were started for 6 runs", n)
		}
	})
}

// TestImportAheadThatEndsItLater: a guest that dies of what it has imported is started without it,
// for a while.
func TestImportAheadThatEndsItLater(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.StandbyIdle = time.Hour },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			data := environment("data")
			callIn(t, s, data, `1ms imports ["pandas"]`)
			end := time.Now().Add(5 * time.Minute)
			for time.Now().Before(end) {
				fl.set(func() {
					for id := range fl.idle {
						if len(importsAhead(fl.specs[id-1])) > 0 {
							fl.alive[id]()
						}
					}
				})
				time.Sleep(10 * time.Millisecond)
			}
			if r := callIn(t, s, data, "1ms"); r.Took.Start != 0 || fl.started() > 5 {
				t.Errorf("the guest was ready after %v, and %d were started", r.Took.Start, fl.started())
			}
			time.Sleep(10 * time.Minute)
			last := fl.specs[fl.started()-1]
			if diff := cmp.Diff([]string{"pandas"}, importsAhead(last)); diff != "" {
				t.Errorf("after ten minutes (-want +got):\n%s", diff)
			}
		})
}

// TestEnvironmentIsGone: a run in an environment whose image the engine has lost is told so, and
// those that wait for others aren't held up.
func TestEnvironmentIsGone(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 2 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		callIn(t, s, nil, "1ms")
		callIn(t, s, environment("data"), "1ms")
		time.Sleep(time.Second)
		fl.set(func() { fl.removed = true })
		for range 3 {
			_, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute,
				Environment: environment("text")}, hostFunc(echo))
			if e := new(runtime.ImageError); !errors.As(err, &e) || e.Ref != "text" {
				t.Errorf("got %v, want that there is no image text", err)
			}
			time.Sleep(time.Second)
			if r := callIn(t, s, nil, "1ms"); r.Took.Start != 0 {
				t.Errorf("the guest without an environment was ready after %v", r.Took.Start)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
	})
}

// TestRealPackages: code imports from the environment's directory, and what it has imported a later
// guest has already.
func TestRealPackages(t *testing.T) {
	s := newSandbox(t, func(c *sandbox.Config) { c.Standby, c.StandbyIdle = 1, time.Hour })
	dir := t.TempDir()
	code := "import time\nmade = time.time()\n"
	if err := os.WriteFile(filepath.Join(dir, "slow.py"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	e := environment("data")
	e.Path = dir
	code = "import time\nbegan = time.time()\nimport slow, sys\n" +
		fmt.Sprintf("print(slow.made < began, %q in sys.path)", dir)
	deadline := time.Now().Add(time.Minute)
	for {
		switch out := callIn(t, s, e, code).Stdout(); {
		case out == "True True\n":
			return
		case out != "False True\n":
			t.Fatalf("got %q", out)
		case time.Now().After(deadline):
			t.Fatal("no guest has imported it ahead")
		}
	}
}
