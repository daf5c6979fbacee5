//go:build linux

package guard

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		{name: "a grandchild that left the group", modes: []string{"loner"}, ready: 2},
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
	p := launched(t, te, g, "meek")
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
			first := launched(t, te, g, "stubborn")
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
				second = launched(t, te, g, "meek")
				te.ready(t)
			}
			dog := replacement(t, g, old)
			// The new one knows all: it ends them when the pipe ends as it does with the bridge's
			// death.
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); goruntime.Gosched() {
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
	p := launched(t, te, g, "meek")
	te.ready(t)
	if err := p.End(time.Second); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "listen") {
		t.Errorf("the loss was not logged: %q", log)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := begun(Config{Argv: []string{filepath.Join(t.TempDir(), "none")}}); err == nil {
		t.Error("a watchdog that can't be started: no error")
	}
	if _, err := begun(Config{}); err == nil {
		t.Error("no command: no error")
	}
}

// TestBegunWhenNeeded: a Guard that was only made has no watchdog; the first registration starts
// one, and Begin one at the most.
func TestBegunWhenNeeded(t *testing.T) {
	g, err := New(Config{Argv: []string{os.Args[0], "watchdog"}})
	if err != nil {
		t.Fatal(err)
	}
	if g.dog != nil {
		t.Error("it has a watchdog before it was asked for one")
	}
	g.File(filepath.Join(t.TempDir(), "none"))
	first := g.dog
	if first == nil {
		t.Fatal("it has no watchdog for a file")
	}
	if err := g.Begin(); err != nil || g.dog != first {
		t.Errorf("got another watchdog, or %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Begin(); err != nil || g.dog != nil {
		t.Errorf("it was begun after Close, or %v", err)
	}
}
