// Package sandbox runs one piece of code in one new locked-down container: it turns policy into a
// runtime.Spec, speaks the frames of package entrypoint with the guest, answers the guest's tool
// calls through a Host, keeps what was printed, and decides how the run ended from its own record.
//
// It knows no engine but runtime.Driver, and no server's command, environment or secret: those stay
// behind Host.
package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A Host answers the tool calls of a run. Call is used concurrently; its ctx ends with the run. The
// result is any JSON value. An error that is, or wraps, an *entrypoint.CallError reaches the code
// with its code and data, another one as tool_error with its text: so it must not hold secrets.
type Host interface {
	Call(ctx context.Context, c Call) (json.RawMessage, error)
}

// Call is one request of the code for a tool. Its fields are the guest's words: nothing in them is
// checked yet but their size.
type Call struct {
	Run      string          // the Request's ID
	ID       string          // unique in the run
	Provider string          // server name, or entrypoint.RuntimeProvider
	Tool     string          // safe or original name
	Input    json.RawMessage // nil for none

	// Progress is told how far the call is, where the code asks for that; else it is nil. It
	// doesn't block, may be called as often as one likes, and says nothing any more once Call has
	// returned.
	Progress func(Progress)
}

// Preparing is the first that Request.Progress is told: the run is admitted, and engine and image
// are looked for.
const Preparing = "preparing"

// Progress is how far a call is, in the words of who answers it.
type Progress struct {
	Progress float64 // finite
	Total    *float64
	Message  string // what is beyond entrypoint.MaxProgressText is left out
}

// Request is one run.
type Request struct {
	ID        string        // for logs and calls; made up when empty
	Principal string        // whose share of the runs it takes; empty for who has no share but all
	Code      string        // Python
	File      string        // what tracebacks call the code; empty for <run_python>
	Timeout   time.Duration // of the code's own time: from execute to done. Must be positive
	Clock     *Clock        // lets the Host stop that time; may be nil
	Providers []entrypoint.Provider

	// Discovered are all configured servers by name, whether or not this run may call them.
	Discovered []entrypoint.Discovered

	Sandboxes bool // a Kept could run it; for what the code is told of a name that isn't there

	// Environment has the packages of the code; nil for those of the configured image alone.
	Environment *Environment

	// Files is called once, when the run is admitted and the engine is ready. It returns what is
	// copied to InputDir before the code runs, outside its time. It may be nil.
	Files func() ([]Input, error)

	// Queued is called once, as soon as the run has its place in the queue, or isn't run at all; so
	// runs that are begun one after the other's call have their places in that order. It may be
	// nil.
	Queued func()

	// Progress is told what the run waits for before it begins. It may be nil, must not block, and
	// may be called until a little after Run has returned.
	Progress runtime.Progress

	// Output takes what the code prints while it prints it, in order, from one goroutine at a time.
	// It may be nil. It must not block for long: the guest waits for it.
	Output func(Chunk)

	// Began is called when a container is there that answers, as the code begins and before any
	// call of it; waiting says that the container was ready already. It may be nil, and must not
	// block.
	Began func(waiting bool)
}

// Chunk is a piece of what the code printed.
type Chunk struct {
	Stream string // "stdout" or "stderr"
	Text   string
	Lost   int64 // in a Result: how many bytes of the stream were printed here and not kept; Text is empty then
}

// Status is how a run ended.
type Status string

// The ways a run can end. Only StatusOK is success.
const (
	StatusOK          Status = "ok"
	StatusError       Status = "error"        // an exception that nothing caught, or code that doesn't compile
	StatusTimeout     Status = "timeout"      // Request.Timeout passed
	StatusCancelled   Status = "cancelled"    // ctx ended
	StatusMemoryLimit Status = "memory_limit" // the memory limit ended it, or an uncaught MemoryError did
	StatusExit        Status = "exit"         // sys.exit, os._exit or a signal: see ExitCode and Signal
	StatusEngine      Status = "engine"       // the engine failed, or lost how the code ended
)

// Result is how a run ended and what it left. The zero value means nothing.
type Result struct {
	ID     string
	Status Status
	// of the process that ran the code; 128+n after signal n; -1 when it was stopped or is not known
	ExitCode int
	Signal   int    // that ended it, or 0
	Message  string // for the model: what ended the run, Limit included; empty when Status is StatusOK
	Limit    string // a sentence on the limit that an exception came from; empty for none

	// of each stream in its order, without the middle of both where they were longer than
	// Config.OutputLimit
	Output    []Chunk
	Truncated Dropped  // what is missing from Output
	Error     *Failure // the exception, as the code's own process tells it; nil when there was none

	// Unfiltered says that the guest could not install its own seccomp filter, so that only the
	// engine's held.
	Unfiltered bool
	Note       string // what the guest found weaker than it should be; empty when nothing

	Artifacts []Artifact
	// names of files that were handed over but not kept: beyond a limit, or not whole when the run
	// ended
	Lost []string
	Took Took

	Kept *KeptState // of a run in a Kept; nil otherwise
}

// Failure is an uncaught exception in the words of the process that ran the code: text, which may
// make a failure of a run or tell one kind of failure from another, and never makes a success.
type Failure struct {
	Type      string
	Message   string
	Traceback string
	Line      int // in the submitted code; 0 when unknown
}

// Dropped counts bytes of output that were read but not kept.
type Dropped struct{ Stdout, Stderr int64 }

// Artifact is a file or image that the code handed over. Its Data is what the code says it is, or
// anything else.
type Artifact struct {
	// unique in the run; a relative path of letters, digits, "-", "_" and "." that leads nowhere
	// else
	Name string
	Mime string // of the form a/b
	Data []byte
}

// Took tells a run's times apart.
type Took struct {
	Queued   time.Duration // until other runs had ended, and their containers were gone
	Prepared time.Duration // until engine and image were there
	Start    time.Duration // until the guest was ready; next to nothing where a warm one was
	Run      time.Duration // from execute to the end of the code, by the host's clock
	Total    time.Duration // all of it, without the removal of a container whose code had ended
}

// Stdout returns everything kept of standard output.
func (r Result) Stdout() string { return r.stream("stdout") }

// Stderr returns everything kept of standard error.
func (r Result) Stderr() string { return r.stream("stderr") }

func (r Result) stream(name string) string {
	var b strings.Builder
	for _, c := range r.Output {
		if c.Stream == name {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// Config is what all runs of a Sandbox share. Limits and sizes must be positive.
type Config struct {
	// Images are tried in order: the first that the engine already has is used. When it has none,
	// or Pull says so, the first is pulled. One with a digest, name@sha256:…, is used only if the
	// engine's has that digest, or that id.
	Images []string
	Pull   PullPolicy // empty means PullMissing

	User   string // "uid:gid"
	Limits runtime.Limits
	Owner  runtime.Owner

	OutputLimit int64 // bytes kept of what one run prints; the rest is counted

	// ArtifactLimit is bytes of the files of one run together. Runs that hold files at a time may
	// hold eight times as much.
	ArtifactLimit int64

	// MaxCalls of one run are answered, those included that the guest makes for itself, such as the
	// loading of a server; further ones fail with call_limit.
	MaxCalls int

	// MaxRuns take place at a time. Of further ones, Queue wait for QueueTimeout at most, in the
	// order in which they came.
	MaxRuns      int
	Queue        int
	QueueTimeout time.Duration

	// MaxContainers are alive at a time, those included that are warm, on their way to their end or
	// compile the guest.
	MaxContainers int

	// Standby is how many containers are kept warm, of all environments together; 0 for none. They
	// are started after the first run, and go when there was no run for StandbyIdle.
	Standby     int
	StandbyIdle time.Duration

	StartTimeout time.Duration // from asking for a container until its guest is ready
	// the longest Request.Timeout; with StartTimeout and Patience it bounds a container's age
	MaxTimeout time.Duration

	// Patience is how long the clock of a run may stand still in all, for what its code is not to
	// pay for: servers that start, people who answer. Zero means StartTimeout.
	Patience time.Duration

	Log *slog.Logger // nil means silence
}

// Sandbox runs code. It is safe for concurrent use.
type Sandbox struct {
	driver runtime.Driver
	cfg    Config
	log    *slog.Logger

	prepare preparation
	looks   atomic.Uint64 // at the engine, counted

	filesHeld   atomic.Int64 // bytes of the files of all runs under way
	resultsHeld atomic.Int64 // and of results that their code has not taken

	compiled compiled

	admission admission
	pool      pool

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup // runs, preparations, containers on their way to their end, the reaping and the pool

	life context.Context // ends with Close: of what belongs to no call
	end  context.CancelFunc
}

// ErrClosed is what Run returns after Close.
var ErrClosed = errors.New("the sandbox is closed")

// New checks the configuration. It doesn't touch the engine.
func New(d runtime.Driver, cfg Config) (*Sandbox, error) {
	cfg.Pull = cmp.Or(cfg.Pull, PullMissing)
	switch {
	case len(cfg.Images) == 0:
		return nil, errors.New("sandbox: no image is configured")
	case cfg.Pull != PullMissing && cfg.Pull != PullNever && cfg.Pull != PullAlways:
		return nil, fmt.Errorf("sandbox: there is no pull policy %q", cfg.Pull)
	case cfg.OutputLimit <= 0, cfg.ArtifactLimit <= 0, cfg.MaxCalls <= 0,
		cfg.MaxRuns <= 0, cfg.MaxContainers <= 0, cfg.StartTimeout <= 0, cfg.MaxTimeout <= 0:
		return nil, errors.New("sandbox: a limit is zero; every limit must be positive")
	case cfg.Queue < 0, cfg.QueueTimeout < 0:
		return nil, errors.New("sandbox: the queue or the wait in it is negative")
	case cfg.Patience < 0:
		return nil, errors.New("sandbox: the patience is negative")
	case cfg.Standby < 0, cfg.Standby > 0 && cfg.StandbyIdle <= 0, cfg.Standby >= cfg.MaxContainers:
		return nil, errors.New("sandbox: the number of warm containers is negative, or they would wait for no " +
			"time, or leave no container for a run")
	}
	s := &Sandbox{driver: d, cfg: cfg, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))}
	s.life, s.end = context.WithCancel(context.Background())
	s.admission = admission{
		maxRuns: cfg.MaxRuns, maxContainers: cfg.MaxContainers, room: cfg.Queue, patience: cfg.QueueTimeout,
		standby: cfg.Standby, warm: map[class][]*guest{},
	}
	s.pool.sandbox, s.pool.wake = s, make(chan struct{}, 1)
	spec := s.spec(cfg.Images[0])
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return s, nil
}

// enter counts one more thing that Close waits for, until s.runs.Done is called.
func (s *Sandbox) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.runs.Add(1)
	return nil
}

// Close refuses further runs and waits for those under way, whose contexts are their callers' to
// end, and some seconds at most for the removal of what dead bridges have left.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.admission.close()
	s.runs.Wait()
	return nil
}

const (
	reapTimeout = 30 * time.Second // bounds one look
	reapGrace   = 5 * time.Second  // what is left of that once the sandbox is closed
)

// reap removes the containers of dead bridges, each time the engine is reached, in the background:
// they may take their time to end, and no run needs them gone. Only Close waits for it, for
// reapGrace: a bridge that is used once does its share too. Whose owner is dead is decided by
// process, boot and start of the process, never by an age: the machine's clock may be set at any
// time.
func (s *Sandbox) reap() {
	if s.enter() != nil {
		return
	}
	go func() {
		defer s.runs.Done()
		ctx, cancel := context.WithTimeout(context.Background(), reapTimeout)
		defer cancel()
		closing := context.AfterFunc(s.life, func() { time.AfterFunc(reapGrace, cancel) })
		defer closing()
		gone, err := runtime.Reap(ctx, s.driver, s.cfg.Owner)
		for _, o := range gone {
			s.log.Info("container of a dead bridge is removed", "container", o.Name, "owner_pid", o.Owner.PID,
				"was_running", o.Running)
		}
		if err != nil {
			s.log.Warn("containers of dead bridges could not be looked for", "err", err)
		}
	}()
}
