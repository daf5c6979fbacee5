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
	goruntime "runtime"
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
			if _, err := Watch(os.Stdin, nil); err != nil {
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
	deadline := time.Now().Add(30 * time.Second)
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

// child is a process to be ended. It holds descriptor 3, whose other end tells the test when the
// last holder is gone, and writes its pid to it when it is ready.
func child(mode string) {
	tether := os.NewFile(3, "tether")
	switch mode {
	case "meek":
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "loner": // starts a process that leaves the group and the session, and doesn't end when asked to
		c := exec.Command(os.Args[0], "child", "stubborn")
		c.ExtraFiles = []*os.File{tether}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
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
	park() // stdin's end is ignored
}

// park keeps a process there. An empty select wouldn't: the runtime ends a program of which no
// goroutine can go on.
func park() {
	for {
		time.Sleep(time.Hour)
	}
}

// bridge registers a child of each given mode and a directory, says so on stdout, and waits to be
// killed.
func bridge(args []string) {
	g, err := begun(Config{Argv: []string{os.Args[0], "watchdog"}})
	if err != nil {
		panic(err)
	}
	g.File(args[0])
	fmt.Printf("%d\n", g.dog.cmd.Process.Pid)
	for _, mode := range args[1:] {
		c := exec.Command(os.Args[0], "child", mode)
		c.ExtraFiles = []*os.File{os.NewFile(3, "tether")}
		start := Launch
		if mode == "loner" {
			start = LaunchTracked
		}
		if _, err := start(c, g); err != nil {
			panic(err)
		}
	}
	park()
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
	_ = r.SetReadDeadline(time.Now().Add(time.Minute))
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

// child waits for a process and its child, and returns the child's pid.
func (te *tether) child(t *testing.T, p *Process) int {
	t.Helper()
	a, b := te.ready(t), te.ready(t)
	if a == p.PID() {
		return b
	}
	return a
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
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); goruntime.Gosched() {
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

func launched(t *testing.T, te *tether, groups Groups, mode string) *Process {
	t.Helper()
	return launchedAs(t, te, groups, mode, mode == "loner")
}

func launchedAs(t *testing.T, te *tether, groups Groups, mode string, tracked bool) *Process {
	t.Helper()
	c := exec.Command(os.Args[0], "child", mode)
	c.ExtraFiles = []*os.File{te.w}
	p, err := launch(c, groups, tracked)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.End(0) })
	return p
}

func start(t *testing.T) (*Guard, *syncBuffer) {
	t.Helper()
	log := &syncBuffer{}
	g, err := begun(Config{Argv: []string{os.Args[0], "watchdog"}, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, log
}

// begun is New and Begin.
func begun(cfg Config) (*Guard, error) {
	g, err := New(cfg)
	if err == nil {
		err = g.Begin()
	}
	return g, err
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
