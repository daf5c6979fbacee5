package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// scripted is an engine whose container says what it is told to once it has been sent the code, and
// then ends as told.
type scripted struct {
	runtimetest.Local
	before string // said before the code came; "" leaves the guest silent
	after  string // said then
	late   string // said once it has been told to cancel
	exit   runtime.Exit
	err    error
	wait   bool // for the context's end before it ends
}

func (s scripted) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		return runtime.Exit{Code: 1}, nil // nothing is compiled ahead
	}
	in := bufio.NewReader(std.Stdin)
	if err := transcript.SkipSource(in); err != nil {
		return runtime.Exit{}, err
	}
	if s.before != "" {
		fmt.Fprintln(std.Stdout, s.before)
		if _, err := in.ReadString('\n'); err != nil {
			return runtime.Exit{}, err
		}
	}
	if s.after != "" {
		fmt.Fprintln(std.Stdout, s.after)
	}
	for line := ""; s.late != "" && !strings.Contains(line, `"cancel"`); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return runtime.Exit{}, err
		}
	}
	if s.late != "" {
		fmt.Fprintln(std.Stdout, s.late)
	}
	fmt.Fprint(std.Stderr, "last words")
	if s.wait {
		<-ctx.Done()
	}
	return s.exit, s.err
}

const (
	ready  = `{"type":"ready","protocol":2,"seccomp":true}`
	output = `{"type":"output","id":"r","stream":"stdout","text":"before"}`
)

// TestEngineOutcomes: what the engine says decides where the guest has said nothing, and nothing of
// it is success.
func TestEngineOutcomes(t *testing.T) {
	done := func(wait string) string {
		return output + "\n" + `{"type":"done","id":"r","ok":true,"durationMs":1,"wait":` + wait + `}`
	}
	gone := &runtime.UnavailableError{Engine: "podman", Err: errors.New("it went away"), Next: "start it"}
	tests := []struct {
		name    string
		engine  scripted
		want    sandbox.Status
		exit    int
		message string
	}{
		{"killed from outside", scripted{before: ready, after: output, exit: runtime.Exit{Code: 137}},
			sandbox.StatusExit, 137, "ended from outside"},
		{"the guest killed for memory", scripted{before: ready, after: output,
			exit: runtime.Exit{Code: 137, OOMKilled: true}}, sandbox.StatusMemoryLimit, 137, "out of memory"},
		{"the guest ends itself", scripted{before: ready, after: output, exit: runtime.Exit{Code: 67}},
			sandbox.StatusExit, 67, "ended itself, with code 67, before the code had finished: last words"},
		{"how it ended is not known", scripted{before: ready, after: output, exit: runtime.Exit{Code: -1}},
			sandbox.StatusExit, -1, "does not know"},
		{"the container ends with 0 and no done", scripted{before: ready, after: output}, sandbox.StatusEngine, -1,
			"how the code ended was not heard"},
		{"the code has closed all descriptors", scripted{before: ready, after: done(`{"exited":true,"status":70}`)},
			sandbox.StatusExit, 70, "may have closed the descriptors"},
		{"the code killed, and the engine saw why", scripted{before: ready,
			after: done(`{"exited":false,"status":0,"signal":9}`), exit: runtime.Exit{OOMKilled: true}},
			sandbox.StatusMemoryLimit, 137, "out of memory"},
		{"the code killed, and the kernel counted it", scripted{before: ready,
			after: done(`{"exited":false,"status":0,"signal":9,"oom":1}`)}, sandbox.StatusMemoryLimit, 137,
			"out of memory"},
		{"the code killed by the guest, and something else for memory", scripted{before: ready,
			after: done(`{"exited":false,"status":0,"signal":9,"killed":"processes"}`),
			exit:  runtime.Exit{OOMKilled: true}}, sandbox.StatusExit, 137, "MCP_BRIDGE_PIDS"},
		{"the code killed by somebody", scripted{before: ready,
			after: done(`{"exited":false,"status":0,"signal":9}`)}, sandbox.StatusExit, 137, "signal 9"},
		{"ok is not believed where waitpid says otherwise",
			scripted{before: ready, after: done(`{"exited":true,"status":4}`)}, sandbox.StatusExit, 4, "code 4"},
		{"done without waitpid's word", scripted{before: ready,
			after: output + "\n" + `{"type":"done","id":"r","ok":true,"durationMs":1}`}, sandbox.StatusExit, -1,
			"did not say"},
		{"the engine goes away", scripted{before: ready, after: output, err: gone}, sandbox.StatusEngine, -1,
			"start it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sandbox.New(tt.engine, config())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != tt.want || r.ExitCode != tt.exit || !strings.Contains(r.Message, tt.message) ||
				r.Stdout() != "before" {
				t.Errorf("got %s, code %d, %q, stdout %q; want %s, %d, %q and what was printed", r.Status, r.ExitCode,
					r.Message, r.Stdout(), tt.want, tt.exit, tt.message)
			}
		})
	}
}

// TestEndIsNotWaitedFor: a run waits for its container's end only where the engine may say of it
// what the guest can't.
func TestEndIsNotWaitedFor(t *testing.T) {
	tests := []struct {
		name, wait string
		want       sandbox.Status
		waits      bool
	}{
		{"it exited", `{"exited":true,"status":0}`, sandbox.StatusOK, false},
		{"a signal of its own", `{"exited":false,"status":0,"signal":11}`, sandbox.StatusExit, false},
		{"killed by the watch for memory", `{"exited":false,"status":0,"signal":9,"killed":"memory"}`,
			sandbox.StatusMemoryLimit, false},
		{"killed by the watch for processes", `{"exited":false,"status":0,"signal":9,"killed":"processes"}`,
			sandbox.StatusExit, false},
		{"killed by the kernel, which counts", `{"exited":false,"status":0,"signal":9,"oom":1}`,
			sandbox.StatusMemoryLimit, false},
		{"killed", `{"exited":false,"status":0,"signal":9}`, sandbox.StatusMemoryLimit, true},
		{"killed by a cancel that was not sent", `{"exited":false,"status":0,"signal":9,"killed":"cancel"}`,
			sandbox.StatusMemoryLimit, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := `{"type":"done","id":"r","ok":true,"durationMs":1,"wait":` + tt.wait + `}`
				s, err := sandbox.New(scripted{before: ready, after: done, wait: true,
					exit: runtime.Exit{OOMKilled: true}}, config())
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
				if err != nil || r.Status != tt.want || (r.Took.Total > 0) != tt.waits {
					t.Errorf("got %s after %v, %v; want %s, and that it waited: %v", r.Status, r.Took.Total, err, tt.want,
						tt.waits)
				}
			})
		})
	}
}

// TestGuestNeverReady: an error that says what the container said, and what to look at.
func TestGuestNeverReady(t *testing.T) {
	tests := []struct {
		name   string
		engine scripted
		want   []string
	}{
		{"it ends", scripted{exit: runtime.Exit{Code: 1}}, []string{"code 1", "last words"}},
		{"it is killed for memory", scripted{exit: runtime.Exit{Code: 137, OOMKilled: true}},
			[]string{"out of memory"}},
		{"it hangs", scripted{wait: true, exit: runtime.Exit{Code: 137}}, []string{"not ready after 50ms"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			cfg.StartTimeout = 50 * time.Millisecond
			s, err := sandbox.New(tt.engine, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
			var start *sandbox.StartError
			if !errors.As(err, &start) || start.Hint() == "" {
				t.Fatalf("got %v, want a *StartError with a hint", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// TestMoreThanWasAskedFor: no code is sent to a container that has files or devices of the host.
func TestMoreThanWasAskedFor(t *testing.T) {
	s, err := sandbox.New(scripted{before: `{"type":"ready","protocol":2,"seccomp":true,"extra":["/hostdir",` +
		`"/dev/kvm"]}`}, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) || !strings.Contains(err.Error(), "/hostdir, /dev/kvm") ||
		!strings.Contains(hinted.Hint(), "containers.conf") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestOtherProtocol: no code is sent to a guest that speaks another version of the protocol.
func TestOtherProtocol(t *testing.T) {
	s, err := sandbox.New(scripted{before: `{"type":"ready","protocol":1,"seccomp":true}`, wait: true}, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
	var unfit *sandbox.UnfitError
	if !errors.As(err, &unfit) ||
		!strings.Contains(err.Error(), "version 1 of the protocol, and this bridge 2") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkRunLocal is a whole run without a container: what the guest and the frames cost.
func BenchmarkRunLocal(b *testing.B) {
	s, err := sandbox.New(runtimetest.Local{}, config())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		r, err := s.Run(b.Context(), sandbox.Request{Code: "print(1)", Timeout: time.Minute},
			hostFunc(func(context.Context, sandbox.Call) (json.RawMessage, error) { return nil, nil }))
		if err != nil || r.Status != sandbox.StatusOK {
			b.Fatalf("%+v, %v", r, err)
		}
	}
}

// TestNoFilter: no code is sent to a guest without its own filter, unless the engine has one as
// strong.
func TestNoFilter(t *testing.T) {
	unfiltered := `{"type":"ready","protocol":2,"seccomp":false,"note":"no ctypes"}`
	for _, tt := range []struct {
		profile string
		refused bool
	}{{"", true}, {"engine", true}, {"strict", false}} {
		s, err := sandbox.New(withFacts{scripted{before: unfiltered,
			after: output + "\n" + `{"type":"done","id":"r","ok":true,"durationMs":1,"wait":{"exited":true,` +
				`"status":0}}`}, runtime.Facts{Engine: "local", Rootless: true, Seccomp: tt.profile}}, config())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
		var unfit *sandbox.UnfitError
		switch {
		case tt.refused && (!errors.As(err, &unfit) || unfit.Hint() == "" ||
			!strings.Contains(err.Error(), "no ctypes")):
			t.Errorf("profile %q: got %+v, %v; want an *UnfitError", tt.profile, r, err)
		case !tt.refused && (err != nil || r.Status != sandbox.StatusOK || !r.Unfiltered):
			t.Errorf("profile %q: got %+v, %v; want it to run, and to say so", tt.profile, r, err)
		}
	}
}

// withFacts is an engine that says this of itself.
type withFacts struct {
	scripted
	facts runtime.Facts
}

func (w withFacts) Facts(context.Context) (runtime.Facts, error) { return w.facts, nil }
