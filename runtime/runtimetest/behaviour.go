package runtimetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Target is a driver under test.
type Target struct {
	Driver runtime.Driver
	Image  string // has python3 on its PATH
	// containers with our instance label that the engine still knows; nil where there are none
	Count func() int
	Owner runtime.Owner // of the containers that the suite starts

	// Differs names properties, as LockDown has them, that this engine hasn't got or that can't be
	// seen on it, and what there is instead. They are looked at none the less. A name that goes on
	// with a colon and a text is of those problems of the property that have the text in them.
	Differs map[string]string
}

// Spec returns one that runs python3 with a program.
func (g Target) Spec(program string, args ...string) runtime.Spec {
	return runtime.Spec{
		Image:   g.Image,
		Command: append([]string{"python3", "-I", "-B", "-c", program}, args...),
		Env:     []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace", "LANG=C.UTF-8"},
		User:    "65534:65534",
		Limits:  runtime.Limits{Memory: 256 << 20, PIDs: 64, NoFile: 256, Shm: 8 << 20},
		Tmpfs: []runtime.Tmpfs{
			{Path: "/ipc", Size: 4 << 20},
			{Path: "/tmp", Size: 8 << 20},
			{Path: "/workspace", Size: 16 << 20},
		},
		Owner:  g.Owner,
		MaxAge: time.Minute,
	}
}

// run runs a spec with nothing on stdin.
func (g Target) run(t *testing.T, s runtime.Spec) (runtime.Exit, string, string) {
	t.Helper()
	var out, errs syncBuffer
	exit, err := g.Driver.Run(t.Context(), s,
		runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if err != nil {
		t.Fatalf("Run: %v (stderr %q)", err, errs.String())
	}
	return exit, out.String(), errs.String()
}

type behaviour struct {
	name string
	test func(*testing.T, Target)
}

// Behaviour checks what every driver promises: see runtime.Driver.
func Behaviour(t *testing.T, newTarget func(*testing.T) Target) {
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			g := newTarget(t)
			b.test(t, g)
			if g.Count != nil {
				if n := g.Count(); n != 0 {
					t.Errorf("%d containers are left", n)
				}
			}
		})
	}
}

var behaviours = []behaviour{
	{"streams are kept apart", func(t *testing.T, g Target) {
		exit, out, errs := g.run(t, g.Spec("import os; os.write(1, b'to out'); os.write(2, b'to err')"))
		if exit.Code != 0 || out != "to out" || errs != "to err" {
			t.Errorf("got code %d, stdout %q, stderr %q", exit.Code, out, errs)
		}
	}},
	{"the end of the streams is told once, behind all that came on them", func(t *testing.T, g Target) {
		var out, errs syncBuffer
		told := 0
		_, err := g.Driver.Run(t.Context(), g.Spec("import os; os.write(1, b'to out'); os.write(2, b'to err')"),
			runtime.Stdio{
				Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
				Ended: func() {
					if told++; out.String() != "to out" || errs.String() != "to err" {
						t.Errorf("it came behind stdout %q and stderr %q", out.String(), errs.String())
					}
				},
			})
		if err != nil || told != 1 {
			t.Errorf("it was told %d times, %v", told, err)
		}
	}},
	{"exit codes", func(t *testing.T, g Target) {
		for _, want := range []int{0, 1, 3, 42, 255} {
			exit, _, _ := g.run(t, g.Spec("import os,sys; os._exit(int(sys.argv[1]))", fmt.Sprint(want)))
			if exit.Code != want {
				t.Errorf("got code %d, want %d", exit.Code, want)
			}
		}
	}},
	{"an exit that is not asked for", func(t *testing.T, g Target) {
		var out syncBuffer
		std := runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard,
			ExitUnneeded: func() bool { return true }}
		if _, err := g.Driver.Run(t.Context(), g.Spec("print('x' * 100_000, end='')"), std); err != nil ||
			out.String() != strings.Repeat("x", 100_000) {
			t.Errorf("got %v, and %d bytes of its output", err, len(out.String()))
		}
		// One that has closed its streams and runs on is removed as it is, or when it is too old.
		s := g.Spec("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(300)")
		s.MaxAge = 10 * time.Second
		began := time.Now()
		if _, err := g.Driver.Run(t.Context(), s, std); err != nil || time.Since(began) > time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	}},
	{"stdin arrives whole and ends", func(t *testing.T, g Target) {
		data := bytes.Repeat([]byte("0123456789abcdef\x00\x10\x11\xff"), 500_000) // 10 MB, detach keys included
		s := g.Spec("import sys,hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), end='')")
		var out syncBuffer
		_, err := g.Driver.Run(t.Context(), s,
			runtime.Stdio{Stdin: bytes.NewReader(data), Stdout: &out, Stderr: io.Discard})
		if want := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || out.String() != want {
			t.Errorf("got %q, %v, want %q", out.String(), err, want)
		}
	}},
	{"a program that answers", func(t *testing.T, g Target) {
		s := g.Spec("import sys\nline = sys.stdin.readline()\nif line == '\\n':\n    print(flush=True)\n" +
			"    line = sys.stdin.readline()\nprint(line, sys.stdin.read(), end='')")
		s.Answers = true
		var out syncBuffer
		exit, err := g.Driver.Run(t.Context(), s,
			runtime.Stdio{Stdin: strings.NewReader("one\ntwo"), Stdout: &out, Stderr: io.Discard})
		if err != nil || exit.Code != 0 || out.String() != "one\n two" {
			t.Errorf("got %+v, %v, %q", exit, err, out.String())
		}
	}},
	{"ten megabytes of output", func(t *testing.T, g Target) {
		_, out, _ := g.run(t, g.Spec("import os\nb=b'x'*65536\nfor _ in range(160): \n  n=0\n"+
			"  while n<65536: n+=os.write(1,b[n:])"))
		if len(out) != 160*65536 || strings.Trim(out, "x") != "" {
			t.Errorf("got %d bytes, want %d", len(out), 160*65536)
		}
	}},
	{"cancel kills within a second", func(t *testing.T, g Target) {
		ctx, cancel := context.WithCancel(t.Context())
		var at time.Time
		out := writerFunc(func(p []byte) { at = time.Now(); cancel() }) // once it is up and says so
		exit, err := g.Driver.Run(ctx, g.Spec(
			"import os,signal,time\nfor s in (1,2,15): signal.signal(s, signal.SIG_IGN)\nos.write(1,b'up')\n"+
				"while True: time.sleep(1)"),
			runtime.Stdio{Stdin: blocked(t), Stdout: out, Stderr: io.Discard})
		if err != nil || exit.Code == 0 {
			t.Errorf("got %+v, %v; want a non-zero code and no error", exit, err)
		}
		if took := time.Since(at); took > 5*time.Second {
			t.Errorf("it took %v from cancel to gone", took)
		}
	}},
	{"a context that has ended already starts nothing that lasts", func(t *testing.T, g Target) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		exit, err := g.Driver.Run(ctx, g.Spec("import time; time.sleep(60)"),
			runtime.Stdio{Stdin: blocked(t), Stdout: io.Discard, Stderr: io.Discard})
		if err == nil && exit.Code == 0 {
			t.Errorf("got %+v, %v; want a failure", exit, err)
		}
	}},
	{"cancelled at any moment leaves nothing", func(t *testing.T, g Target) {
		for i := range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*15*time.Millisecond)
			exit, err := g.Driver.Run(ctx, g.Spec("import time; time.sleep(60)"),
				runtime.Stdio{Stdin: blocked(t), Stdout: io.Discard, Stderr: io.Discard})
			cancel()
			if err == nil && exit.Code == 0 {
				t.Errorf("got %+v, %v; want a failure", exit, err)
			}
		}
	}},
	{"the end of stdin reaches the program", func(t *testing.T, g Target) {
		exit, out, _ := g.run(t, g.Spec("import sys; print(repr(sys.stdin.read()), end='')"))
		if exit.Code != 0 || out != "''" {
			t.Errorf("got code %d, stdout %q", exit.Code, out)
		}
	}},
	{"a reader of stdin that blocks is not waited for", func(t *testing.T, g Target) {
		if _, err := g.Driver.Run(t.Context(), g.Spec("print(1)"),
			runtime.Stdio{Stdin: blocked(t), Stdout: io.Discard, Stderr: io.Discard}); err != nil {
			t.Error(err)
		}
	}},
	{"children die with the first process", func(t *testing.T, g Target) {
		exit, out, _ := g.run(t, g.Spec("import os,time\nif os.fork()==0:\n  time.sleep(60)\n  os._exit(1)\n"+
			"os.write(1,b'parent')"))
		if exit.Code != 0 || out != "parent" {
			t.Errorf("got code %d, stdout %q", exit.Code, out)
		}
	}},
	{"the engine ends what is too old", func(t *testing.T, g Target) {
		s := g.Spec("import time; time.sleep(60)")
		s.MaxAge = time.Second
		var out syncBuffer
		exit, err := g.Driver.Run(t.Context(), s,
			runtime.Stdio{Stdin: blocked(t), Stdout: &out, Stderr: io.Discard})
		if err != nil || exit.Code == 0 {
			t.Errorf("got %+v, %v; want a non-zero code and no error", exit, err)
		}
	}},
	{"ten at once are not mixed up", func(t *testing.T, g Target) {
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				var out syncBuffer
				exit, err := g.Driver.Run(t.Context(),
					g.Spec("import sys; print(sys.stdin.read()+sys.argv[1], end=''); sys.exit(int(sys.argv[1]))",
						fmt.Sprint(i)),
					runtime.Stdio{Stdin: strings.NewReader(fmt.Sprintf("in%d-", i)), Stdout: &out, Stderr: io.Discard})
				if want := fmt.Sprintf("in%d-%d", i, i); err != nil || out.String() != want || exit.Code != i {
					t.Errorf("got %q, %+v, %v; want %q and code %d", out.String(), exit, err, want, i)
				}
			})
		}
		wg.Wait()
	}},
	{"a missing image is an ImageError", func(t *testing.T, g Target) {
		s := g.Spec("print(1)")
		s.Image = "missing.invalid/none:none"
		_, err := g.Driver.Run(t.Context(), s, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard,
			Stderr: io.Discard})
		var missing *runtime.ImageError
		if !errors.As(err, &missing) || missing.Hint() == "" {
			t.Errorf("Run: got %v, want an *ImageError with a hint", err)
		}
	}},
	{"a missing program is an error", func(t *testing.T, g Target) {
		s := g.Spec("")
		s.Command = []string{"no-such-program"}
		_, err := g.Driver.Run(t.Context(), s, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard,
			Stderr: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "no-such-program") {
			t.Errorf("Run: got %v, want an error naming the program", err)
		}
	}},
	{"a bad spec is refused", func(t *testing.T, g Target) {
		s := g.Spec("print(1)")
		s.User = "0:0"
		if _, err := g.Driver.Run(t.Context(), s, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard,
			Stderr: io.Discard}); err == nil {
			t.Error("user 0 was accepted")
		}
	}},
	{"reaping spares the living and takes the orphans", func(t *testing.T, g Target) {
		// what earlier, killed tests have left
		if _, err := runtime.Reap(t.Context(), g.Driver, g.Owner); err != nil {
			t.Fatal(err)
		}
		if g.Count == nil {
			return
		}
		dead := exec.Command("true")
		if err := dead.Run(); err != nil {
			t.Fatal(err)
		}
		orphan := runtime.Self()
		orphan.PID = dead.Process.Pid
		for _, tt := range []struct {
			owner runtime.Owner
			want  int
		}{{g.Owner, 0}, {runtime.Self(), 0}, {orphan, 1}} {
			in, w := io.Pipe()
			reaped := make(chan int, 1)
			out := writerFunc(func([]byte) { // it is up
				gone, err := runtime.Reap(t.Context(), g.Driver, runtime.Self())
				if err != nil {
					t.Error(err)
				}
				reaped <- len(gone)
				w.Close()
			})
			s := g.Spec("import sys; print('up', flush=True); sys.stdin.read(); sys.exit(7)")
			s.Owner = tt.owner
			exit, err := g.Driver.Run(t.Context(), s, runtime.Stdio{Stdin: in, Stdout: out, Stderr: io.Discard})
			w.Close()
			if got := <-reaped; got != tt.want || err != nil || (exit.Code == 7) != (tt.want == 0) {
				t.Errorf("owner %+v: reaped %d, %+v, %v; want %d reaped", tt.owner, got, exit, err, tt.want)
			}
		}
	}},
}

// blocked returns a reader that gives nothing until the test is over.
func blocked(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
