package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// source has environments without an engine. Those that are known and not built have all packages
// of their definitions.
type source struct {
	mu    sync.Mutex
	built []environments.Environment
	known map[string]environments.Environment
	did   []string
	fails error
	older bool // what is built has numpy 2.4

	building func(context.Context) error // blocks a build; nil for not at all
}

var python = wheels.Interpreter{Version: "3.13.1", Machine: "x86_64", Glibc: "2.36"}

// with returns an environment with packages such as "pillow 12 PIL".
func with(name string, packages ...string) environments.Environment {
	env := environments.Environment{Name: name, Image: runtime.Image{ID: "sha256:" + name}, Interpreter: python}
	for _, p := range packages {
		f := append(strings.Fields(p), strings.Fields(p)[0])
		env.Distributions = append(env.Distributions,
			wheels.Distribution{Name: f[0], Version: f[1], Imports: []string{f[2]}})
	}
	return env
}

func newSource(built ...environments.Environment) *source {
	return &source{built: built, known: map[string]environments.Environment{
		"data":  with("data", "numpy 2.5", "pandas 3.1", "pillow 12 PIL"),
		"small": with("small", "pandas 3.1"),
		"text":  with("text", "polars 1.2"),
		"maps":  with("maps", "geo 1.0", "proj 8.1"),
	}}
}

func (s *source) note(what string) error {
	s.did = append(s.did, what)
	return s.fails
}

func (s *source) List(context.Context) ([]environments.Environment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.built, s.fails
}

func (s *source) Find(_ context.Context, b *wheels.Block) (best environments.Environment, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return best, s.fails
	}
	missing := &environments.MissingError{Built: s.built}
	has := func(env environments.Environment) bool {
		missing.Missing, err = b.Missing(env.Interpreter, env.Distributions)
		return len(missing.Missing) == 0
	}
	for _, env := range s.built {
		if has(env) && (best.Name == "" || len(env.Distributions) < len(best.Distributions)) {
			best = env
		}
	}
	if best.Name != "" {
		return best, nil
	}
	for _, name := range []string{"small", "data", "text", "maps"} {
		if has(s.known[name]) {
			missing.Buildable = append(missing.Buildable, name)
		}
	}
	missing.Missing, _ = b.Missing(python, nil)
	missing.Asked = missing.Missing
	if len(s.built) > 0 && !b.Runs(python) {
		missing.Python = b.RequiresPython
	}
	return best, missing
}

func (s *source) ByName(_ context.Context, name string) (environments.Environment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.note("by name " + name); err != nil {
		return environments.Environment{}, err
	}
	for _, env := range s.built {
		if env.Name == name {
			return env, nil
		}
	}
	if _, ok := s.known[name]; !ok {
		return environments.Environment{}, &environments.UnknownError{Name: name, Known: []string{"data"}}
	}
	return environments.Environment{}, &environments.NotBuiltError{Name: name}
}

func (s *source) Build(ctx context.Context, name string,
	p environments.Progress) (environments.Environment, error) {
	p(environments.Step{Text: "fetching packages", Percent: 20})
	if s.building != nil {
		if err := s.building(ctx); err != nil {
			return environments.Environment{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.known[name]
	if s.older {
		env = with(name, "numpy 2.4")
	}
	s.built = append(s.built, env)
	return env, s.note("build " + name)
}

func (s *source) Add(_ context.Context, name string, packages []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	env := with(name)
	for _, p := range packages {
		p, _, _ = strings.Cut(p, ">")
		env.Distributions = append(env.Distributions, wheels.Distribution{Name: p, Version: "1.5"})
	}
	env.Distributions = append(env.Distributions, wheels.Distribution{Name: "six", Version: "1.0"})
	s.known[name] = env
	return s.note("add " + strings.Join(packages, " "))
}

func (s *source) Locked(name string) ([]wheels.Distribution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[name].Distributions, nil
}

func (s *source) Follow(index string, minAge time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.note(fmt.Sprintf("follow %s %v", index, minAge)) // it fails elsewhere
}

func (s *source) Forget()              {}
func (s *source) Used(name string)     { s.did = append(s.did, "used "+name) }
func (s *source) Expected(string) bool { return false }

// chooser returns one over s, whose policy's table [packages] is rules.
func chooser(t *testing.T, s *source, usual, rules string) *Chooser {
	t.Helper()
	p, err := policy.Parse("policy.toml", []byte("[packages]\n"+rules))
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Source: s, Default: usual, Policy: p.Packages(),
		Ready: func(context.Context, runtime.Progress) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.note("ready")
		}})
	t.Cleanup(c.Close)
	return c
}

// asking returns code with a block.
func asking(dependencies string) string {
	return "# /// script\n# dependencies = [" + dependencies + "]\n# ///\nprint(1)\n"
}

func TestChoose(t *testing.T) {
	data, small, maps := newSource().known["data"], newSource().known["small"], with("maps", "shapely 2.0")
	onDemand := "on_demand = true\n"
	const python39 = "# /// script\n# requires-python = \">=3.9\"\n# ///\nprint(1)\n"
	auto := "auto-" // the rest is a digest of what is asked for
	for _, tc := range []struct {
		name, code, usual, rules string
		built                    []environments.Environment
		older                    bool     // the lock of data for the image's Python has numpy 2.4
		want                     string   // the environment; empty for none
		did                      []string // besides questions
		refused, hint            string
	}{
		{name: "nothing is asked for, and data isn't built", code: "print(1)"},
		{name: "nothing is asked for, and data is built", code: "print(1)", built: []environments.Environment{data},
			want: "data"},
		{name: "base is configured", code: "print(1)", usual: "base", built: []environments.Environment{data}},
		{name: "another is configured", code: "print(1)", usual: "maps",
			built: []environments.Environment{data, maps}, want: "maps"},
		{name: "data is configured, and isn't built", code: "print(1)", usual: "data", want: "data",
			did: []string{"slow", "ready", "build data"}},
		{name: "one that isn't built is configured", code: "print(1)", usual: "text",
			refused: "the environment text is not built", hint: "mcp-bridge env build text"},
		{name: "the same, where it may be", code: "print(1)", usual: "text", rules: onDemand, want: "text",
			did: []string{"slow", "ready", "build text"}},
		{name: "an unknown one is configured", code: "print(1)", usual: "dtaa",
			refused: `there is no environment "dtaa"`, hint: "mcp-bridge env add dtaa"},
		{name: "a block of nothing", code: asking(""), built: []environments.Environment{data}, want: "data"},
		{name: "a block of nothing but a Python that is there", code: python39, want: "data",
			built: []environments.Environment{data, small}},
		{name: "a block of nothing but a Python, and none is built", code: python39},
		{name: "a block of nothing but a Python that isn't there", built: []environments.Environment{data},
			code:    strings.Replace(python39, "3.9", "3.99", 1),
			refused: "needs Python >=3.99 (requires-python), there is 3.13.1", hint: "change requires-python"},
		{name: "a block of another kind", code: "# /// other\n# x = 1\n# ///\n"},
		{name: "the one with the fewest packages", code: asking(`"pandas>=3"`), usual: "base",
			built: []environments.Environment{data, small}, want: "small"},
		{name: "the one that has all", code: asking(`"pandas", "NumPy"`),
			built: []environments.Environment{data, small}, want: "data"},
		{name: "none has it", code: asking(`"shapely"`), built: []environments.Environment{small},
			refused: "no environment has shapely; built are: small (pandas 3.1)",
			hint:    "mcp-bridge env add NAME shapely"},
		{name: "a version that none has", code: asking(`"pandas>=4"`), built: []environments.Environment{data},
			refused: "no environment has pandas>=4"},
		{name: "data has it, and isn't built", code: asking(`"numpy"`), want: "data",
			did: []string{"slow", "ready", "build data"}},
		{name: "data has it, and the policy denies it", code: asking(`"numpy"`), rules: `deny = ["numpy"]`,
			refused: "packages.deny in policy.toml has the package numpy"},
		{name: "data has it, and the policy allows others", code: asking(`"numpy"`), rules: `allow = ["polars"]`,
			want: "data", did: []string{"slow", "ready", "build data"}},
		{name: "another has it, and none may be built", code: asking(`"polars"`),
			refused: "no environment has polars", hint: "mcp-bridge env build text"},
		{name: "another has it, and may be built", code: asking(`"polars"`), rules: onDemand, want: "text",
			did: []string{"slow", "ready", "build text"}},
		{name: "it isn't among those allowed", code: asking(`"polar"`), rules: onDemand + `allow = ["polars"]`,
			refused: "packages.allow in policy.toml doesn't have the package polar (did you mean \"polars\"?)"},
		{name: "it is made", code: asking(`"shapely>=1", "attrs"`), rules: onDemand, want: auto,
			did: []string{"slow", "ready", "add attrs shapely>=1", "slow", "ready", "build auto-"}},
		{name: "it is made, with a version that isn't allowed", code: asking(`"shapely"`),
			rules: onDemand + `allow = ["shapely>=2"]`,
			did:   []string{"slow", "ready", "add shapely"}, refused: "doesn't have the package shapely 1.5"},
		{name: "it is made, and needs what is denied", code: asking(`"shapely"`),
			rules:   onDemand + `deny = ["six"]`,
			did:     []string{"slow", "ready", "add shapely"},
			refused: "packages.deny in policy.toml has the package six"},
		{name: "another has it, and needs what is denied", code: asking(`"geo"`),
			rules:   onDemand + `deny = ["proj<9"]`,
			refused: "packages.deny in policy.toml has the package proj<9"},
		{name: "data has another version of it in this image", code: asking(`"numpy>=2.5"`), older: true,
			did: []string{"slow", "ready", "build data"}, refused: "no environment has numpy>=2.5"},
		{name: "a marker that is false", code: asking(`"pywin32; sys_platform == 'win32'", "pandas"`),
			built: []environments.Environment{small}, want: "small"},
		{name: "a bad block", code: asking(`"numpy @ https://x/y.whl"`), refused: "asks for a URL"},
		{name: "a bad marker", code: asking(`"numpy; shoe_size > '4'"`), refused: "shoe_size"},
		{name: "no TOML", code: "# /// script\n# dependencies = [\n# ///\n", refused: "is no TOML"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSource(tc.built...)
			s.older = tc.older
			c := chooser(t, s, tc.usual, tc.rules)
			var told []string
			env, err := c.Choose(t.Context(), tc.code, func() { s.did = append(s.did, "slow") },
				func(line string) { told = append(told, line) })
			name := ""
			if env != nil {
				name = env.Name
			}
			if name != tc.want && (tc.want != auto || !strings.HasPrefix(name, auto)) {
				t.Errorf("chose %q, want %q", name, tc.want)
			}
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("got the error %v, want %q", err, tc.refused)
			}
			var hinted interface{ Hint() string }
			if tc.hint != "" && (!errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), tc.hint)) {
				t.Errorf("%v has not the hint %q", err, tc.hint)
			}
			bad := strings.HasPrefix(tc.name, "a bad") || tc.name == "no TOML"
			if bad != errors.As(err, new(args.Error)) {
				t.Errorf("whether %v is the code's mistake", err)
			}
			var did []string
			for _, what := range s.did {
				if !strings.HasPrefix(what, "by name") {
					if strings.HasPrefix(what, "build auto-") {
						what = "build auto-"
					}
					did = append(did, what)
				}
			}
			if diff := cmp.Diff(tc.did, did); diff != "" {
				t.Errorf("what was done (-want +got):\n%s", diff)
			}
			if built := strings.Contains(strings.Join(did, " "), "build"); built != (len(told) > 0 &&
				strings.Contains(told[len(told)-1], "(20%): fetching packages")) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// TestAtRest: an engine that is at rest is started, and its failure told.
func TestAtRest(t *testing.T) {
	for _, code := range []string{"print(1)", asking(`"numpy"`)} {
		s := newSource()
		s.fails = &runtime.UnavailableError{Engine: "fake", Err: errors.New("at rest"), Dormant: true}
		c := New(Config{Source: s, Ready: func(context.Context, runtime.Progress) error {
			s.fails, s.built = nil, []environments.Environment{s.known["data"]}
			return nil
		}})
		if env, err := c.Choose(t.Context(), code, func() {}, func(string) {}); err != nil || env.Name != "data" {
			t.Errorf("got %v, %v", env, err)
		}
		down := errors.New("it doesn't start")
		c = New(Config{Source: s, Ready: func(context.Context, runtime.Progress) error { return down }})
		s.fails = &runtime.UnavailableError{Engine: "fake", Err: errors.New("at rest"), Dormant: true}
		if _, err := c.Choose(t.Context(), code, func() {}, func(string) {}); !errors.Is(err, down) {
			t.Errorf("got %v, want why it doesn't start", err)
		}
		s.fails = &runtime.UnavailableError{Engine: "fake", Err: errors.New("no engine")}
		if _, err := c.Choose(t.Context(), code, func() {}, func(string) {}); !errors.Is(err, s.fails) {
			t.Errorf("got %v, want that there is no engine", err)
		}
	}
}

// TestAskedOnce: code that asks for nothing waits for no answer of the engine but the first, and
// has an environment that was built meanwhile all the same.
func TestAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := chooser(t, s, "", "")
		choose := func(want string) {
			t.Helper()
			s.did = nil
			env, err := c.Choose(t.Context(), "print(1)", func() {}, func(string) {})
			if err != nil || name(env) != want || len(s.did) > 0 {
				t.Errorf("got %v, %v after %q, want %q at once", env, err, s.did, want)
			}
		}
		if _, err := c.Choose(t.Context(), "print(1)", func() {}, func(string) {}); err != nil {
			t.Fatal(err)
		}
		s.built = []environments.Environment{s.known["data"]}
		choose("")
		c.Ran(t.Context(), nil)
		choose("")
		time.Sleep(2 * fresh)
		choose("")
		c.Ran(t.Context(), nil)
		choose("data")
		time.Sleep(2 * fresh)
		s.fails = errors.New("the engine is away")
		c.Ran(t.Context(), nil)
		choose("data")
		s.fails = nil
		c.Forget()
		s.built = nil
		if env, err := c.Choose(t.Context(), "print(1)", func() {}, func(string) {}); env != nil || err != nil {
			t.Errorf("got %v, %v after it was removed", env, err)
		}
	})
}

func TestAbout(t *testing.T) {
	s := newSource(with("data", "numpy 2"))
	c := chooser(t, s, "", "")
	before := c.About()
	if _, err := c.Choose(t.Context(), "1", func() {}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if after := c.About(); strings.Contains(before, "numpy") || !strings.Contains(after, "numpy") {
		t.Errorf("told %q and then %q", before, after)
	}
	if told := chooser(t, s, "base", "").About(); strings.Contains(told, "numpy") {
		t.Errorf("of base: %q", told)
	}
	if told := chooser(t, s, "maps", "").About(); !strings.Contains(told, "maps") {
		t.Errorf("of maps: %q", told)
	}
	if told := (*Chooser)(nil).About(); told != "" {
		t.Errorf("without a chooser: %q", told)
	}
}

func TestHint(t *testing.T) {
	data, maps := newSource().known["data"], with("maps", "shapely 2.0", "geo 1 osgeo", "numpy 2")
	block := func(deps string) string { return "# /// script\n# dependencies = [" + deps + "]\n# ///\n" }
	const missing = "ModuleNotFoundError"
	for _, tc := range []struct{ name, code, kind, message, where, want string }{
		{"built", "1", missing, "No module named 'osgeo'", "maps", block(`"geo"`)},
		{"a module of it", "1", missing, "No module named 'shapely.geometry' (nothing …)", "maps",
			block(`"shapely"`)},
		{"in data, which isn't built", "1", missing, "No module named 'PIL'", "data", block(`"pillow"`)},
		{"beside what was asked for", asking(`"numpy>=2"`), missing, "No module named 'osgeo'", "maps",
			block(`"numpy>=2", "geo"`)},
		{"not together with that", asking(`"pandas"`), missing, "No module named 'osgeo'", "", ""},
		{"nowhere", "1", missing, "No module named 'jax'", "", ""},
		{"not built, and may not be", "1", missing, "No module named 'polars'", "", ""},
		{"another failure", "1", "ImportError", "No module named 'osgeo'", "", ""},
		{"no such message", "1", missing, "osgeo", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSource(maps)
			f := &sandbox.Failure{Type: tc.kind, Message: tc.message}
			got := chooser(t, s, "", "").Hint(t.Context(), tc.code, nil, f)
			if !strings.HasSuffix(got, tc.want) || (tc.want == "") != (got == "") ||
				tc.where != "" && !strings.Contains(got, "the environment "+tc.where+" has") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	c := chooser(t, newSource(data), "", "on_demand = true")
	f := &sandbox.Failure{Type: "ModuleNotFoundError", Message: "No module named 'polars'"}
	if got := c.Hint(t.Context(), "1", nil, f); !strings.Contains(got, "the environment text has polars") {
		t.Errorf("where it may be built: %q", got)
	}
	f = &sandbox.Failure{Type: "ImportError", Message: "PLEASE READ THIS\n\nOriginal error was: " +
		"libstdc++.so.6: cannot " +
		"open shared object file: No such file or directory"}
	if got := c.Hint(t.Context(), "1", &sandbox.Environment{Name: "data"}, f); !strings.Contains(got,
		"environment data lacks libstdc++.so.6") || !strings.Contains(got, "mcp-bridge env build data") {
		t.Errorf("without a library: %q", got)
	}
	if got := c.Hint(t.Context(), "1", nil, f); got != "" {
		t.Errorf("without an environment: %q", got)
	}
}

// TestNamesOfData: the packages whose names differ from those of their modules are in data.
func TestNamesOfData(t *testing.T) {
	l, err := wheels.DataLock(python)
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, p := range l.Packages {
		has[p.Name] = true
	}
	for module, name := range imports {
		if !has[name] {
			t.Errorf("%s, of the module %s, is not in data", name, module)
		}
	}
}

// name returns the name of an environment, or nothing.
func name(e *sandbox.Environment) string {
	if e == nil {
		return ""
	}
	return e.Name
}
