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
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestStructured(t *testing.T) {
	b := build(t, func(c *Config) {
		c.OutputMode = OutputStructured
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			for _, tool := range []string{"me", "list_issues"} {
				_, _ = h.Call(ctx, sandbox.Call{Provider: "github", Tool: tool})
			}
			return sandbox.Result{
				ID: r.ID, Status: sandbox.StatusError, ExitCode: 1, Message: "It raised.",
				Output: []sandbox.Chunk{{Stream: "stdout", Text: "a"}, {Stream: "stdout", Lost: 5},
					{Stream: "stdout", Text: "\n"}, {Stream: "stderr", Text: "w"}},
				Error: &sandbox.Failure{Type: "ValueError", Message: "no", Traceback: "tb", Line: 4},
				Artifacts: []sandbox.Artifact{{Name: "p.png", Mime: "image/png", Data: picture(t, 2, 2)},
					{Name: "t.csv", Mime: "text/csv", Data: []byte("a,b")}},
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
		"status": "error", "exitCode": 1.0, "message": "It raised.",
		"stdout": "a\n[... 5 bytes were not kept ...]\n\n", "stderr": "w", "calls": 2.0, "timeoutSeconds": 120.0,
		"error":     map[string]any{"type": "ValueError", "message": "no", "traceback": "tb", "line": 4.0},
		"truncated": map[string]any{"stdoutBytes": 5.0, "stderrBytes": 0.0},
		"artifacts": []any{
			map[string]any{"name": "p.png", "mime": "image/png", "bytes": float64(len(picture(t, 2, 2))),
				"uri": "mcp-bridge://runs/" + id + "/p.png"},
			map[string]any{"name": "t.csv", "mime": "text/csv", "bytes": 3.0, "uri": "mcp-bridge://runs/" + id +
				"/t.csv"},
		},
		"notices": []any{"timeout: 1000 s is longer than this server allows; the run had 120 s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(res.Content) != 3 || res.Content[0].Type != "text" || res.Content[1].Type != "image" ||
		res.Content[2].Type != "resource_link" || !res.IsError {
		t.Errorf("content: %+v", res.Content)
	}
}

// TestMachineErrors: what a person has to do reaches the model as one sentence and the next step.
func TestMachineErrors(t *testing.T) {
	unavailable := &runtime.UnavailableError{Engine: "podman", Err: errors.New("connection refused"),
		Next: "systemctl --user start podman.socket"}
	noImage := &runtime.ImageError{Ref: "python:9", Err: errors.New("manifest unknown"),
		Next: "mcp-bridge image build"}
	for _, tc := range []struct {
		name         string
		prepare, run error
		want         string
	}{
		{"no engine", fmt.Errorf("preparing: %w", unavailable), nil,
			"status: unavailable — preparing: podman is not available: connection refused. Next: systemctl --user " +
				"start podman.socket"},
		{"no image", noImage, nil, "status: unavailable — image python:9 can't be had: manifest unknown. Next: " +
			"mcp-bridge image build"},
		{"engine gone at the run", nil, unavailable, "status: unavailable — podman is not available: connection " +
			"refused. Next: systemctl --user start podman.socket"},
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

// TestServerThatIsNotUsable: code that names a server which is configured and can't be used is told
// why, and nothing else is.
func TestServerThatIsNotUsable(t *testing.T) {
	c := build(t, nil).Catalog()
	for message, told := range map[string]bool{
		"name 'mcp_linear' is not defined": true,
		"name 'mcp_Linear' is not defined": false,
		"name 'linear' is not defined":     false,
		"mcp_linear":                       false,
	} {
		r := sandbox.Result{Status: sandbox.StatusError, Error: &sandbox.Failure{Type: "NameError",
			Message: message}}
		text := shownText((&run{args: arguments{catalog: c}}).outcome(r, 200))
		if strings.Contains(text, `server "linear" is configured in /home/u/.cursor/mcp.json but can't be used: `+
			`remote servers are not supported yet`) != told {
			t.Errorf("%s: %s", message, text)
		}
	}
}

// TestOutputSetting: the configured size bounds what a result shows, and what is said to Claude
// Code follows it.
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
			if got := b.runTool(b.Catalog()).Meta.AdditionalFields["anthropic/maxResultSizeChars"]; got != tc.chars {
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
		text := shownText((&run{args: a}).outcome(sandbox.Result{Status: tc.status}, DefaultOutput))
		if strings.HasSuffix(text, notice) != tc.want {
			t.Errorf("%s after %v: got %q", tc.status, tc.timeout, text)
		}
	}
}

// shownText returns the text of a result.
func shownText(o output.Outcome) string { return o.Result(false).Content[0].(mcp.TextContent).Text }
