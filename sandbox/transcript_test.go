package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestTranscripts plays the guest's lines of the protocol's transcripts into a Sandbox and compares
// what the host sends and makes of the run. The Python tests play the other side of the same files.
func TestTranscripts(t *testing.T) {
	all, err := transcript.Load(os.DirFS("../entrypoint/testdata/transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, tr := range all {
		if tr.PlayedBy == transcript.Guest {
			continue // about the guest's conduct only
		}
		played++
		t.Run(tr.Name, func(t *testing.T) { playTranscript(t, tr) })
	}
	if played < 12 {
		t.Errorf("only %d transcripts were played", played)
	}
}

func playTranscript(t *testing.T, tr transcript.Transcript) {
	p := &player{Local: runtimetest.Local{}, t: t, lines: tr.Lines}
	for range tr.Lines {
		p.turn = append(p.turn, make(chan struct{}))
	}
	s, err := sandbox.New(p, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var want transcript.Result
	if err := json.Unmarshal(tr.Result, &want); err != nil {
		t.Fatal(err)
	}
	if want.Sandbox != nil {
		playSandbox(t, s, p, want)
		return
	}
	req := sandbox.Request{ID: "run-1", Code: tr.Code, Timeout: 20 * time.Second}
	var inputs []sandbox.Input
	for i, l := range tr.Lines {
		switch {
		case l.From == transcript.Host && l.Type() == entrypoint.TypeExecute:
			var e entrypoint.Execute
			if err := json.Unmarshal(l.Sample(), &e); err != nil {
				t.Fatal(err)
			}
			req.Code, req.Providers = e.Code, e.Providers
		case l.From == transcript.Host && l.Type() == entrypoint.TypeFile:
			var f entrypoint.File
			if err := json.Unmarshal(l.Sample(), &f); err != nil {
				t.Fatal(err)
			}
			data, err := base64.StdEncoding.DecodeString(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, sandbox.Input{Name: f.Name, Size: int64(len(data)), Data: bytes.NewReader(data)})
		case l.From == transcript.Host && l.Type() == entrypoint.TypeCancel &&
			want.Status == string(sandbox.StatusCancelled):
			go func() {
				select {
				case <-p.turn[i]:
				case <-ctx.Done():
				}
				cancel()
			}()
		case l.From == transcript.Host && l.Type() == entrypoint.TypeCancel:
			req.Timeout = 300 * time.Millisecond
		}
	}
	req.Files = files(inputs...)
	got, err := s.Run(ctx, req, p)
	if err != nil {
		t.Fatal(err)
	}
	compareResult(t, want, got)
}

func compareResult(t *testing.T, want transcript.Result, got sandbox.Result) {
	t.Helper()
	if string(got.Status) != want.Status {
		t.Errorf("status is %s (%s), want %s", got.Status, got.Message, want.Status)
	}
	text := func(what string, want *string, got string) {
		if want != nil && !transcript.Text(*want, got) {
			t.Errorf("%s is %.200q, want %.200q", what, got, *want)
		}
	}
	number := func(what string, want *int, got int) {
		if want != nil && *want != got {
			t.Errorf("%s is %d, want %d", what, got, *want)
		}
	}
	text("stdout", want.Stdout, got.Stdout())
	text("stderr", want.Stderr, got.Stderr())
	number("exit code", want.ExitCode, got.ExitCode)
	number("signal", want.Signal, got.Signal)
	if cut := got.Truncated != (sandbox.Dropped{}); want.Truncated != nil && *want.Truncated != cut {
		t.Errorf("truncated is %v, want %v", cut, *want.Truncated)
	}
	if want.Artifacts != nil {
		var files []transcript.File
		for _, f := range got.Artifacts {
			files = append(files, transcript.File{Name: f.Name, Mime: f.Mime, Text: string(f.Data)})
		}
		if diff := cmp.Diff(want.Artifacts, files); diff != "" {
			t.Errorf("artifacts (-want +got):\n%s", diff)
		}
	}
	if want.Error == nil {
		return
	}
	if got.Error == nil {
		t.Fatal("there is no error")
	}
	text("error type", want.Error.Type, got.Error.Type)
	text("error message", want.Error.Message, got.Error.Message)
	number("error line", want.Error.Line, got.Error.Line)
}

// player is an engine whose containers are the guest's side of a transcript, and the host that
// answers its calls when the transcript says so.
type player struct {
	runtimetest.Local
	t     *testing.T
	lines []transcript.Line
	turn  []chan struct{} // closed when it is the host's turn at that line
	id    string          // that the host chose last
}

// playSandbox does in one Kept what the host's lines are to come of.
func playSandbox(t *testing.T, s *sandbox.Sandbox, p *player, want transcript.Result) {
	k, err := s.Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for i, l := range p.lines {
		var f struct{ Type, ID, Code, Command string }
		if l.From != transcript.Host || json.Unmarshal(l.Sample(), &f) != nil {
			continue
		}
		switch f.Type {
		case entrypoint.TypeExecute:
			ctx, cancel := context.WithCancel(t.Context())
			for j, next := range p.lines[i+1:] {
				if next.Type() == entrypoint.TypeExecute {
					break
				}
				if next.Type() == entrypoint.TypeCancel {
					go func() {
						select {
						case <-p.turn[i+1+j]:
						case <-ctx.Done():
						}
						cancel()
					}()
				}
			}
			got, err := k.Run(ctx, sandbox.Request{ID: f.ID, Code: f.Code, Timeout: 20 * time.Second}, p)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if f.ID == p.lastRun() {
				compareResult(t, want, got)
				if got.Kept == nil || string(got.Kept.State) != *want.Sandbox {
					t.Errorf("the sandbox is %+v, want %s", got.Kept, *want.Sandbox)
				}
			}
		case entrypoint.TypeUndo:
			if _, err := k.Undo(t.Context()); err != nil && !errors.Is(err, sandbox.ErrNoUndo) {
				t.Error(err)
			}
		case entrypoint.TypeExec:
			if _, err := k.Exec(t.Context(), sandbox.Command{Line: f.Command, Timeout: 20 * time.Second}); err != nil {
				t.Error(err)
			}
		}
	}
}

// lastRun returns the id of the last execute.
func (p *player) lastRun() (id string) {
	for _, l := range p.lines {
		var f struct{ ID string }
		if l.Type() == entrypoint.TypeExecute && json.Unmarshal(l.Sample(), &f) == nil {
			id = f.ID
		}
	}
	return id
}

// Run plays the guest's lines in order. A host's line is awaited before the next one of the guest's
// is sent.
func (p *player) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		return runtime.Exit{Code: 1}, nil // nothing is compiled ahead
	}
	in := bufio.NewReader(std.Stdin)
	if err := transcript.SkipSource(in); err != nil {
		return runtime.Exit{}, err
	}
	for i, l := range p.lines {
		switch {
		case l.Exit != nil:
			return runtime.Exit{Code: *l.Exit}, nil
		case l.From == transcript.Guest:
			text := l.Raw
			if l.Frame != nil {
				text = bytes.ReplaceAll(l.Sample(), []byte(`"id":"…"`), []byte(`"id":"`+p.id+`"`))
			}
			std.Stdout.Write(append(text, '\n')) // a host that has heard enough doesn't listen
		case l.Frame != nil:
			close(p.turn[i])
			if err := p.expect(l, in); err != nil {
				p.t.Errorf("line %d: %v", l.At, err)
				return runtime.Exit{Code: 1}, nil
			}
		}
	}
	return runtime.Exit{}, nil
}

// expect reads the host's next frame, pings aside, and compares it.
func (p *player) expect(l transcript.Line, in *bufio.Reader) error {
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("the host sent nothing more, want %s", l.Frame)
		}
		var f map[string]any
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		if f["type"] == entrypoint.TypePing {
			continue
		}
		p.id, _ = f["id"].(string)
		want := l.Frame
		if f["options"] != nil { // the host's settings are its own
			var w map[string]any
			if err := json.Unmarshal(want, &w); err != nil {
				return err
			}
			w["options"], f["options"] = "", ""
			if want, err = json.Marshal(w); err != nil {
				return err
			}
			if line, err = json.Marshal(f); err != nil {
				return err
			}
		}
		return transcript.Match(want, line)
	}
}

// Call reports on a call and answers it as the transcript's frames of the same call say, once it is
// their turn. A call whose result is that it was cancelled is left open: that is the sandbox's to
// say.
func (p *player) Call(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
	for i, l := range p.lines {
		var r struct {
			entrypoint.ToolResult
			sandbox.Progress
		}
		if l.From != transcript.Host || json.Unmarshal(l.Sample(), &r) != nil || r.CallID != c.ID ||
			r.Error != nil && r.Error.Code == entrypoint.CodeCancelled {
			continue
		}
		select {
		case <-p.turn[i]:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case l.Type() == entrypoint.TypeProgress:
			c.Progress(r.Progress)
		case r.Error != nil:
			return nil, r.Error
		default:
			return r.Result, nil
		}
	}
	<-ctx.Done() // the transcript leaves it open
	return nil, ctx.Err()
}
