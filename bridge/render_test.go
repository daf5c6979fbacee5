package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestText(t *testing.T) {
	const mark = "\n[… cut in the middle: read_output(run=\"c\")]" // hosts that cut keep the end
	out := func(pairs ...string) (chunks []sandbox.Chunk) {
		for i := 0; i < len(pairs); i += 2 {
			chunks = append(chunks, sandbox.Chunk{Stream: pairs[i], Text: pairs[i+1]})
		}
		return chunks
	}
	for _, tc := range []struct {
		name string
		res  sandbox.Result
		want string
	}{
		{"nothing", sandbox.Result{Status: "ok"}, "(no output)"},
		{"every byte", sandbox.Result{Status: "ok", Output: out("stdout", "\n a\n\n", "stdout", "\tb  \n\n()\n")}, "\n a\n\n\tb  \n\n()\n"},
		{"both streams", sandbox.Result{Status: "ok", Output: out("stdout", "a", "stderr", "w\n", "stdout", "b")}, "ab\nstderr:\nw\n"},
		{"stderr alone", sandbox.Result{Status: "ok", Output: out("stderr", "w\n")}, "stderr:\nw\n"},
		{"exception", sandbox.Result{Status: "error", ExitCode: 1, Output: out("stdout", "a\n"), Message: "The code raised.",
			Error: &sandbox.Failure{Type: "ValueError", Message: "no", Traceback: "Traceback (most recent call last):\n  line 1\nValueError: no\n", Line: 1}},
			"a\nstatus: error\nTraceback (most recent call last):\n  line 1\nValueError: no"},
		{"exception from a limit", sandbox.Result{Status: "error", Message: "The code raised. Start fewer.", Limit: "Start fewer.",
			Error: &sandbox.Failure{Type: "BlockingIOError", Traceback: "BlockingIOError\n"}}, "status: error\nBlockingIOError\nStart fewer."},
		{"exception without a traceback", sandbox.Result{Status: "error", Error: &sandbox.Failure{Type: "SyntaxError", Message: "bad"}}, "status: error — SyntaxError: bad"},
		{"timeout", sandbox.Result{Status: "timeout", Output: out("stdout", "a"), Message: "The code was stopped after 2s, its time limit."},
			"a\nstatus: timeout — The code was stopped after 2s, its time limit."},
		{"exit", sandbox.Result{Status: "exit", ExitCode: 3, Message: "The code exited with code 3."}, "status: exit 3 — The code exited with code 3."},
		{"signal", sandbox.Result{Status: "exit", ExitCode: 139, Signal: 11, Message: "Ended by signal 11."}, "status: exit (signal 11) — Ended by signal 11."},
		{"memory", sandbox.Result{Status: "memory_limit", Message: "The limit is 512 MiB.", Error: &sandbox.Failure{Type: "MemoryError", Traceback: "MemoryError"}},
			"status: memory_limit — The limit is 512 MiB.\nMemoryError"},
		{"engine", sandbox.Result{Status: sandbox.StatusEngine, ExitCode: -1, Output: out("stdout", "a\n"), Message: "The engine went away. Next: start it"},
			"a\nstatus: engine — The engine went away. Next: start it"},
		{"cut", sandbox.Result{Status: "ok", Output: out("stdout", strings.Repeat("a", 150), "stdout", strings.Repeat("z", 150))},
			strings.Repeat("a", 100) + "\n[... 100 bytes of stdout left out here; read_output(run=\"c\", offset=100) reads them ...]\n" + strings.Repeat("z", 100) + mark},
		{"stderr cut", sandbox.Result{Status: "ok", Output: out("stdout", strings.Repeat("a", 100), "stderr", strings.Repeat("b", 1050))},
			strings.Repeat("a", 100) + "\nstderr:\n" + strings.Repeat("b", 50) +
				"\n[... 950 bytes of stderr left out here; read_output(run=\"c\", offset=159) reads them ...]\n" + strings.Repeat("b", 50) + mark},
		{"both cut", sandbox.Result{Status: "ok", Output: out("stdout", strings.Repeat("a", 1234), "stderr", strings.Repeat("b", 150))},
			strings.Repeat("a", 75) + "\n[... 1,084 bytes of stdout left out here; read_output(run=\"c\", offset=75) reads them ...]\n" + strings.Repeat("a", 75) +
				"\nstderr:\n" + strings.Repeat("b", 25) + "\n[... 100 bytes of stderr left out here; read_output(run=\"c\", offset=1268) reads them ...]\n" + strings.Repeat("b", 25) + mark},
		{"not even kept", sandbox.Result{Status: "ok", Truncated: sandbox.Dropped{Stdout: 5000},
			Output: []sandbox.Chunk{{Stream: "stdout", Text: strings.Repeat("a", 150)}, {Stream: "stdout", Lost: 5000}, {Stream: "stdout", Text: strings.Repeat("z", 150)}}},
			strings.Repeat("a", 100) + "\n[... 5,100 bytes of stdout left out here, 5,000 of which were not kept; read_output(run=\"c\", offset=100) reads them ...]\n" + strings.Repeat("z", 100) + mark},
		{"files that were lost", sandbox.Result{Status: "ok", Lost: []string{"a.bin", "b.bin"}},
			"[files that were not kept, since they are beyond what runs may hand over, or not whole: a.bin, b.bin]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newOutcome("c", arguments{}, tc.res, 200)
			if diff := cmp.Diff(tc.want, o.text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := o.render(false); got.IsError != (tc.res.Status != "ok") || got.StructuredContent != nil || got.RawStructuredContent != nil {
				t.Errorf("isError %v, structured %s", got.IsError, got.RawStructuredContent)
			}
		})
	}
}

func TestStructured(t *testing.T) {
	b := build(t, func(c *Config) {
		c.OutputMode = OutputStructured
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
			return sandbox.Result{
				ID: r.ID, Status: sandbox.StatusError, ExitCode: 1, Message: "It raised.", Calls: 2,
				Output:    []sandbox.Chunk{{Stream: "stdout", Text: "a"}, {Stream: "stdout", Lost: 5}, {Stream: "stdout", Text: "\n"}, {Stream: "stderr", Text: "w"}},
				Error:     &sandbox.Failure{Type: "ValueError", Message: "no", Traceback: "tb", Line: 4},
				Artifacts: []sandbox.Artifact{{Name: "p.png", Mime: "image/png", Data: picture(t, 2, 2)}, {Name: "t.csv", Mime: "text/csv", Data: []byte("a,b")}},
			}, nil
		}}
	})
	res := connect(t, b).call(`{"code":"x","timeout":1000}`)
	var got map[string]any
	if err := json.Unmarshal(res.Struct, &got); err != nil {
		t.Fatal(err)
	}
	id, _ := got["call"].(string)
	if len(id) != 12 {
		t.Errorf("call %v", got["call"])
	}
	delete(got, "call")
	delete(got, "durations") // TestTimesAreToldApart
	want := map[string]any{
		"status": "error", "exitCode": 1.0, "message": "It raised.", "stdout": "a\n[... 5 bytes were not kept ...]\n\n", "stderr": "w", "calls": 2.0, "timeoutSeconds": 120.0,
		"error":     map[string]any{"type": "ValueError", "message": "no", "traceback": "tb", "line": 4.0},
		"truncated": map[string]any{"stdoutBytes": 5.0, "stderrBytes": 0.0},
		"artifacts": []any{
			map[string]any{"name": "p.png", "mime": "image/png", "bytes": float64(len(picture(t, 2, 2))), "uri": "mcp-bridge://runs/" + id + "/p.png"},
			map[string]any{"name": "t.csv", "mime": "text/csv", "bytes": 3.0, "uri": "mcp-bridge://runs/" + id + "/t.csv"},
		},
		"notices": []any{"timeout: 1000 s is longer than this server allows; the run had 120 s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(res.Content) != 3 || res.Content[0].Type != "text" || res.Content[1].Type != "image" || res.Content[2].Type != "resource_link" || !res.IsError {
		t.Errorf("content: %+v", res.Content)
	}
}

// TestMachineErrors: what a person has to do reaches the model as one sentence and the next step.
func TestMachineErrors(t *testing.T) {
	unavailable := &runtime.UnavailableError{Engine: "podman", Err: errors.New("connection refused"), Next: "systemctl --user start podman.socket"}
	noImage := &runtime.ImageError{Ref: "python:9", Err: errors.New("manifest unknown"), Next: "mcp-bridge image build"}
	for _, tc := range []struct {
		name         string
		prepare, run error
		want         string
	}{
		{"no engine", fmt.Errorf("preparing: %w", unavailable), nil,
			"status: unavailable — preparing: podman is not available: connection refused. Next: systemctl --user start podman.socket"},
		{"no image", noImage, nil, "status: unavailable — image python:9 can't be had: manifest unknown. Next: mcp-bridge image build"},
		{"engine gone at the run", nil, unavailable, "status: unavailable — podman is not available: connection refused. Next: systemctl --user start podman.socket"},
		{"other", nil, errors.New("no pipe"), "status: unavailable — no pipe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := build(t, func(c *Config) {
				c.Runner = fakeRunner{
					prepare: func(context.Context, runtime.Progress) error { return tc.prepare },
					run: func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
						return sandbox.Result{}, tc.run
					},
				}
			})
			res := connect(t, b).call(`{"code":"x"}`)
			if !res.IsError || res.Content[0].Text != tc.want {
				t.Errorf("got  %s\nwant %s", res.Content[0].Text, tc.want)
			}
		})
	}
}

// TestServerThatIsNotUsable: code that names a server which is configured and can't be used is told why, and nothing else is.
func TestServerThatIsNotUsable(t *testing.T) {
	c := build(t, nil).catalog()
	for message, told := range map[string]bool{
		"name 'mcp_linear' is not defined": true,
		"name 'mcp_Linear' is not defined": false,
		"name 'linear' is not defined":     false,
		"mcp_linear":                       false,
	} {
		r := sandbox.Result{Status: sandbox.StatusError, Error: &sandbox.Failure{Type: "NameError", Message: message}}
		text := newOutcome("c", arguments{catalog: c}, r, 200).text()
		if strings.Contains(text, `server "linear" is configured in /home/u/.cursor/mcp.json but can't be used: remote servers are not supported yet`) != told {
			t.Errorf("%s: %s", message, text)
		}
	}
}

// TestHugeTraceback: an exception's text is cut as output is, so that it can't fill a model's context.
func TestHugeTraceback(t *testing.T) {
	huge := strings.Repeat("x", 200_000)
	r := sandbox.Result{Status: sandbox.StatusError, Error: &sandbox.Failure{Type: "ValueError",
		Message: huge, Traceback: "Traceback:\n" + huge + "\nValueError: the end"}}
	o := newOutcome("c", arguments{}, r, DefaultOutput)
	text := o.text()
	if len(text) > DefaultOutput/2 || !strings.HasSuffix(text, "\nValueError: the end") || !strings.Contains(text, " bytes left out here ...]") {
		t.Errorf("%d bytes, which end in %q", len(text), text[max(0, len(text)-50):])
	}
	if n := len(o.Error.Message); n > DefaultOutput/2 {
		t.Errorf("the message has %d bytes", n)
	}
}

// TestOutputSetting: the configured size bounds what a result shows, and what is said to Claude Code follows it.
func TestOutputSetting(t *testing.T) {
	for _, tc := range []struct {
		name   string
		output int64
		want   int
		chars  int64
	}{{"default", 0, DefaultOutput, 40960}, {"more", 200 << 10, 200 << 10, 323584}} {
		t.Run(tc.name, func(t *testing.T) {
			b := build(t, func(c *Config) {
				c.Output = tc.output
				c.Runner = fakeRunner{run: func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
					return printed(strings.Repeat("a line\n", 100_000)), nil
				}}
			})
			shown := len(connect(t, b).call(`{"code":"x"}`).Content[0].Text)
			if shown < tc.want || shown > tc.want+200 {
				t.Errorf("%d bytes are shown, want %d and the mark", shown, tc.want)
			}
			if got := b.tool(b.catalog()).Meta.AdditionalFields["anthropic/maxResultSizeChars"]; got != tc.chars {
				t.Errorf("maxResultSizeChars is %v, want %d", got, tc.chars)
			}
		})
	}
}

// TestMoreTime: a run that timed out is told how much time it may have, unless it had that.
func TestMoreTime(t *testing.T) {
	const notice = "\n[to allow more time, give a longer timeout: up to 120 s]"
	for _, tc := range []struct {
		status  sandbox.Status
		timeout time.Duration
		want    bool
	}{
		{sandbox.StatusTimeout, 30 * time.Second, true},
		{sandbox.StatusTimeout, 2 * time.Minute, false},
		{sandbox.StatusError, 30 * time.Second, false},
	} {
		a := arguments{timeout: tc.timeout, most: 2 * time.Minute}
		text := newOutcome("c", a, sandbox.Result{Status: tc.status}, DefaultOutput).text()
		if strings.HasSuffix(text, notice) != tc.want {
			t.Errorf("%s after %v: got %q", tc.status, tc.timeout, text)
		}
	}
}
