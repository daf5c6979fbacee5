package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// fleet is an engine of scripted guests, for tests in a bubble of their own time: a guest is ready
// after startTime, answers pings, and runs its code, the duration of which the code is, in that
// time: it prints its own number, its image, and what the code has behind the duration. It counts.
type fleet struct {
	runtimetest.Local
	startTime time.Duration

	mu       sync.Mutex
	broken   func() error // asked before each start
	away     bool         // it doesn't say what it is
	faults   map[string][]time.Time
	deaf     bool          // guests that are pinged hang from then on
	lent     lentTo        // what guests do that have waited
	answers  time.Duration // from a ping to its answer
	image    string
	found    string // image that it last said it has
	removed  bool   // there is no image but that, and before a pull not even that
	pulls    int    // how often an image was asked of its registry
	facts    runtime.Facts
	looks    int           // how often it was asked for its facts
	slow     time.Duration // until it answers that
	pings    int           // that guests got
	files    int           // frames with files that they got
	onFile   func()        // called for each
	strict   bool          // guests of more than an hour end after 20 s without a ping
	alive    map[int]context.CancelFunc
	idle     map[int]bool   // ready, and without code
	specs    []runtime.Spec // of the first 100 guests, in the order of their starts
	unready  string         // guests that import this module ahead end before they are ready
	ran      map[int]bool
	most     int // alive at a time
	starts   int
	makes    int           // how often it was asked to compile the guest's source, which it can't
	compiles time.Duration // what that takes
	reused   int           // guests that got code twice
	oom      bool          // the engine says so of guests that end
	answer   string        // fields of done, of guests that last
	removal  time.Duration
}

// lentTo is what a guest does that is pinged, and sent its execute behind that.
type lentTo int

const (
	runs           lentTo = iota
	diesSilent            // it takes the execute and ends before it has answered the ping
	diesOnceItSaid        // it answers the ping, takes the execute and ends
	talksFirst            // it prints and calls a tool before it answers the ping
)

func newFleet() *fleet {
	return &fleet{startTime: 150 * time.Millisecond, removal: 60 * time.Millisecond, image: "first",
		facts: runtime.Facts{Engine: "fleet", Rootless: true, CgroupVersion: 1},
		alive: map[int]context.CancelFunc{}, idle: map[int]bool{}, ran: map[int]bool{},
		faults: map[string][]time.Time{}}
}

// fault notes that something was made to go wrong. It is called with mu held.
func (f *fleet) fault(what string) { f.faults[what] = append(f.faults[what], time.Now()) }

// faulty says whether that was so between two moments, these included.
func (f *fleet) faulty(what string, from, to time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.faults[what], func(at time.Time) bool {
		return !at.Before(from) &&
			!at.After(to)
	})
}

func (f *fleet) Facts(context.Context) (runtime.Facts, error) {
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	time.Sleep(slow)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if f.away {
		f.fault("away")
		return runtime.Facts{}, &runtime.UnavailableError{Engine: "fleet", Err: errors.New("no answer")}
	}
	return f.facts, nil
}

func (f *fleet) FindImage(_ context.Context, ref string) (runtime.Image, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = f.image
	return runtime.Image{Ref: ref, ID: f.image}, f.image != "", nil
}

func (f *fleet) PullImage(_ context.Context, ref string, _ runtime.Progress) (runtime.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls++
	f.image = "pulled"
	return runtime.Image{Ref: ref, ID: f.image}, nil
}

func (f *fleet) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		f.mu.Lock()
		takes := f.compiles
		f.makes++
		id := -f.makes
		f.alive[id] = func() {}
		f.most = max(f.most, len(f.alive))
		defer f.set(func() { delete(f.alive, id) })
		f.mu.Unlock()
		sleep(ctx, takes)
		return runtime.Exit{Code: 1}, nil
	}
	f.mu.Lock()
	f.starts++
	id := f.starts
	if len(f.specs) < 100 { // a test of what grows has more
		f.specs = append(f.specs, spec)
	}
	if f.removed && spec.Image != f.image {
		f.mu.Unlock()
		return runtime.Exit{}, &runtime.ImageError{Ref: spec.Image, Err: errors.New("no such image"),
			Next: "pull it"}
	}
	if f.broken != nil {
		if err := f.broken(); err != nil {
			f.fault("broken")
			f.mu.Unlock()
			return runtime.Exit{}, err
		}
	}
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	f.alive[id] = kill
	f.most = max(f.most, len(f.alive))
	f.mu.Unlock()
	defer func() {
		std.End()
		f.mu.Lock()
		removal := f.removal
		f.mu.Unlock()
		time.Sleep(removal)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.alive, id)
		delete(f.idle, id)
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.guest(ctx, id, spec, std)
	}()
	select {
	case <-ended:
		f.mu.Lock()
		defer f.mu.Unlock()
		exit := runtime.Exit{OOMKilled: f.oom}
		if f.lent == diesOnceItSaid {
			exit.Code = entrypoint.ExitInternal
		}
		return exit, nil
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.idle[id] && !f.ran[id] {
			return runtime.Exit{}, ctx.Err() // it was not up yet
		}
		return runtime.Exit{Code: 137}, nil
	}
}

// guest ends with its stdin, or after its code.
func (f *fleet) guest(ctx context.Context, id int, spec runtime.Spec, std runtime.Stdio) {
	in := bufio.NewReader(std.Stdin)
	if err := transcript.SkipSource(in); err != nil {
		return
	}
	f.mu.Lock()
	took, ends := f.startTime, slices.Contains(importsAhead(spec), f.unready)
	f.mu.Unlock()
	if !sleep(ctx, took) || ends {
		return
	}
	f.mu.Lock()
	f.idle[id] = true
	f.mu.Unlock()
	defer f.set(func() { delete(f.idle, id) })
	fmt.Fprintln(std.Stdout, ready)
	code, hung, pinged, leaves, running, cancelled := false, false, false, false, "", ""
	silent := time.NewTimer(entrypoint.Silence)
	defer silent.Stop()
	if f.strict && spec.MaxAge > time.Hour {
		go func() {
			select {
			case <-silent.C:
				std.End()
			case <-ctx.Done():
			}
		}()
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var frame struct {
			Type, ID, Code string
			N              int64
			Keep           bool
		}
		if json.Unmarshal(line, &frame) != nil {
			return
		}
		f.mu.Lock()
		lent, answers := f.lent, f.answers
		if frame.Type == entrypoint.TypePing {
			f.pings++
			silent.Reset(entrypoint.Silence)
		}
		onFile := func() {}
		if frame.Type == entrypoint.TypeFile {
			f.files++
			if f.onFile != nil {
				onFile = f.onFile
			}
		}
		hung = hung || f.deaf && frame.Type == entrypoint.TypePing
		f.mu.Unlock()
		onFile()
		switch {
		case hung:
		case frame.Type == entrypoint.TypeCancel && frame.ID != running:
			cancelled = frame.ID
		case frame.Type == entrypoint.TypeExecute && frame.ID == cancelled:
			fmt.Fprintf(std.Stdout, `{"type":"done","id":%q,"wait":{"killed":"cancel"},"sandbox":{"state":"kept"}}`+
				"\n", frame.ID)
		case frame.Type == entrypoint.TypePing && leaves:
			fmt.Fprintln(std.Stderr, "mcp-bridge guest: it has had enough")
			return
		case frame.Type == entrypoint.TypePing:
			pinged = true
			if !sleep(ctx, answers) {
				return
			}
			switch lent {
			case diesSilent:
				continue
			case talksFirst:
				fmt.Fprintf(std.Stdout, `{"type":"output","id":"early","stream":"stdout","text":"early"}`+"\n")
				fmt.Fprintf(std.Stdout,
					`{"type":"tool_call","callId":"1","providerName":"shop","safeToolName":"echo","input":{}}`+"\n")
			}
			fmt.Fprintf(std.Stdout, `{"type":"pong","n":%d}`+"\n", frame.N)
		case frame.Type == entrypoint.TypeExecute && pinged && (lent == diesSilent || lent == diesOnceItSaid):
			return
		case slices.Contains([]string{entrypoint.TypeExec, entrypoint.TypeFiles, entrypoint.TypeUndo}, frame.Type):
			f.mu.Lock()
			fmt.Fprintf(std.Stdout, `{"type":"done","id":%q,%s}`+"\n", frame.ID, f.answer)
			f.mu.Unlock()
		case frame.Type == entrypoint.TypeExecute:
			f.mu.Lock()
			delete(f.idle, id)
			running, f.ran[id] = frame.ID, true
			length, tag, _ := strings.Cut(frame.Code, " ")
			leaves = tag == "leaves" // at the next ping
			if code {
				f.reused++
			}
			code = !frame.Keep
			state := ""
			if frame.Keep {
				f.idle[id] = true
				state = `,"sandbox":{"state":"kept"}`
			}
			wait := `{"exited":true,"status":0}`
			if frame.Keep && f.answer != "" {
				fmt.Fprintf(std.Stdout, `{"type":"done","id":%q,%s}`+"\n", frame.ID, f.answer)
				f.mu.Unlock()
				continue
			}
			if tag == "killed" {
				wait, state = `{"exited":false,"signal":9}`, `,"sandbox":{"state":"lost"}`
			}
			f.mu.Unlock()
			if tag == "calls" {
				fmt.Fprintf(std.Stdout, `{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"echo",`+
					`"input":{}}`+"\n", frame.N)
			}
			fmt.Fprintf(std.Stdout, `{"type":"output","id":%q,"stream":"stdout","text":"%d %s"}`+"\n",
				frame.ID, id, strings.TrimSpace(spec.Image+" "+tag))
			took, _ := time.ParseDuration(length)
			imported := "[]"
			if names, ok := strings.CutPrefix(tag, "imports "); ok {
				imported = names
			}
			go func() {
				for ; tag == "lingers" && took > time.Second && sleep(ctx, time.Second); took -= time.Second {
					fmt.Fprintf(std.Stdout, `{"type":"output","id":%q,"stream":"stdout","text":"."}`+"\n", frame.ID)
				}
				if sleep(ctx, took) {
					fmt.Fprintf(std.Stdout,
						`{"type":"done","id":%q,"ok":true,"durationMs":1,"wait":%s,"imported":%s%s}`+"\n",
						frame.ID, wait, imported, state)
				}
			}()
		}
	}
}

// importsAhead returns the modules that a container's command asks for.
func importsAhead(spec runtime.Spec) []string {
	var e entrypoint.Environment
	if len(spec.Command) == len(entrypoint.Boot(&e)) {
		if err := json.Unmarshal([]byte(spec.Command[len(spec.Command)-1]), &e); err != nil {
			panic(err)
		}
	}
	return e.Imports
}

// sleep says whether d passed before ctx ended. It makes no timer that is due already: in a bubble
// its channel is served on the race detector's state of another goroutine, by which the detector
// dies (Go 1.26).
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *fleet) count() (alive, idle int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.alive), len(f.idle)
}

// started is how many starts there were.
func (f *fleet) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.starts
}

// compiled is how often it was asked to compile the guest's source.
func (f *fleet) compiled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.makes
}

// looked is how often it was asked for its facts.
func (f *fleet) looked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

// pinged is how many pings there were.
func (f *fleet) pinged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pings
}

// set changes something of the fleet.
func (f *fleet) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// bubble runs f in its own time over a fleet, and fails when a container is left after Close.
func bubble(t *testing.T, change func(*sandbox.Config), f func(t *testing.T, s *sandbox.Sandbox, fl *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fl := newFleet()
		cfg := config()
		cfg.Standby, cfg.StandbyIdle = 1, 5*time.Minute
		if change != nil {
			change(&cfg)
		}
		s, err := sandbox.New(fl, cfg)
		if err != nil {
			t.Fatal(err)
		}
		f(t, s, fl)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if alive, _ := fl.count(); alive != 0 {
			t.Errorf("%d containers are left", alive)
		}
		fl.mu.Lock()
		defer fl.mu.Unlock()
		if fl.reused > 0 {
			t.Errorf("%d containers got code twice", fl.reused)
		}
		if fl.most > cfg.MaxContainers {
			t.Errorf("%d containers were alive at a time, want at most %d", fl.most, cfg.MaxContainers)
		}
	})
}

func call(t *testing.T, s *sandbox.Sandbox, code string) sandbox.Result {
	t.Helper()
	r, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: time.Minute}, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusOK {
		t.Errorf("got %+v, %v", r, err)
	}
	return r
}
