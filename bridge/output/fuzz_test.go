package output

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// FuzzRender: whatever code prints, raises and hands over, its result is one that a host can read:
// valid, bounded, an error exactly when the run was none, and with every byte where nothing had to
// be cut.
func FuzzRender(f *testing.F) {
	seedRender(f)
	statuses := []sandbox.Status{
		sandbox.StatusOK, sandbox.StatusError, sandbox.StatusTimeout, sandbox.StatusCancelled,
		sandbox.StatusMemoryLimit,
		sandbox.StatusExit, sandbox.StatusEngine,
	}
	const limit = 2000
	f.Fuzz(func(t *testing.T, status byte, stdout, stderr, kind, message, traceback, name, mime string,
		data []byte, lost uint16, code int) {
		for _, s := range []*string{&stdout, &stderr, &kind, &message, &traceback, &name, &mime} {
			*s = strings.ToValidUTF8(*s, "\uFFFD") // as frames have it
		}
		r := sandbox.Result{ID: "c", Status: statuses[int(status)%len(statuses)], ExitCode: code,
			Signal: int(lost) % 65, Message: message}
		r.Output = []sandbox.Chunk{{Stream: "stdout", Text: stdout}, {Stream: "stderr", Text: stderr}}
		if lost > 0 {
			r.Output = append(r.Output, sandbox.Chunk{Stream: "stdout", Lost: int64(lost)},
				sandbox.Chunk{Stream: "stdout", Text: stdout})
		}
		if kind != "" {
			r.Error = &sandbox.Failure{Type: kind, Message: message, Traceback: traceback, Line: code}
		}
		if name != "" {
			r.Artifacts = []sandbox.Artifact{{Name: name, Mime: mime, Data: data}}
		}
		o := New("c", r, time.Second, limit, true)
		o.Keep(bounded(1<<20, 4), true)
		res := o.Result(true)
		if res.IsError != (r.Status != sandbox.StatusOK) {
			t.Errorf("isError is %v for %s", res.IsError, r.Status)
		}
		if len(res.Content) == 0 {
			t.Error("there is no content")
		}
		for _, c := range res.Content {
			if text, ok := c.(mcp.TextContent); ok && (text.Text == "" || !utf8.ValidString(text.Text)) {
				t.Errorf("a text of %q", text.Text)
			}
		}
		var back Outcome
		if err := json.Unmarshal(res.RawStructuredContent, &back); err != nil {
			t.Fatal(err)
		}
		if back.Stdout != o.Stdout || back.Stderr != o.Stderr || back.Status != string(r.Status) {
			t.Errorf("the structured result differs: %.200q, %.200q", back.Stdout, o.Stdout)
		}
		if _, err := json.Marshal(res); err != nil {
			t.Error(err)
		}
		const marks = 2 * 300
		if n := len(o.Stdout) + len(o.Stderr); n > limit+marks {
			t.Errorf("%d bytes are shown, of %d", n, limit)
		}
		if whole := len(stdout)+len(stderr) <= limit && lost == 0; whole &&
			(o.Stdout != stdout || o.Stderr != stderr || o.Truncated != nil) {
			t.Errorf("output was changed: %q, %q", o.Stdout, o.Stderr)
		} else if whole && !strings.HasPrefix(o.text(), stdout) {
			t.Errorf("the text doesn't begin with what was printed: %.200q", o.text())
		}
		if r.Status != sandbox.StatusOK && !strings.Contains(o.text(), "status: "+string(r.Status)) {
			t.Errorf("the text doesn't tell the status: %.200q", o.text())
		}
	})
}

// seedRender adds what the guests of the transcripts print, raise and hand over, and fails when
// that is nothing.
func seedRender(f *testing.F) {
	f.Helper()
	all, err := transcript.Load(os.DirFS("../../entrypoint/testdata/transcripts"))
	if err != nil {
		f.Fatal(err)
	}
	texts, errors := 0, 0
	for i, tr := range all {
		var stdout, stderr, name, mime string
		var failed entrypoint.DoneError
		for _, l := range tr.Lines {
			var frame entrypoint.FromGuest
			if l.From != transcript.Guest || len(l.Frame) > 1<<16 || json.Unmarshal(l.Sample(), &frame) != nil {
				continue
			}
			switch {
			case frame.Type == entrypoint.TypeOutput && frame.Stream == "stderr":
				stderr += frame.Text
			case frame.Type == entrypoint.TypeOutput:
				stdout += frame.Text
			case frame.Type == entrypoint.TypeArtifact:
				name, mime = frame.Name, frame.Mime
			case frame.Type == entrypoint.TypeDone && frame.Error != nil:
				failed = *frame.Error
			}
		}
		if stdout+stderr != "" {
			texts++
		}
		if failed.Type != "" {
			errors++
		}
		f.Add(byte(i), stdout, stderr, failed.Type, failed.Message, failed.Traceback, name, mime,
			[]byte(stdout), uint16(i%3), failed.Line) //nolint:gosec // few
	}
	if texts < 10 || errors < 2 {
		f.Fatalf("the transcripts have %d outputs and %d exceptions: too little to begin with", texts, errors)
	}
	f.Add(byte(0), strings.Repeat("é\n", 2000), strings.Repeat("\u2028", 2000), "", "", "", "../x\n[y](z)",
		"image/png", []byte("\x89PNG"), uint16(9), 0)
}
