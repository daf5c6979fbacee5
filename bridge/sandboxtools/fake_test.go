package sandboxtools

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// fake is a guest with files, whose commands end as a test says.
type fake struct {
	request  sandbox.KeepRequest
	files    map[string]string
	commands []sandbox.Command
	out      sandbox.Output
	err      error // of everything
	more     bool  // of a listing
	note     string

	once sync.Once
	done chan struct{}
}

func (g *fake) Run(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.StatusOK}, g.err
}

func (g *fake) Undo(context.Context) (sandbox.KeptState, error) {
	return sandbox.KeptState{State: sandbox.StateBefore, Note: g.note}, g.err
}

func (g *fake) Exec(_ context.Context, c sandbox.Command) (sandbox.Output, error) {
	g.commands = append(g.commands, c)
	if c.Output != nil {
		for _, chunk := range g.out.Output {
			c.Output(chunk)
		}
	}
	return g.out, g.err
}

func (g *fake) ReadFile(_ context.Context, path string, limit int64) ([]byte, error) {
	text, ok := g.files[path]
	switch {
	case g.err != nil:
		return nil, g.err
	case !ok:
		return nil, &sandbox.FileError{Path: path, Err: "there is no such file", Code: "not_found"}
	case int64(len(text)) > limit:
		return nil, &sandbox.FileError{Path: path, Err: "it is too large", Code: "too_large"}
	}
	return []byte(text), nil
}

func (g *fake) WriteFile(_ context.Context, path string, data []byte) error {
	g.files[path] = string(data)
	return g.err
}

func (g *fake) ListFiles(context.Context, string) ([]sandbox.File, bool, error) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	return []sandbox.File{{Name: "a.py", Type: "file", Size: 3, Modified: at}, {Name: "b", Type: "directory"}},
		g.more, g.err
}

func (g *fake) ZipDir(_ context.Context, _ string, _ int64, w io.Writer) error {
	_, err := io.WriteString(w, "PK")
	if g.err != nil {
		return g.err
	}
	return err
}

func (g *fake) Pack(context.Context, string, int64) (sandbox.Piece, error) {
	return sandbox.Piece{}, g.err
}

func (g *fake) Unpack(context.Context, string, []byte) error { return g.err }

func (g *fake) Note() string { return g.note }

func (g *fake) Done() <-chan struct{} { return g.done }
func (g *fake) Ended() (string, bool) { return "it was closed", false }
func (g *fake) Close() error          { g.once.Do(func() { close(g.done) }); return nil }

// fakeTemplates has the template data.
type fakeTemplates struct {
	created []string
	refuse  error
}

func (*fakeTemplates) Named(_ context.Context, name string, _ func(),
	_ runtime.Progress) (*sandbox.Environment, error) {
	switch name {
	case "", "base":
		return nil, nil
	case "data":
		return &sandbox.Environment{Name: "data", Limits: runtime.Limits{Memory: 1 << 30}}, nil
	}
	return nil, args.Errorf("there is no template %q", name)
}

func (*fakeTemplates) Built(context.Context, runtime.Progress) ([]packages.Template, error) {
	return []packages.Template{{Name: "data", Packages: []string{"numpy==2.5.5"}}}, nil
}

func (f *fakeTemplates) Create(_ context.Context, name string, wanted []string, _ func(),
	_ runtime.Progress) (packages.Template, error) {
	f.created = wanted
	return packages.Template{Name: name, Packages: wanted}, f.refuse
}

// box is Tools over fakes.
type box struct {
	t *testing.T
	*Tools
	registry  *sandboxes.Registry
	templates fakeTemplates
	output    *output.Store
	guests    []*fake
	fail      error // of the next guest
}

func newBox(t *testing.T) *box { return newSavingBox(t, nil) }

// newSavingBox has sandboxes that are saved before they end.
func newSavingBox(t *testing.T, saves *sandboxes.Hibernation) *box {
	b := &box{t: t, output: output.NewStore()}
	limits := runtime.Limits{Memory: 512 << 20, CPUs: 2}
	b.registry = sandboxes.New(sandboxes.Config{
		Keep: func(_ context.Context, r sandbox.KeepRequest) (sandboxes.Guest, error) {
			if b.fail != nil {
				return nil, b.fail
			}
			g := &fake{request: r, files: map[string]string{}, done: make(chan struct{}),
				out: sandbox.Output{Status: sandbox.StatusExit}}
			b.guests = append(b.guests, g)
			return g, nil
		},
		Idle: 30 * time.Minute, MaxAge: 8 * time.Hour, Most: 12, LongestCall: time.Minute, Limits: limits,
		Hibernation: saves,
	})
	t.Cleanup(b.registry.Close)
	b.Tools = New(Config{Registry: b.registry, Templates: &b.templates, Reads: true, Limits: limits,
		MostCommand: time.Hour})
	return b
}

// by calls a tool for someone.
func (b *box) by(owner, name, args string) (*mcp.CallToolResult, Report) {
	return b.Call(b.t.Context(), name, json.RawMessage(args), Caller{
		ID: "c0ffee", Owner: owner, Output: b.output.Of(owner), Wait: func(context.Context) error { return nil },
		Pass:     func() {},
		Progress: func(string) {}, Printed: func(sandbox.Chunk) {},
	})
}

// call calls a tool and returns its result as JSON, or its error's text.
func (b *box) call(name, args string) string {
	res, _ := b.by("me", name, strings.ReplaceAll(args, "ID", b.id()))
	text := res.Content[0].(mcp.TextContent).Text
	if res.IsError && res.RawStructuredContent == nil {
		return "error: " + text
	}
	return string(res.RawStructuredContent)
}

// id is that of the caller's first sandbox.
func (b *box) id() string {
	list := b.registry.List("me")
	if len(list) == 0 {
		return "none"
	}
	return list[len(list)-1].ID
}
