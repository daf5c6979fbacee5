//go:build linux

package guard

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also each of the processes the tests need: os.Args[1] says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "watchdog":
			if err := Watch(os.Stdin); err != nil {
				os.Exit(1)
			}
			return
		case "bridge":
			bridge(os.Args[2:])
			return
		case "child":
			child(os.Args[2])
			return
		}
	}
	// A program built with -race sleeps for a second before it exits unless told not to.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	code := m.Run()
	if code == 0 {
		code = leaks()
	}
	os.Exit(code)
}

// leaks fails the run when goroutines or children are left.
func leaks() int {
	deadline := time.Now().Add(5 * time.Second)
	for goruntime.NumGoroutine() > 2 && time.Now().Before(deadline) { // this one, and os/signal's
		goruntime.Gosched()
	}
	if n := goruntime.NumGoroutine(); n > 2 {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%d goroutines are left:\n%s\n", n, buf[:goruntime.Stack(buf, true)])
		return 1
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == nil {
		fmt.Fprintf(os.Stderr, "a child process is left (%d)\n", pid)
		return 1
	}
	return 0
}

// child is a process to be ended. It holds descriptor 3, whose other end tells the test when the last holder is gone, and
// writes its pid to it when it is ready.
func child(mode string) {
	tether := os.NewFile(3, "tether")
	switch mode {
	case "meek":
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "parent", "orphaning":
		c := exec.Command(os.Args[0], "child", "stubborn")
		c.ExtraFiles = []*os.File{tether}
		if err := c.Start(); err != nil {
			panic(err)
		}
		if mode == "orphaning" {
			buf := make([]byte, 1)
			_, _ = os.Stdin.Read(buf) // the test says when to leave the other behind
			return
		}
	}
	fmt.Fprintf(tether, "%s %d\n", mode, os.Getpid())
	select {} // stdin's end is ignored
}

// bridge registers a child of each given mode and a directory, says so on stdout, and waits to be killed.
func bridge(args []string) {
	g, err := Start([]string{os.Args[0], "watchdog"})
	if err != nil {
		panic(err)
	}
	g.File(args[0])
	fmt.Printf("%d\n", g.dog.cmd.Process.Pid)
	for _, mode := range args[1:] {
		c := exec.Command(os.Args[0], "child", mode)
		c.ExtraFiles = []*os.File{os.NewFile(3, "tether")}
		if _, err := Launch(c, g); err != nil {
			panic(err)
		}
	}
	select {}
}

// tether is a pipe whose write end only child processes hold.
type tether struct {
	r *bufio.Reader
	w *os.File
}

func newTether(t *testing.T) *tether {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	return &tether{r: bufio.NewReader(r), w: w}
}

// ready waits for one process that isn't of the mode "orphaning" and returns its pid.
func (te *tether) ready(t *testing.T) int {
	t.Helper()
	line, err := te.r.ReadString('\n')
	if err != nil {
		t.Fatalf("waiting for a child: %v", err)
	}
	_, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("a child said %q", line)
	}
	return n
}

// released waits until no process holds the tether.
func (te *tether) released(t *testing.T) {
	t.Helper()
	_ = te.w.Close()
	if _, err := io.Copy(io.Discard, te.r); err != nil {
		t.Fatalf("a process is left: %v", err)
	}
}

// ended waits until a process that needn't be our child is gone or a zombie.
func ended(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone already
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20000)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			t.Fatalf("process %d is still there (%v)", pid, err)
		}
		return
	}
}

// ignoring waits until a process has got as far as to ignore SIGTERM.
func ignoring(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); goruntime.Gosched() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, mask, _ := strings.Cut(string(b), "SigIgn:\t")
		mask, _, _ = strings.Cut(mask, "\n")
		if bits, err := strconv.ParseUint(mask, 16, 64); err == nil && bits&(1<<(uint(syscall.SIGTERM)-1)) != 0 {
			return
		}
	}
	t.Fatalf("process %d never ignored SIGTERM", pid)
}

func launch(t *testing.T, te *tether, groups Groups, mode string) *Process {
	t.Helper()
	c := exec.Command(os.Args[0], "child", mode)
	c.ExtraFiles = []*os.File{te.w}
	p, err := Launch(c, groups)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.End(0) })
	return p
}

func start(t *testing.T) (*Guard, *syncBuffer) {
	t.Helper()
	g, err := Start([]string{os.Args[0], "watchdog"})
	if err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	g.Log = slog.New(slog.NewTextHandler(log, nil))
	t.Cleanup(func() { _ = g.Close() })
	return g, log
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestKilledBridgeLeavesNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		modes []string
		ready int // processes that report, the grandchildren included
		storm bool
	}{
		{name: "nothing registered"},
		{name: "a meek child", modes: []string{"meek"}, ready: 1},
		{name: "a child that ignores SIGTERM and EOF", modes: []string{"stubborn"}, ready: 1},
		{name: "a child with a stubborn grandchild", modes: []string{"parent"}, ready: 2},
		{name: "several", modes: []string{"parent", "stubborn", "meek", "parent"}, ready: 6},
		{name: "killed while it starts children", modes: slices.Repeat([]string{"parent", "meek"}, 10), ready: 3},
		{name: "the watchdog is sent signals first", modes: []string{"stubborn"}, ready: 1, storm: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			te := newTether(t)
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			b := exec.Command(os.Args[0], append([]string{"bridge", dir}, tt.modes...)...)
			b.ExtraFiles = []*os.File{te.w}
			b.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := b.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			watchdog, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			for range tt.ready {
				te.ready(t)
			}
			if tt.storm {
				ignoring(t, watchdog)
				for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
					_ = syscall.Kill(watchdog, s)
				}
			}
			_ = syscall.Kill(-b.Process.Pid, syscall.SIGKILL) // the bridge's whole group: the watchdog isn't in it
			_ = b.Wait()
			ended(t, watchdog)
			te.released(t)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the registered directory: got %v, want it removed", err)
			}
		})
	}
}

func TestWatchdogHoldsNothing(t *testing.T) {
	// A descriptor without close-on-exec, as a bridge may inherit one.
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fds[0]); _ = syscall.Close(fds[1]) }()
	g, _ := start(t)
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.dog.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", g.dog.cmd.Process.Pid, n.Name()))
		if fd, _ := strconv.Atoi(n.Name()); fd > 0 && strings.HasPrefix(target, "pipe:") {
			t.Errorf("the watchdog holds descriptor %d, %s", fd, target)
		}
	}
	st, ok := readStat(strconv.Itoa(g.dog.cmd.Process.Pid))
	if !ok || st.session != g.dog.cmd.Process.Pid {
		t.Errorf("the watchdog's session is %d, want its own, %d", st.session, g.dog.cmd.Process.Pid)
	}
}

func TestCloseEndsTheWatchdogOnly(t *testing.T) {
	te := newTether(t)
	g, log := start(t)
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.File(file)
	p := launch(t, te, g, "meek")
	te.ready(t)
	pid := g.dog.cmd.Process.Pid
	for range 2 {
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ended(t, pid)
	select {
	case <-p.Exited():
		t.Error("a child was ended")
	default:
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file was removed: %v", err)
	}
	g.Group(p.PID())() // does nothing, and doesn't start a watchdog
	if g.dog != nil || log.String() != "" {
		t.Errorf("after Close: watchdog %v, log %q", g.dog, log)
	}
}

func TestWatchdogKilled(t *testing.T) {
	for _, tt := range []struct {
		name   string
		steady bool // it ran for a while: another is started at once, not with the next registration
	}{{name: "just started"}, {name: "steady", steady: true}} {
		t.Run(tt.name, func(t *testing.T) {
			te := newTether(t)
			g, log := start(t)
			first := launch(t, te, g, "stubborn")
			te.ready(t)
			g.mu.Lock()
			old := g.dog
			if tt.steady {
				old.since = old.since.Add(-time.Hour)
			}
			g.mu.Unlock()
			if err := old.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-old.gone
			var second *Process
			if !tt.steady {
				second = launch(t, te, g, "meek")
				te.ready(t)
			}
			dog := replacement(t, g, old)
			// The new one knows all: it ends them when the pipe ends as it does with the bridge's death.
			_ = dog.in.Close()
			<-first.Exited()
			if second != nil {
				<-second.Exited()
				_ = second.End(0)
			}
			_ = first.End(0)
			te.released(t)
			if !strings.Contains(log.String(), "watchdog") {
				t.Errorf("the loss was not logged: %q", log)
			}
		})
	}
}

// replacement waits for a watchdog other than old.
func replacement(t *testing.T, g *Guard, old *dog) *dog {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); goruntime.Gosched() {
		g.mu.Lock()
		d := g.dog
		g.mu.Unlock()
		if d != nil && d != old {
			return d
		}
	}
	t.Fatal("no new watchdog")
	return nil
}

func TestWatchdogStopped(t *testing.T) {
	te := newTether(t)
	g, log := start(t)
	first := g.dog
	if err := syscall.Kill(first.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 4000) // fills the pipe soon
	for range 20 {
		g.File("/nonexistent/" + line)
	}
	if g.dog == first {
		t.Errorf("a watchdog that doesn't read was not replaced")
	}
	p := launch(t, te, g, "meek")
	te.ready(t)
	if err := p.End(time.Second); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "listen") {
		t.Errorf("the loss was not logged: %q", log)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start([]string{filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a watchdog that can't be started: no error")
	}
	if _, err := Start(nil); err == nil {
		t.Error("no command: no error")
	}
}
