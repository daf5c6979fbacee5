package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// isCompiler tells the run that compiles the guest ahead.
func isCompiler(s runtime.Spec) bool { return slices.Equal(s.Command, entrypoint.Compiler()) }

// engine is a fake one that has images, whose containers are never ready.
type engine struct {
	runtimetest.Local
	facts   runtime.Facts
	images  map[string]runtime.Image
	pulls   func(ref string, p runtime.Progress) (runtime.Image, error) // nil: there is no registry
	ends    func(runtime.Stdio) (runtime.Exit, error)                   // how a container ends
	orphans []runtime.Orphan

	mu            sync.Mutex
	resting, away bool
	asked         []string // what it was asked, in order
	removed       []string
	startErr      error
	reapErr       error
}

func (e *engine) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, what)
}

// count is how often it was asked for something.
func (e *engine) count(what string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, a := range e.asked {
		if a == what {
			n++
		}
	}
	return n
}

func (e *engine) set(change func(*engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

func (e *engine) Facts(context.Context) (runtime.Facts, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.resting || e.away {
		return runtime.Facts{}, &runtime.UnavailableError{Engine: "fake", Err: errors.New("no answer"),
			Next: "start it", Dormant: e.resting}
	}
	f := e.facts
	f.Engine = "fake"
	return f, nil
}

func (e *engine) Start(_ context.Context, p runtime.Progress) error {
	e.note("start")
	p("booting")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resting = e.startErr != nil
	return e.startErr
}

func (e *engine) FindImage(_ context.Context, ref string) (runtime.Image, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, ok := e.images[ref]
	i.Ref = ref
	return i, ok, nil
}

func (e *engine) PullImage(_ context.Context, ref string, p runtime.Progress) (runtime.Image, error) {
	e.note("pull " + ref)
	if e.pulls == nil {
		return runtime.Image{}, runtime.PullError(ref, errors.New("dial tcp: no such host"))
	}
	return e.pulls(ref, p)
}

func (e *engine) Run(_ context.Context, _ runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	e.note("run")
	return e.ends(std)
}

func (e *engine) Orphans(_ context.Context, by runtime.Owner) ([]runtime.Orphan, error) {
	e.note("orphans")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away || e.resting {
		return nil, &runtime.UnavailableError{Engine: "fake", Err: errors.New("no answer")}
	}
	var found []runtime.Orphan
	for _, o := range e.orphans {
		if o.Owner.Orphaned(by) && !slices.Contains(e.removed, o.ID) {
			found = append(found, o)
		}
	}
	return found, e.reapErr
}

func (e *engine) Remove(_ context.Context, ids ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removed = append(e.removed, ids...)
	return nil
}

// look prepares.
func look(s *sandbox.Sandbox, ctx context.Context, p runtime.Progress) error {
	_, _, err := s.Look(ctx, p)
	return err
}

// has is an image with an id of its own.
func has(id string) runtime.Image {
	return runtime.Image{ID: "sha256:" + strings.Repeat(id, 64), Arch: "amd64"}
}

func prepareWith(t *testing.T, e *engine, change func(*sandbox.Config)) *sandbox.Sandbox {
	t.Helper()
	cfg := config()
	if change != nil {
		change(&cfg)
	}
	s, err := sandbox.New(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
