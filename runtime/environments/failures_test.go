package environments_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// answer makes what the compiler answers for one source: magic is its first eight bytes.
func answer(magic string, size int) []byte {
	pyc := append([]byte(magic), bytes.Repeat([]byte("x"), size)...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(pyc))), pyc...)
}

// TestHostileCompiler has containers that answer what the compiler of an image could, which may be
// any program. The environment has one source.
func TestHostileCompiler(t *testing.T) {
	const flags = "\x01\x00\x00\x00"
	magic := magicNumber(t)
	tests := []struct {
		name   string
		answer []byte
		code   int
		want   string // in the error; empty for success
	}{
		{"sound", answer(magic+flags, 20), 0, ""},
		{"no bytecode at all", answer("", 0), 0, "could compile none of the packages"},
		{"nothing", nil, 0, "no bytecode came for opt/env/one.py"},
		{"cut", answer(magic+flags, 20)[:10], 0, "was cut"},
		{"another Python's", answer("\x00\x00\x0d\x0a"+flags, 20), 0, "is no bytecode of CPython 3."},
		{"checked against its source", answer(magic+"\x03\x00\x00\x00", 20), 0, "is no bytecode of"},
		{"short", answer(magic+flags, 2), 0, "is no bytecode of"},
		{"large", answer(magic+flags, 2<<20), 0, "too large"},
		{"huge", []byte("\xff\xff\xff\xffxxxx"), 0, "too large"},
		{"more than asked for", append(answer(magic+flags, 20), answer(magic+flags, 20)...), 0,
			"more than it was asked"},
		{"crash", nil, 139, "ended with code 139 after the first one: ouch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.define(t, "mine", "", "one")
			b.engine.compiles = func(ctx context.Context, std runtime.Stdio) (runtime.Exit, error) {
				go func() { _, _ = io.Copy(io.Discard, std.Stdin) }()
				_, _ = io.WriteString(std.Stderr, "ouch")
				if _, err := std.Stdout.Write(tt.answer); err != nil {
					<-ctx.Done() // as a container that is killed
					return runtime.Exit{Code: 137}, nil
				}
				return runtime.Exit{Code: tt.code}, nil
			}
			_, err := b.Build(t.Context(), "mine", nil)
			b.clean(t)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || len(b.engine.images) > 0):
				t.Errorf("got %v and %d images, want %s", err, len(b.engine.images), tt.want)
			}
		})
	}
}

// TestCompilerLacksMemory: a source that the compiler has no memory for fails the build, which says
// why. One that is too complex for the parser has no bytecode.
func TestCompilerLacksMemory(t *testing.T) {
	b := newBench(t)
	var source strings.Builder
	for i := range 2_000_000 { // not in order: a zip bomb would be refused
		fmt.Fprintf(&source, "%d,", i*7919%1_000_003)
	}
	b.defineSources(t, "large", map[string]string{"one.py": "x = [" + source.String() + "]\n"})
	_, err := b.Build(t.Context(), "large", nil)
	if err == nil || !strings.Contains(err.Error(), "MemoryError") {
		t.Errorf("got %v", err)
	}
	b.clean(t)
	b.defineSources(t, "deep", map[string]string{"one.py": "x = 1\n",
		"two.py": "x = " + strings.Repeat("-", 99999) + "1\n", "three.py": "def (:\n"})
	if env := b.build(t, "deep"); env.Bytecode != (environments.Bytecode{Sources: 3, Without: 2}) {
		t.Errorf("of the sources %+v were counted", env.Bytecode)
	}
}

// magicNumber returns what this machine's Python begins its .pyc files with.
func magicNumber(t *testing.T) string {
	t.Helper()
	b := newBench(t)
	b.define(t, "mine", "", "one")
	_, files := unpack(t, b.engine.layers[b.build(t, "mine").Image.ID])
	for name, content := range files {
		if strings.HasSuffix(name, ".pyc") {
			return content[:4]
		}
	}
	t.Fatal("nothing was compiled")
	return ""
}

// TestFailures ends builds at each of their parts. Nothing is left but what was downloaded, and the
// next build is whole.
func TestFailures(t *testing.T) {
	cancelled := errors.New("the caller has gone")
	for _, tt := range []struct {
		name       string
		fail       func(b *bench, cancel context.CancelCauseFunc)
		want, hint string
	}{
		{"no base", func(b *bench, _ context.CancelCauseFunc) { b.engine.bases = map[string]string{} },
			"the engine doesn't have it", "mcp-bridge image ensure"},
		{"no index", func(b *bench, _ context.CancelCauseFunc) { b.index.Close() }, "can't be reached", "online"},
		{"other wheel", func(b *bench, _ context.CancelCauseFunc) {
			b.wheels["one-1.0-py3-none-any.whl"] = wheel("one", member{"one.py", "print('another')"})
		}, "not the file that was locked", ""},
		{"the engine's disk is full", func(b *bench, _ context.CancelCauseFunc) {
			b.engine.addErr = errors.New("write /opt/env/one.py: no space left on device")
		}, "no space left", "system prune"},
		{"this disk is full", func(b *bench, _ context.CancelCauseFunc) {
			b.engine.addErr = &os.PathError{Op: "write", Path: "layer.tar", Err: syscall.ENOSPC}
		}, "no space left", "free some space in "},
		{"no container", func(b *bench, _ context.CancelCauseFunc) {
			b.engine.compiles = func(context.Context, runtime.Stdio) (runtime.Exit, error) {
				return runtime.Exit{}, &runtime.UnavailableError{Engine: "fake", Err: errors.New("gone"),
					Next: "start it"}
			}
		}, "fake is not available", "start it"},
		{"cancelled while it compiles", func(b *bench, cancel context.CancelCauseFunc) {
			b.engine.compiles = func(ctx context.Context, _ runtime.Stdio) (runtime.Exit, error) {
				cancel(cancelled)
				<-ctx.Done()
				return runtime.Exit{Code: 137}, nil
			}
		}, cancelled.Error(), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.define(t, "mine", "", "one")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			tt.fail(b, cancel)
			_, err := b.Build(ctx, "mine", nil)
			var hinted interface{ Hint() string }
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				tt.hint != "" && (!errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), tt.hint)) {
				t.Errorf("got %v, want %q and the hint %q", err, tt.want, tt.hint)
			}
			b.clean(t)
			if len(b.engine.images) > 0 {
				t.Errorf("the engine has %v", b.engine.images)
			}
		})
	}
}

// TestLeftByAKilledBuild has what a killed build leaves.
func TestLeftByAKilledBuild(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one")
	if err := os.MkdirAll(filepath.Join(b.cfg.CacheDir, "lock-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.cfg.CacheDir, "layer-1.tar"), "half")
	b.build(t, "mine")
	b.clean(t)
}

func TestDefinitions(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct{ name, settings, want string }{
		{"fine", "image = 'python:3.13'\nlock = 'other.toml'\nimports = ['a.b']\n[limits]\ncpus = 1.5\n" +
			"pids = 99\n", ""},
		{"typo", "memory = '1g'", "no setting memory; there are image"},
		{"broken", "image = ", "toml"},
		{"module", "imports = ['os; print(1)']", "is no module's name"},
		{"size", "[limits]\nmemory = 'much'", "memory is a size such as 1g"},
		{"below", "[limits]\npids = 3", "at least 16"},
		{"tiny", "[limits]\nmemory = '1m'", "at least 64m"},
		{"Capital", "", "small letters"},
		{"base", "", "isn't base"},
	} {
		write(t, filepath.Join(b.cfg.Dir, tt.name+".toml"), tt.settings)
		all := b.Definitions()
		i := slices.IndexFunc(all, func(d environments.Definition) bool { return d.Name == tt.name })
		if i < 0 {
			t.Fatalf("%s is not among %v", tt.name, all)
		}
		switch d := all[i]; {
		case tt.want != "" && (d.Err == nil || !strings.Contains(d.Err.Error(), tt.want) ||
			!strings.Contains(d.Err.Error(), tt.name+".toml")):
			t.Errorf("%s: got %v, want %s", tt.name, d.Err, tt.want)
		case tt.want == "" && (d.Err != nil || d.Image != "python:3.13" ||
			d.Lock != filepath.Join(b.cfg.Dir, "other.toml") ||
			d.Limits.CPUs != 1.5 || d.Limits.PIDs != 99 || !slices.Equal(d.Imports, []string{"a.b"})):
			t.Errorf("got %+v", d)
		}
	}
	if !slices.ContainsFunc(b.Definitions(),
		func(d environments.Definition) bool { return d.Name == environments.Data }) {
		t.Error("data is unknown")
	}
}

// parse returns the block that asks for the packages.
func parse(t *testing.T, dependencies string) *wheels.Block {
	t.Helper()
	b, err := wheels.ParseBlock("# /// script\n# dependencies = [" + dependencies + "]\n# ///\n")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLostAnswer: an engine may lose what a container says as it ends.
func TestLostAnswer(t *testing.T) {
	b := newBench(t)
	b.engine.loses = true
	b.define(t, "small", "", "one")
	b.build(t, "small")
}

func TestFind(t *testing.T) {
	b := newBench(t)
	b.define(t, "small", "", "one")
	b.define(t, "large", "", "one", "two", "three")
	b.define(t, "planned", "", "four", "one")
	b.define(t, "also-planned", "", "four", "one", "two")
	b.build(t, "small")
	b.build(t, "large")
	for _, tt := range []struct{ dependencies, want, err, hint string }{
		{"'one'", "small", "", ""},
		{"'ONE>=1', 'two'", "large", "", ""},
		{"'one>2'", "", "no environment has one>2; built are: large (one 1.0, three 1.0, two 1.0); small (one 1.0)",
			"mcp-bridge env add NAME 'one>2'"},
		{"'one===`reboot`', 'two===1&reboot'", "", "no environment has", // no shell runs what code wrote
			"mcp-bridge env add NAME 'one===`reboot`' 'two===1&reboot'"},
		{"'four'", "", "no environment has four", "mcp-bridge env build planned"},
		{"'numpy'", "", "no environment has numpy", "mcp-bridge env build data"},
		{"'one', 'nine'", "", "no environment has nine; built are", "make one: mcp-bridge env add NAME one nine"},
		{"'thre>1'", "", `no environment has thre>1 (did you mean "three"?); built are`,
			"mend the name in the code; or, if it is right, make one: mcp-bridge env add NAME 'thre>1'"},
		{"'three-stubs'", "", "no environment has three-stubs; built are", "make one: mcp-bridge env add"},
		{"'json'", "", "no environment has json", "json comes with Python: leave it out"},
		{"'nunpy'", "", `no environment has nunpy (did you mean "numpy"?)`, "mend the name in the code"},
		{"'one']\n# requires-python = '>=3.99'\n# x = [", "", "needs Python >=3.99 (requires-python), there is 3.",
			"change requires-python"},
	} {
		env, err := b.Find(t.Context(), parse(t, tt.dependencies))
		var missing *environments.MissingError
		switch {
		case tt.want != "" && (err != nil || env.Name != tt.want):
			t.Errorf("%s: got %s, %v; want %s", tt.dependencies, env.Name, err, tt.want)
		case tt.want == "" && (!errors.As(err, &missing) || !strings.Contains(err.Error(), tt.err) ||
			!strings.Contains(missing.Hint(), tt.hint)):
			t.Errorf("%s: got %v, want %s", tt.dependencies, err, tt.err)
		}
	}
	var unknown *environments.UnknownError
	if _, err := b.ByName(t.Context(), "a;b"); !errors.As(err, &unknown) || len(unknown.Known) != 5 ||
		!strings.HasSuffix(unknown.Hint(), "env add 'a;b' PACKAGE…") {
		t.Errorf("got %v", err)
	}
	var planned *environments.NotBuiltError
	if _, err := b.ByName(t.Context(), "planned"); !errors.As(err, &planned) {
		t.Errorf("got %v", err)
	}
	if err := b.Remove(t.Context(), "none"); !errors.As(err, &unknown) {
		t.Errorf("removing one that there isn't: %v", err)
	}
	if err := b.Remove(t.Context(), "planned"); !errors.As(err, &planned) {
		t.Errorf("removing one that isn't built: %v", err)
	}
	if err := b.Remove(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ByName(t.Context(), "small"); !errors.As(err, &planned) {
		t.Errorf("what was removed: %v", err)
	}
}

// TestBuildWaits: a build that waits for another one says so.
func TestBuildWaits(t *testing.T) {
	b := newBench(t)
	b.define(t, "mine", "", "one")
	if err := os.MkdirAll(b.cfg.CacheDir, 0o700); err != nil {
		t.Fatal(err)
	}
	release, err := filelock.Acquire(t.Context(), filepath.Join(b.cfg.CacheDir, "build.lock"))
	if err != nil {
		t.Fatal(err)
	}
	var end sync.Once
	if _, err := b.Build(t.Context(), "mine", func(s environments.Step) {
		end.Do(func() {
			if s.Text != "waiting for another build" {
				t.Errorf("the first step is %+v", s)
			}
			release()
		})
	}); err != nil {
		t.Fatal(err)
	}
}
