//go:build unix && remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// standIn is a podman command whose machine is an API server in the test: it tells the test of each
// start and stop, through a pipe, and waits for its answer.
const standIn = `#!/bin/sh
dir=$(dirname "$0")
case "$*" in
"system connection list --format json")
	echo '[{"Name":"dev","URI":"unix://'$dir'/podman.sock","IsMachine":true,"Default":true}]' ;;
"machine list --format json")
	running=false; [ -e $dir/running ] && running=true
	echo '[{"Name":"other","Running":false},{"Name":"dev","Default":true,"Running":'$running'}]' ;;
"--connection dev ps --format json")
	if [ -e $dir/foreign ]; then echo '[{"Id":"another"}]'; else echo '[]'; fi ;;
"machine start dev" | "machine stop dev")
	echo "Machine: $2"
	echo "$*" >$dir/events
	read answer <$dir/answers
	if [ $2 = start ]; then touch $dir/running; else rm $dir/running; fi
	echo "done: $2" >&2
	[ "$answer" = ok ] ;;
*)
	echo "$*" >>$dir/unexpected
	exit 1 ;;
esac
`

// vm is the test's side of a stand-in.
type vm struct {
	t       *testing.T
	dir     string
	events  chan string // what the stand-in was asked; it waits for answer
	answers *os.File

	mu     sync.Mutex
	server *http.Server
}

func newVM(t *testing.T) *vm {
	t.Helper()
	v := &vm{t: t, dir: t.TempDir(), events: make(chan string)}
	if err := os.WriteFile(filepath.Join(v.dir, "podman"), []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	open := func(name string) *os.File {
		path := filepath.Join(v.dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	asked := open("events")
	v.answers = open("answers")
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(asked); lines.Scan(); {
			v.events <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		v.down()
		asked.Close()
		v.answers.Close()
		<-read
		if b, err := os.ReadFile(filepath.Join(v.dir, "unexpected")); err == nil {
			t.Errorf("podman was asked: %s", b)
		}
	})
	return v
}

// expect waits for what the stand-in is asked next, does it, and has it answered.
func (v *vm) expect(want, answer string) {
	v.t.Helper()
	v.asked(want)
	v.answer(want, answer)
}

// asked waits for what the stand-in is asked next, which stays unanswered.
func (v *vm) asked(want string) {
	v.t.Helper()
	select {
	case got := <-v.events:
		if got != want {
			v.t.Errorf("podman was asked to %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		v.t.Fatalf("podman was not asked to %s", want)
	}
}

// answer does what the stand-in was asked, and has it answered.
func (v *vm) answer(command, answer string) {
	if strings.Contains(command, "start") {
		v.up()
	} else {
		v.down()
	}
	fmt.Fprintln(v.answers, answer)
}

func (v *vm) up() {
	l, err := net.Listen("unix", filepath.Join(v.dir, "podman.sock"))
	if err != nil {
		v.t.Error(err)
		return
	}
	s := &http.Server{Handler: http.HandlerFunc(v.serve)}
	go s.Serve(l)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.server = s
}

func (v *vm) down() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.server != nil {
		v.server.Close()
		v.server = nil
	}
}

func (v *vm) serve(w http.ResponseWriter, r *http.Request) {
	reply := asPodman(w, "5.4.2")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/_ping"):
	case strings.HasSuffix(path, "/info"):
		about := info(false, "v2")
		about["host"].(map[string]any)["kernel"] = "6.6.32-machine"
		reply(http.StatusOK, about)
	case strings.Contains(path, "/images/"):
		reply(http.StatusNotFound, map[string]any{"message": "no such image", "response": http.StatusNotFound})
	default:
		http.Error(w, `{"message":"not here"}`, http.StatusInternalServerError)
	}
}

func (v *vm) driver(idle time.Duration) *Driver {
	d := New(Config{Binary: filepath.Join(v.dir, "podman"), RuntimeDir: v.dir, IdleTimeout: idle})
	d.client = true
	return d
}

// started is a driver whose machine it has started itself.
func (v *vm) started(idle time.Duration) *Driver {
	v.t.Helper()
	d := v.driver(idle)
	errs := make(chan error, 1)
	go func() { errs <- d.Start(v.t.Context(), nil) }()
	v.expect("machine start dev", "ok")
	if err := <-errs; err != nil {
		v.t.Fatal(err)
	}
	return d
}

// TestMachineAtRest: one that doesn't run is dormant, is started once for all who wait, and stopped
// at the end.
func TestMachineAtRest(t *testing.T) {
	v := newVM(t)
	d := v.driver(0)
	_, err := d.Facts(t.Context())
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !un.Dormant || un.Hint() != "run: podman machine start dev" {
		t.Fatalf("got %v; want it dormant with a hint", err)
	}
	var mu sync.Mutex
	var lines []string
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := d.Start(t.Context(), func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			}); err != nil {
				t.Error(err)
			}
		})
	}
	v.asked("machine start dev") // for one of the four, who is told
	impatient, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := d.Start(impatient, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	v.answer("machine start dev", "ok")
	wg.Wait()
	mu.Lock()
	if !slices.Contains(lines, "done: start") {
		t.Errorf("progress was %q", lines)
	}
	mu.Unlock()
	f, err := d.Facts(t.Context())
	if err != nil || !f.Desktop || !f.Remote || f.Rootless {
		t.Errorf("got %+v, %v; want a rootful engine in a machine, which is the wall", f, err)
	}
	if err := d.Start(t.Context(), nil); err != nil { // it runs
		t.Error(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	v.expect("machine stop dev", "ok")
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestMachineOfTheUser: one that runs already, or that somebody else uses, isn't stopped.
func TestMachineOfTheUser(t *testing.T) {
	t.Run("it ran already", func(t *testing.T) {
		v := newVM(t)
		if err := os.WriteFile(filepath.Join(v.dir, "running"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		v.up()
		d := v.driver(time.Millisecond)
		if err := d.Start(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil { // the stand-in gets no answer: a stop would hang, and be told
			t.Error(err)
		}
	})
	t.Run("somebody's container runs there", func(t *testing.T) {
		v := newVM(t)
		if err := os.WriteFile(filepath.Join(v.dir, "foreign"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d := v.started(0)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestIdleMachine: it is stopped when nothing has run for a while; a run keeps it up; and one that
// comes while it stops waits and starts it again.
func TestIdleMachine(t *testing.T) {
	v := newVM(t)
	d := v.started(time.Millisecond)
	v.expect("machine stop dev", "ok")
	// The next use starts it again; what only looks for orphans doesn't.
	if o, err := d.Orphans(t.Context(), runtime.Self()); err != nil &&
		!errors.As(err, new(*runtime.UnavailableError)) || len(o) > 0 {
		t.Errorf("Orphans: %v, %v", o, err)
	}
	awake := make(chan func(), 1)
	use := func() {
		release, err := d.machine.awake(t.Context())
		if err != nil {
			t.Error(err)
		}
		awake <- release
	}
	go use()
	v.expect("machine start dev", "ok")
	release := <-awake
	if _, err := d.Facts(t.Context()); err != nil {
		t.Error(err)
	}
	d.machine.idle() // as its timer would; but it is in use
	if d.machine.asleep() {
		t.Error("it was stopped under a run")
	}
	release()
	v.asked("machine stop dev")
	go use()
	for waiting := false; !waiting; { // until the run waits for the stop
		goruntime.Gosched()
		d.machine.mu.Lock()
		waiting = d.machine.users == 1
		d.machine.mu.Unlock()
	}
	v.answer("machine stop dev", "ok")
	v.expect("machine start dev", "ok")
	(<-awake)()
	v.expect("machine stop dev", "ok")
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestMachineThatDoesNotStart: the error has what podman said, and a hint.
func TestMachineThatDoesNotStart(t *testing.T) {
	v := newVM(t)
	d := v.driver(0)
	defer d.Close()
	errs := make(chan error, 1)
	go func() { errs <- d.Start(t.Context(), nil) }()
	v.expect("machine start dev", "no")
	err := <-errs
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || un.Hint() == "" || !strings.Contains(err.Error(), "done: start") {
		t.Errorf("got %v", err)
	}
}
