// Package sandboxtest holds what can only be seen where the policy, the guest and a real engine
// meet: Bombs, which uses up everything that is limited, and sees that the right limit is named and
// nothing else is harmed.
package sandboxtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	memory = 256 << 20
	pids   = 64
	noFile = 1024
	shm    = 16 << 20
	output = 64 << 10
)

// config is a sandbox's whose limits are soon used up.
func config(image string, owner runtime.Owner) sandbox.Config {
	return sandbox.Config{
		Images:        []string{image},
		User:          "65534:65534",
		Limits:        runtime.Limits{Memory: memory, PIDs: pids, CPUs: 1, NoFile: noFile, Shm: shm},
		Owner:         owner,
		OutputLimit:   output,
		ArtifactLimit: 1 << 20,
		MaxCalls:      1,

		MaxRuns:       8,
		MaxContainers: 8,
		StartTimeout:  time.Minute, // the machine may be busy
		MaxTimeout:    time.Minute,
	}
}

// goneWithin is how long the processes of a run may take to go, once it has ended.
const goneWithin = 10 * time.Second

// bomb is code that uses something up, and what is to be said of it.
type bomb struct {
	name, code string
	timeout    time.Duration // zero: it is to end long before its time
	status     []sandbox.Status
	says       string // in the message or the exception
	prints     string // on stdout
	// what is so with runsc instead; one that is to fail must fail none the less
	gVisor string
	check  func(*testing.T, run) string // what is wrong, if anything
}

// run is a bomb that has gone off.
type run struct {
	sandbox.Result
	facts runtime.Facts
	kept  map[string]sandbox.EnforcedBy // who keeps each limit
	took  time.Duration
}

// Bombs sets off every bomb on an engine, each in a run of its own, and after each sees that its
// processes are gone, that the next run is fine, and at the end that this process and the machine
// have their memory back. The image has python3.
func Bombs(t *testing.T, d runtime.Driver, image string) {
	facts, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(image, runtime.Self())
	s, err := sandbox.New(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it has none to give
	fine(t, s)      // the image is probed, and the guest's first run takes what it keeps
	kept := map[string]sandbox.EnforcedBy{}
	for _, k := range sandbox.Enforcements(facts, cfg) {
		kept[k.Limit] = k.By
		t.Logf("%s: %s, kept by %s", k.Limit, k.Value, k.By)
	}
	own, machine := heap(), available()
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) { b.setOff(t, s, facts, kept) })
	}
	if grown := heap() - own; grown > 32<<20 {
		t.Errorf("this process holds %d MiB more than before", grown>>20)
	}
	if left := shortOf(t.Context(), machine-memory); left > 0 {
		t.Errorf("the machine has %d MiB less than before, and %d MiB of slack", left>>20, int64(memory)>>20)
	}
}

// setOff runs a bomb and what comes after it.
func (b bomb) setOff(t *testing.T, s *sandbox.Sandbox, facts runtime.Facts,
	kept map[string]sandbox.EnforcedBy) {
	// Every process that the code starts has the name of the first; the host sees names.
	name := "b" + strings.ToLower(rand.Text())[:12]
	code := fmt.Sprintf("with open('/proc/self/comm', 'w') as _f: _f.write(%q)\ndel _f\n", name) + b.code
	timeout := b.timeout
	if timeout == 0 {
		timeout = time.Minute
	}
	begin := time.Now()
	got, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: timeout}, noHost{})
	if err != nil {
		t.Fatalf("no result: %v", err)
	}
	r := run{got, facts, kept, time.Since(begin)}
	t.Logf("%s, %s %s (%v)", r.Status, r.Message, failure(r.Error), r.took.Round(10*time.Millisecond))
	wrong := b.wrong(t, r)
	if b.gVisor != "" && filepath.Base(facts.OCIRuntime) == "runsc" && len(wrong) > 0 &&
		slices.Contains(b.status, sandbox.StatusOK) == (r.Status == sandbox.StatusOK) {
		t.Logf("PROPERTY: %s", b.gVisor)
		wrong = nil
	}
	for _, w := range wrong {
		t.Error(w)
	}
	// the container may be on its way to its end
	for begin := time.Now(); named(name) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > goneWithin {
			t.Errorf("after %v, %d of its processes are left on the machine", goneWithin, named(name))
			break
		}
	}
	fine(t, s)
}

// wrong returns in what the outcome differs from what it is to be.
func (b bomb) wrong(t *testing.T, r run) []string {
	var wrong []string
	if !slices.Contains(b.status, r.Status) {
		wrong = append(wrong, fmt.Sprintf("the status is %s, want one of %v; stdout %.200q, stderr %.500q",
			r.Status, b.status, r.Stdout(), r.Stderr()))
	}
	if !strings.Contains(r.Message+failure(r.Error), b.says) {
		wrong = append(wrong, fmt.Sprintf("nothing is said of %q", b.says))
	}
	if !strings.Contains(r.Stdout(), b.prints) {
		wrong = append(wrong, fmt.Sprintf("it printed %.300q, want %q", r.Stdout(), b.prints))
	}
	if b.check != nil {
		if w := b.check(t, r); w != "" {
			wrong = append(wrong, w)
		}
	}
	return wrong
}

// fine makes a run that has nothing to do with any before it.
func fine(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	code := "import os\nprint(sum(1 for p in os.listdir('/proc') if p.isdigit()), os.listdir('/tmp'), " +
		"os.listdir('/dev/shm'))"
	r, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: time.Minute}, noHost{})
	if err != nil || r.Status != sandbox.StatusOK || r.Stdout() != "2 [] []\n" {
		t.Errorf("a run of its own is not as it should be: %s %s %q, %v", r.Status, r.Message, r.Stdout(), err)
	}
}

func failure(f *sandbox.Failure) string {
	if f == nil {
		return ""
	}
	return f.Type + ": " + f.Message
}

type noHost struct{}

func (noHost) Call(context.Context, sandbox.Call) (json.RawMessage, error) {
	return nil, errors.New("there are no tools")
}

// heap returns what this process holds, in bytes, with the garbage gone.
func heap() int64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// available returns the bytes that the machine could give out; an engine on another one makes the
// test a weaker one.
func available() int64 {
	return 1024 * field("/proc/meminfo", "MemAvailable:")
}

// shortOf waits for the machine to have want bytes available, and returns what is missing in the
// end: others work on it too.
func shortOf(ctx context.Context, want int64) int64 {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if short := want - available(); short <= 0 || ctx.Err() != nil {
			return short
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// field returns a number in a file of lines such as "Name:  123 kB"; 0 where there isn't one.
func field(path, name string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}

// named counts the machine's processes of a name.
func named(name string) int {
	dirs, _ := os.ReadDir("/proc")
	n := 0
	for _, d := range dirs {
		if b, err := os.ReadFile("/proc/" + d.Name() + "/comm"); err == nil &&
			strings.TrimSpace(string(b)) == name {
			n++
		}
	}
	return n
}
