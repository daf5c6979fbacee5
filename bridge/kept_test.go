package bridge

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// counting is a guest whose code is a word: "count" adds one to its variable and prints it, others
// end badly.
type counting struct {
	hold chan struct{} // what "hold" waits for

	mu       sync.Mutex
	request  sandbox.KeepRequest
	runs, n  int
	files    map[string]string
	commands []sandbox.Command
	order    []string // "code" and "command", as they came
	done     chan struct{}
	end      sync.Once
	why      string
}

func (g *counting) Run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
	if r.Queued != nil {
		r.Queued()
	}
	if why, over := g.Ended(); over {
		return sandbox.Result{}, &sandbox.EndedError{Reason: why}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs++
	g.order = append(g.order, "code")
	res := printed("")
	res.Kept = &sandbox.KeptState{State: sandbox.StateKept, Calls: g.runs}
	switch {
	case strings.Contains(r.Code, "hold"):
		<-g.hold
	case strings.Contains(r.Code, "bad"):
		res.Status, res.ExitCode, res.Message = sandbox.StatusTimeout, -1, "The code was stopped."
		res.Kept.State, res.Kept.Reason = sandbox.StateBefore, "the code was stopped"
		if strings.Contains(r.Code, "older") {
			res.Kept.Note = "a copy of an earlier state has taken over"
		}
		return res, nil
	case strings.Contains(r.Code, "silent"):
		res.Output = nil
		res.Kept.State, res.Kept.Note = sandbox.StateBefore, "the code has ended its process"
		return res, nil
	case strings.Contains(r.Code, "older"):
		res.Kept.Note = "a copy of an earlier state has taken over"
	case strings.Contains(r.Code, "large"):
		res.Kept.NoWayBack = "variables take 230 of 512 MiB"
	case strings.Contains(r.Code, "die"):
		res.Status, res.ExitCode = sandbox.StatusMemoryLimit, 137
		res.Kept.State, res.Kept.Reason = sandbox.StateLost, "it ran out of memory"
		g.dies("it ran out of memory")
		return res, nil
	case strings.Contains(r.Code, "tool"):
		for range strings.Count(r.Code, "tool") {
			result, err := h.Call(ctx, sandbox.Call{Run: r.ID, ID: "1", Provider: "github", Tool: "me"})
			res.Output[0].Text += fmt.Sprintf("%s %v", result, err)
		}
		return res, nil
	}
	g.n++
	res.Output[0].Text = fmt.Sprintln(g.n)
	return res, nil
}

func (g *counting) Undo(context.Context) (sandbox.KeptState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	return sandbox.KeptState{State: sandbox.StateBefore, Calls: g.runs}, nil
}

func (g *counting) Exec(_ context.Context, c sandbox.Command) (sandbox.Output, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commands, g.order = append(g.commands, c), append(g.order, "command")
	for range max(strings.Count(c.Line, "yes"), 1) {
		if c.Output != nil {
			c.Output(sandbox.Chunk{Stream: "stdout", Text: c.Line})
		}
	}
	return sandbox.Output{Status: sandbox.StatusExit, Output: []sandbox.Chunk{{Stream: "stdout", Text: c.Line}}},
		nil
}

func (g *counting) ReadFile(_ context.Context, path string, _ int64) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text, ok := g.files[path]
	if !ok {
		return nil, &sandbox.FileError{Path: path, Err: "there is no such file", Code: "not_found"}
	}
	return []byte(text), nil
}

func (g *counting) WriteFile(_ context.Context, path string, data []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files[path] = string(data)
	return nil
}

func (g *counting) ListFiles(context.Context, string) ([]sandbox.File, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []sandbox.File
	for name, text := range g.files {
		all = append(all, sandbox.File{Name: name, Type: "file", Size: int64(len(text))})
	}
	return all, false, nil
}

func (g *counting) Pack(context.Context, string, int64) (sandbox.Piece, error) {
	return sandbox.Piece{}, nil
}

func (g *counting) Note() string { return "" }

func (g *counting) Unpack(context.Context, string, []byte) error { return nil }

func (g *counting) ZipDir(_ context.Context, _ string, _ int64, w io.Writer) error {
	_, err := io.WriteString(w, "PK")
	return err
}

func (g *counting) Done() <-chan struct{} { return g.done }

func (g *counting) Ended() (string, bool) {
	select {
	case <-g.done:
		return g.why, true
	default:
		return "", false
	}
}

func (g *counting) dies(why string) {
	g.end.Do(func() {
		g.why = why
		close(g.done)
	})
}

func (g *counting) Close() error {
	g.dies("it was closed")
	return nil
}

// guests are all that a bridge has made.
type guests struct {
	mu   sync.Mutex
	all  []*counting
	hold chan struct{}
}

func (g *guests) keep(_ context.Context, r sandbox.KeepRequest) (sandboxes.Guest, error) {
	if r.Queued != nil {
		r.Queued()
	}
	one := &counting{hold: g.hold, request: r, files: map[string]string{}, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, one)
	return one, nil
}

func (g *guests) at(i int) *counting {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[i]
}

func (g *guests) made() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all)
}

// lasting gives a bridge sandboxes that last until the test ends.
func lasting(t testing.TB, c *Config) *guests {
	g := &guests{hold: make(chan struct{})}
	c.Sandboxes = sandboxes.New(sandboxes.Config{
		Keep: g.keep, Idle: 30 * time.Minute, MaxAge: 8 * time.Hour, Most: 12, LongestCall: time.Minute,
		Limits: runtime.Limits{Memory: 512 << 20, CPUs: 2},
	})
	t.Cleanup(c.Sandboxes.Close)
	return g
}

// keeping is a bridge with sandboxes, whose runs without one print what they are.
func keeping(t testing.TB, change func(*Config)) (*Bridge, *guests) {
	t.Helper()
	var g *guests
	b := build(t, func(c *Config) {
		g = lasting(t, c)
		if change != nil {
			change(c)
		}
	})
	return b, g
}
