package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// fakePackages has the environment data, with pandas alone.
type fakePackages struct {
	mu       sync.Mutex
	built    bool
	building func() // nil for at once
	image    string
	forgot   int
}

func (f *fakePackages) data() environments.Environment {
	return environments.Environment{Name: "data", Image: runtime.Image{ID: f.image},
		Interpreter:   wheels.Interpreter{Version: "3.13.1", Machine: "x86_64", Glibc: "2.36"},
		Distributions: []wheels.Distribution{{Name: "pandas", Version: "3.1", Imports: []string{"pandas"}}}}
}

func (f *fakePackages) List(context.Context) ([]environments.Environment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.built {
		return nil, nil
	}
	return []environments.Environment{f.data()}, nil
}

func (f *fakePackages) Find(ctx context.Context, b *wheels.Block) (environments.Environment, error) {
	list, _ := f.List(ctx)
	missing, err := b.Missing(f.data().Interpreter, f.data().Distributions)
	switch {
	case err != nil:
		return environments.Environment{}, err
	case len(missing) > 0:
		return environments.Environment{}, &environments.MissingError{Missing: missing, Asked: missing, Built: list}
	case len(list) == 0:
		return environments.Environment{}, &environments.MissingError{Missing: []string{"pandas"},
			Buildable: []string{"data"}}
	}
	return list[0], nil
}

func (f *fakePackages) ByName(ctx context.Context, name string) (environments.Environment, error) {
	if list, _ := f.List(ctx); len(list) > 0 && name == "data" {
		return list[0], nil
	}
	return environments.Environment{}, &environments.NotBuiltError{Name: name}
}

func (f *fakePackages) Build(_ context.Context, name string,
	p environments.Progress) (environments.Environment, error) {
	p(environments.Step{Text: "fetching packages", Percent: 7})
	if f.building != nil {
		f.building()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.built = true
	return f.data(), nil
}

func (f *fakePackages) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot++
	f.image = "second"
}

func (*fakePackages) Add(context.Context, string, []string) error  { return errors.New("no uv") }
func (*fakePackages) Locked(string) ([]wheels.Distribution, error) { return nil, nil }
func (*fakePackages) Follow(string, time.Duration)                 {}
func (*fakePackages) Used(string)                                  {}
func (*fakePackages) Expected(string) bool                         { return false }

// packaged is a bridge whose packages are f's.
func packaged(t testing.TB, f *fakePackages, change func(*Config),
	run func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error)) *Bridge {
	return build(t, func(c *Config) {
		c.Packages = packages.New(packages.Config{Source: f,
			Ready: func(context.Context, runtime.Progress) error { return nil }})
		c.Runner = fakeRunner{run: run}
		if change != nil {
			change(c)
		}
	})
}

// ranIn prints the name of the environment that a run has.
func ranIn(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
	if r.Environment == nil {
		return printed("none"), nil
	}
	return printed(r.Environment.Name + " of " + r.Environment.Image.ID), nil
}

const wantsPandas = `# /// script\n# dependencies = [\"pandas\"]\n# ///\nprint(1)`

// TestEnvironmentIsTold: a run has what its code asks for, and the result and the record say so
// where it isn't the configured image alone.
func TestEnvironmentIsTold(t *testing.T) {
	for _, tc := range []struct {
		name, code, mode   string
		built              bool
		text, structured   string
		recorded, outcome  string
		isError, mentioned bool
	}{
		{name: "none", code: "print(1)", text: "none", outcome: "ok"},
		{name: "the configured one", code: "print(1)", built: true, text: "data of first", recorded: "data",
			outcome: "ok"},
		{name: "asked for", code: wantsPandas, built: true, text: "data of first\n[environment: data]",
			recorded: "data", outcome: "ok"},
		{name: "built", code: wantsPandas, text: "data of second\n[environment: data]", recorded: "data",
			outcome: "ok"},
		{name: "not to be had", code: strings.Replace(wantsPandas, "pandas", "polars", 1), built: true,
			isError: true, text: "status: unavailable — no environment has polars; built are: data (pandas 3.1). " +
				"Next: make one: mcp-bridge env add NAME polars", outcome: "unavailable"},
		{name: "a mistake", code: strings.Replace(wantsPandas, "pandas", "pandas @ https://x/y", 1), isError: true,
			text: "status: validation_error — dependencies of the block", outcome: "validation_error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakePackages{built: tc.built, image: "first"}
			b, path := audited(t, func(c *Config) {
				c.OutputMode, c.Runner = OutputStructured, fakeRunner{run: ranIn}
				c.Packages = packages.New(packages.Config{Source: f,
					Ready: func(context.Context, runtime.Progress) error { return nil }})
			})
			if tc.name == "built" {
				f.image = "second"
			}
			r := connect(t, b).call(`{"code":"` + tc.code + `"}`)
			if !strings.HasPrefix(r.Content[0].Text, tc.text) || r.IsError != tc.isError {
				t.Errorf("got  %s\nwant %s", r.Content[0].Text, tc.text)
			}
			var o struct{ Environment string }
			if err := json.Unmarshal(r.Struct, &o); err != nil || o.Environment != tc.recorded {
				t.Errorf("the structured result has %q, want %q: %v", o.Environment, tc.recorded, err)
			}
			records := readRecords(t, path)
			if len(records) != 1 || records[0].Environment != tc.recorded || records[0].Outcome != tc.outcome {
				t.Errorf("recorded %+v", records)
			}
		})
	}
}

// TestEnvironmentIsGone: a run whose environment was removed has another try, and one only. One
// for which the base image can't be had has none: that was pulled in vain already.
func TestEnvironmentIsGone(t *testing.T) {
	for _, tt := range []struct {
		name, lacks, text string
		always            bool
		forgot            int
	}{
		{name: "once", lacks: "first", text: "data of second", forgot: 1},
		{name: "always", lacks: "first", always: true, text: "no such image", forgot: 1},
		{name: "the base image", lacks: "python:9", text: "no such image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakePackages{built: true, image: "first"}
			b := packaged(t, f, nil, func(ctx context.Context, r sandbox.Request,
				h sandbox.Host) (sandbox.Result, error) {
				if tt.always || r.Environment.Image.ID == "first" {
					return sandbox.Result{}, &runtime.ImageError{Ref: tt.lacks, Err: errors.New("no such image")}
				}
				return ranIn(ctx, r, h)
			})
			r := connect(t, b).call(`{"code":"1"}`)
			if !strings.Contains(r.Content[0].Text, tt.text) || f.forgot != tt.forgot {
				t.Errorf("got %s after %d tries", r.Content[0].Text, f.forgot+1)
			}
		})
	}
}

// TestBuildHoldsUpNoOthers: while an environment is built for one call, its client hears how far
// that is, and others run.
func TestBuildHoldsUpNoOthers(t *testing.T) {
	begun, done := make(chan struct{}), make(chan struct{})
	f := &fakePackages{image: "first", building: func() { close(begun); <-done }}
	p := connect(t, packaged(t, f, nil, ranIn))
	p.run(1, `{"code":"`+wantsPandas+`"}`, `{"progressToken":7}`)
	<-begun
	p.run(2, `{"code":"print(1)"}`, "")
	told := ""
	for {
		m := p.next()
		if m.Method == "notifications/progress" {
			told = m.Params.Message
			continue
		}
		if r := m.tool(t); r.Content[0].Text != "none" {
			t.Errorf("the second call got %s", r.Content[0].Text)
		}
		break
	}
	for !strings.Contains(told, "building the environment data (7%): fetching packages") {
		told = p.next().Params.Message // each second
	}
	close(done)
	for m := p.next(); ; m = p.next() {
		if m.Result == nil {
			continue
		}
		if r := m.tool(t); !strings.HasPrefix(r.Content[0].Text, "data of ") {
			t.Errorf("the first call got %s", r.Content[0].Text)
		}
		return
	}
}

// TestMissingModule: code that lacks a module is told how to begin so that it has it.
func TestMissingModule(t *testing.T) {
	raises := func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.StatusError, ExitCode: 1, Error: &sandbox.Failure{
			Type: "ModuleNotFoundError", Message: "No module named 'pandas'", Traceback: "…"}}, nil
	}
	b := packaged(t, &fakePackages{image: "first"}, nil, raises)
	r := connect(t, b).call(`{"code":"import pandas"}`)
	want := "begin the code with these three lines:\n# /// script\n# dependencies = [\"pandas\"]\n# ///\n"
	if !strings.Contains(r.Content[0].Text, want) {
		t.Errorf("got %s", r.Content[0].Text)
	}
}

// TestToolSaysWhatThereIs: the description of run_python says what code can import, and clients
// hear when that changes.
func TestToolSaysWhatThereIs(t *testing.T) {
	f := &fakePackages{built: true, image: "first"}
	p := connect(t, packaged(t, f, nil, ranIn))
	var hello struct{}
	p.result("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t",`+
		`"version":"1"}}`, &hello)
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	description := func() string {
		var list struct {
			Tools []struct{ Name, Description string }
		}
		p.result("tools/list", `{}`, &list)
		i := slices.IndexFunc(list.Tools, func(tool struct{ Name, Description string }) bool {
			return tool.Name == runPythonName
		})
		return list.Tools[i].Description
	}
	if d := description(); !strings.Contains(d, "PEP 723 packages") || strings.Contains(d, "numpy") {
		t.Errorf("before anything is known: %.120s", d)
	}
	p.run(1, `{"code":"print(1)"}`, "")
	for m := p.next(); m.Method != "notifications/tools/list_changed"; m = p.next() {
	}
	if d := description(); !strings.Contains(d, "numpy") {
		t.Errorf("when data is known: %.120s", d)
	}
}

// TestPackagesCost: what the description says of packages takes 8 tokens at the most.
func TestPackagesCost(t *testing.T) {
	count := counter(t)
	plain := build(t, nil)
	without := count(plain.runTool(plain.Catalog()).Description)
	for _, name := range []string{"data", "", "geo", "x7-q9z", "frames", "x7-q9z-", "auto-0b7f3e91c4",
		strings.Repeat("x7-q", 10)} {
		c := packages.New(packages.Config{Source: &fakePackages{}, Default: name})
		b := build(t, func(cfg *Config) { cfg.Packages = c })
		if n := count(b.runTool(b.Catalog()).Description) - without; n > 8-3 { // 3 are those of before
			t.Errorf("%q: %d tokens more than before: %s", name, n, c.About())
		}
	}
}
