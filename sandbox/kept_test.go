package sandbox_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// kept is a guest that lasts, over a plain subprocess.
func kept(t *testing.T, change func(*sandbox.Config)) *sandbox.Kept {
	t.Helper()
	k, err := newSandbox(t, change).Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// in runs code in a kept guest.
func in(t *testing.T, k *sandbox.Kept, code string, timeout time.Duration) sandbox.Result {
	t.Helper()
	r, err := k.Run(t.Context(), sandbox.Request{Code: code, Timeout: timeout, Providers: shop("echo")},
		hostFunc(echo))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return r
}

// TestKeptVariables: a call finds what the calls before it have left.
func TestKeptVariables(t *testing.T) {
	k := kept(t, nil)
	for _, c := range []struct{ code, want string }{
		{"x = 1\ndef f(a): return a / x", ""},
		{"f(3)", "3.0\n"},
		{"x = 2; print(mcp_shop.echo(text='a'))", "a\n"},
		{"import asyncio; await asyncio.sleep(0); y = await mcp_shop.echo(text='b')", ""},
		{"f(3), y", "(1.5, 'b')\n"},
		{"raise SystemExit(3)", ""},
		{"print(x); x = 0", "2\n"},
		{"f(1)", ""},
		{"x", "0\n"},
	} {
		r := in(t, k, c.code, 20*time.Second)
		if r.Stdout() != c.want || r.Kept == nil || r.Kept.State != sandbox.StateKept {
			t.Errorf("%s: got %q, %+v, %+v, want %q", c.code, r.Stdout(), r.Kept, r, c.want)
		}
		if c.code == "f(1)" && (r.Status != sandbox.StatusError || r.Error == nil ||
			!strings.Contains(r.Error.Traceback, `File "<call 1>", line 2, in f`+"\n    def f(a): return a / x")) {
			t.Errorf("got %+v", r.Error)
		}
	}
}

// BadCalls are calls that end the process that has the variables.
var badCalls = []struct {
	name, code string
	timeout    time.Duration
	want       sandbox.Status
}{
	{"timeout", "while True: pass", time.Second, sandbox.StatusTimeout},
	{"exit", "import os; os._exit(3)", 0, sandbox.StatusExit},
	{"killed", "import os; os.kill(os.getpid(), 9)", 0, sandbox.StatusExit},
	{"segfault", "import ctypes; ctypes.string_at(0)", 0, sandbox.StatusExit},
	{"stack overflow", "import ctypes\nf = ctypes.CFUNCTYPE(None)(lambda: f())\n" +
		"import resource, sys; sys.setrecursionlimit(1 << 30)\n" +
		"resource.setrlimit(resource.RLIMIT_STACK, (1 << 14, -1)); f()", 0, sandbox.StatusExit},
	{"descriptors", "import os; os.closerange(0, 4096)", 0, sandbox.StatusOK},
}

// TestKeptRollback: after a call that ends badly the variables are as before it.
func TestKeptRollback(t *testing.T) {
	for _, c := range badCalls {
		t.Run(c.name, func(t *testing.T) {
			k := kept(t, nil)
			in(t, k, "import random; random.seed(1); x = [0]; calls = 0", 20*time.Second)
			in(t, k, "calls += 1", 20*time.Second)
			r := in(t, k, "x[0] = 'changed'; calls = 99; random.random()\n"+c.code, cmp.Or(c.timeout, 20*time.Second))
			if r.Status != c.want || r.Kept.State != sandbox.StateBefore {
				t.Fatalf("got %+v, %+v", r, r.Kept)
			}
			const want = "[0] 1 True\n"
			if r := in(t, k, "print(x, calls, random.random() == random.Random(1).random())",
				20*time.Second); r.Stdout() !=
				want || r.Kept.State != sandbox.StateKept {
				t.Errorf("got %q, %+v, want %q", r.Stdout(), r, want)
			}
		})
	}
}

// TestKeptCancelled: the caller's cancel ends the call and not the guest.
func TestKeptCancelled(t *testing.T) {
	k := kept(t, nil)
	in(t, k, "x = 1", 20*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := k.Run(ctx, sandbox.Request{Code: "x = 2; print('begun')\n" +
		"while True: pass", Timeout: 20 * time.Second, Output: func(sandbox.Chunk) { cancel() }}, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusCancelled || r.Kept.State != sandbox.StateBefore {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r := in(t, k, "x", 20*time.Second); r.Stdout() != "1\n" {
		t.Errorf("got %q", r.Stdout())
	}
	if r, err := k.Run(ctx, sandbox.Request{Code: "x = 3", Timeout: time.Second}, nil); err != nil ||
		r.Status != sandbox.StatusCancelled || r.Kept.State != sandbox.StateKept {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestKeptEnds: one that is closed, and one that has lost its process, take no more calls.
func TestKeptEnds(t *testing.T) {
	k := kept(t, nil)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	var ended *sandbox.EndedError
	if _, err := k.Run(t.Context(), sandbox.Request{Code: "1", Timeout: time.Second}, nil); !errors.As(err,
		&ended) {
		t.Errorf("got %v", err)
	}
	k = kept(t, nil)
	in(t, k, "import sys, types; sys.modules['polars'] = types.ModuleType('polars')", 20*time.Second)
	r := in(t, k, "import os; os._exit(1)", 20*time.Second) // no copy is made beside such a library
	if r.Kept.State != sandbox.StateLost || r.Kept.Reason == "" {
		t.Errorf("got %+v, %+v", r, r.Kept)
	}
	<-k.Done()
	if why, ok := k.Ended(); !ok || why != r.Kept.Reason {
		t.Errorf("ended because %q, %v", why, ok)
	}
}

// TestKeptUndo: the last call can be taken back, once.
func TestKeptUndo(t *testing.T) {
	k := kept(t, nil)
	if _, err := k.Undo(t.Context()); !errors.Is(err, sandbox.ErrNoUndo) {
		t.Errorf("before any call: %v", err)
	}
	in(t, k, "x = 1", 20*time.Second)
	in(t, k, "x = 2", 20*time.Second)
	if s, err := k.Undo(t.Context()); err != nil || s.State != sandbox.StateBefore {
		t.Fatalf("got %+v, %v", s, err)
	}
	if _, err := k.Undo(t.Context()); !errors.Is(err, sandbox.ErrNoUndo) {
		t.Errorf("a second time: %v", err)
	}
	if r := in(t, k, "x", 20*time.Second); r.Stdout() != "1\n" {
		t.Errorf("got %q", r.Stdout())
	}
}

// TestKeptExec: a command runs beside the variables, with what it prints until it ends or is
// stopped.
func TestKeptExec(t *testing.T) {
	k := kept(t, nil)
	dir := t.TempDir()
	exec := func(line string, timeout time.Duration) sandbox.Output {
		t.Helper()
		out, err := k.Exec(t.Context(), sandbox.Command{Line: line, Dir: dir, Timeout: timeout,
			Variables: map[string]string{"A": "b"}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	text := func(o sandbox.Output, stream string) (text string) {
		for _, c := range o.Output {
			if c.Stream == stream {
				text += c.Text
			}
		}
		return text
	}
	if o := exec("echo $A; pwd; echo err >&2; exit 3", 20*time.Second); o.Status != sandbox.StatusExit ||
		o.ExitCode != 3 || text(o, "stdout") != "b\n"+dir+"\n" || text(o, "stderr") != "err\n" {
		t.Errorf("got %+v", o)
	}
	in(t, k, "x = 1", 20*time.Second)
	if o := exec("echo part; sleep 60", time.Second); o.Status != sandbox.StatusTimeout ||
		text(o, "stdout") != "part\n" || o.Kept.State != sandbox.StateKept ||
		o.Message != "The command was stopped after 1s, its time limit." {
		t.Errorf("got %+v", o)
	}
	if o := exec("true", 20*time.Second); o.Status != sandbox.StatusOK || o.Message != "" {
		t.Errorf("got %+v", o)
	}
	if r := in(t, k, "x", 20*time.Second); r.Stdout() != "1\n" {
		t.Errorf("got %q", r.Stdout())
	}
}

// TestKeptFiles: files are written, read, listed and zipped, and what can't be done is said.
func TestKeptFiles(t *testing.T) {
	k := kept(t, nil)
	dir, ctx := t.TempDir(), t.Context()
	big := bytes.Repeat([]byte("0123456789abcdef"), sandbox.MaxWriteFile/16)
	for name, data := range map[string][]byte{"a/b.txt": []byte("hello"), "big": big, "empty": nil} {
		if err := k.WriteFile(ctx, dir+"/"+name, data); err != nil {
			t.Fatal(err)
		}
		if got, err := k.ReadFile(ctx, dir+"/"+name, 1<<30); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
	files, more, err := k.ListFiles(ctx, dir)
	if err != nil || more || len(files) != 3 || files[0].Name != "a" || files[0].Type != "directory" ||
		files[1].Size != int64(len(big)) || time.Since(files[1].Modified) > time.Hour {
		t.Errorf("got %+v, %v, %v", files, more, err)
	}
	var packed bytes.Buffer
	if err := k.ZipDir(ctx, dir, sandbox.MaxZip, &packed); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil || len(archive.File) != 3 {
		t.Errorf("got %+v, %v", archive, err)
	}
	refused := func(code string, err error) {
		t.Helper()
		var e *sandbox.FileError
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	_, err = k.ReadFile(ctx, dir+"/none", 10)
	refused("not_found", err)
	_, err = k.ReadFile(ctx, dir+"/big", 10)
	refused("too_large", err)
	_, err = k.ReadFile(ctx, dir, 10)
	refused("not_a_file", err)
	_, _, err = k.ListFiles(ctx, dir+"/big")
	refused("not_a_directory", err)
	refused("not_a_directory", k.ZipDir(ctx, dir+"/big", 1<<20, io.Discard))
	refused("too_large", k.ZipDir(ctx, dir, 100, io.Discard))
	refused("too_large", k.WriteFile(ctx, dir+"/c", make([]byte, sandbox.MaxWriteFile+1)))
	refused("not_a_file", k.WriteFile(ctx, dir+"/a", nil))
}
