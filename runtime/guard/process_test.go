//go:build linux

package guard

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// groups counts what is registered.
type groups struct{ now, ever atomic.Int64 }

func (g *groups) Group(int) func() {
	g.now.Add(1)
	g.ever.Add(1)
	return func() { g.now.Add(-1) }
}

func TestEnd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mode  string
		ready int
		want  syscall.Signal
	}{
		{name: "meek", mode: "meek", ready: 1, want: syscall.SIGTERM},
		{name: "ignores SIGTERM", mode: "stubborn", ready: 1, want: syscall.SIGKILL},
		{name: "with a grandchild that ignores SIGTERM", mode: "parent", ready: 2, want: syscall.SIGTERM},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			te, g := newTether(t), &groups{}
			p := launched(t, te, g, tt.mode)
			for range tt.ready {
				te.ready(t)
			}
			if g.now.Load() != 1 {
				t.Errorf("registered %d groups, want 1", g.now.Load())
			}
			if p.State() != nil {
				t.Error("there is a state before the end")
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if err := p.End(100 * time.Millisecond); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			te.released(t)
			ws := p.State().Sys().(syscall.WaitStatus)
			if got := ws.Signal(); got != tt.want {
				t.Errorf("the leader was ended by %v, want %v", got, tt.want)
			}
			if g.now.Load() != 0 {
				t.Errorf("still registered after End")
			}
		})
	}
}

func TestEndAfterTheLeaderLeft(t *testing.T) {
	te := newTether(t)
	c := exec.Command(os.Args[0], "child", "orphaning")
	c.ExtraFiles = []*os.File{te.w}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin = r
	p, err := Launch(c, nil)
	_ = r.Close()
	if err != nil {
		t.Fatal(err)
	}
	orphan := te.ready(t)
	_ = w.Close()
	<-p.Exited()
	if err := p.End(0); err != nil {
		t.Error(err)
	}
	ended(t, orphan)
	te.released(t)
	if !p.State().Success() {
		t.Errorf("the leader's state is %v, want its own exit status 0", p.State())
	}
}

func TestLaunchFails(t *testing.T) {
	g := &groups{}
	if _, err := Launch(exec.Command(filepath.Join(t.TempDir(), "none")), g); err == nil {
		t.Error("no error")
	}
	if g.ever.Load() != 0 {
		t.Error("a group was registered")
	}
}

func TestWatchReadsLines(t *testing.T) {
	dir := t.TempDir()
	keep, gone := filepath.Join(dir, "keep"), filepath.Join(dir, "a\nb \xff")
	for _, f := range []string{keep, gone} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := entry{ID: 1, Path: []byte(gone)}
	for _, tt := range []struct {
		name    string
		input   string
		removed bool
	}{
		{name: "end of the pipe", input: lines(file), removed: true},
		{name: "good order", input: lines(file, entry{End: true})},
		{name: "forgotten", input: lines(file, entry{ID: 1, Forget: true})},
		{name: "another forgotten", input: lines(file, entry{ID: 2, Forget: true}), removed: true},
		{name: "last line cut off", input: strings.TrimSuffix(lines(file), "}\n")},
		{name: "what can't be meant", removed: true, input: lines(entry{}, entry{ID: 2, PGID: -5}, entry{ID: 3,
			PGID: 1},
			entry{ID: 5, Path: []byte("/")}, entry{ID: 6, Path: []byte("rel")}, entry{ID: 7, Mark: "short"}, file)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(gone, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Watch(strings.NewReader(tt.input), nil); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(gone); os.IsNotExist(err) != tt.removed {
				t.Errorf("the file: %v, want removed=%v", err, tt.removed)
			}
			if _, err := os.Stat(keep); err != nil {
				t.Error(err)
			}
		})
	}
}

// A group whose number belongs to somebody else by now is left alone.
func TestReusedNumberIsLeftAlone(t *testing.T) {
	te := newTether(t)
	p := launched(t, te, nil, "meek")
	te.ready(t)
	start, session := identity(p.PID())
	// the session is 0 where its leader is in a PID namespace outside ours, as under some CI
	// systems
	if start == 0 {
		t.Fatalf("identity: %d %d", start, session)
	}
	line := func(start uint64, session int) string {
		return lines(entry{ID: 1, PGID: p.PID(), Start: start, Session: session})
	}
	for name, l := range map[string]string{"another leader": line(start+1, session),
		"another session": line(start, session+1)} {
		if _, err := Watch(strings.NewReader(l), nil); err != nil {
			t.Error(err)
		}
		select {
		case <-p.Exited():
			t.Fatalf("%s: the process was ended", name)
		default:
		}
	}
	if _, err := Watch(strings.NewReader(line(start, session)), nil); err != nil {
		t.Error(err)
	}
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Error("the registered process was not ended")
	}
}

// unregistered is a Guard whose bridge always dies between a child's start and its registration.
type unregistered struct{ marks []entry }

func (u *unregistered) Group(int) func() { return func() {} }

func (u *unregistered) Mark(mark string) func() {
	u.marks = append(u.marks, entry{ID: 1, Mark: mark})
	return func() {}
}

func TestMarkedChildIsEnded(t *testing.T) {
	te, u := newTether(t), &unregistered{}
	p := launched(t, te, u, "parent")
	q := launched(t, te, nil, "meek")
	for range 3 {
		te.ready(t)
	}
	if _, err := Watch(strings.NewReader(lines(u.marks...)), nil); err != nil {
		t.Error(err)
	}
	if populated(p.PID()) {
		t.Error("the marked child, or its child, is still there")
	}
	if !populated(q.PID()) {
		t.Error("another child was ended")
	}
}

func TestMarkIsForgottenOnceRegistered(t *testing.T) {
	te := newTether(t)
	g, _ := start(t)
	p := launched(t, te, g, "meek")
	te.ready(t)
	g.mu.Lock()
	got := slices.Collect(maps.Values(g.entries))
	g.mu.Unlock()
	if len(got) != 1 || got[0].PGID != p.PID() {
		t.Errorf("registered: %+v, want the group alone", got)
	}
}

func TestStatOfOddNames(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err) // the other tests need it too
	}
	odd := filepath.Join(t.TempDir(), "a) Z 1 (b")
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	p, err := Launch(exec.Command(odd, "60"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.End(0) }()
	st, ok := readStat(strconv.Itoa(p.PID()))
	if !ok || st.ended {
		t.Errorf("got %+v %v, want a living process", st, ok)
	}
	if diff := cmp.Diff(p.PID(), st.pgid); diff != "" {
		t.Error(diff)
	}
}

// TestEndTracked: what left the group in a session of its own lives on when the process is ended,
// also when the leader has long gone and when the bridge is killed later. One that the bridge
// hasn't ended by then is ended with it, and named.
func TestEndTracked(t *testing.T) {
	for _, first := range []bool{false, true} {
		te, other := newTether(t), newTether(t)
		g, _ := start(t)
		q := launched(t, other, g, "loner")
		pids := []int{other.ready(t), other.ready(t)}
		p := launched(t, te, g, "loner")
		stray := te.child(t, p)
		if first {
			_ = syscall.Kill(p.PID(), syscall.SIGKILL)
			<-p.Exited()
		}
		if err := p.End(100 * time.Millisecond); err != nil {
			t.Error(err)
		}
		log := &syncBuffer{}
		// as after kill -9
		if _, err := Watch(strings.NewReader(g.registered()), slog.New(slog.NewTextHandler(log, nil))); err != nil {
			t.Error(err)
		}
		_ = q.End(0)
		other.released(t)
		for _, pid := range pids {
			if want := fmt.Sprintf(" pid=%d program=guard.test ", pid); !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, log)
			}
		}
		if st, ok := readStat(strconv.Itoa(stray)); !ok || st.ended ||
			strings.Contains(log.String(), strconv.Itoa(stray)) {
			t.Errorf("what the first one started in a session of its own has ended; the log:\n%s", log)
		}
		_ = syscall.Kill(stray, syscall.SIGKILL)
		te.released(t)
	}
}

// registered is all that the watchdog was told and not told to forget.
func (g *Guard) registered() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return lines(slices.Collect(maps.Values(g.entries))...)
}

// lines returns entries as the watchdog reads them.
func lines(all ...entry) string {
	var b strings.Builder
	for _, e := range all {
		_ = json.NewEncoder(&b).Encode(e) // it always can be
	}
	return b.String()
}
