package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		{"every byte", sandbox.Result{Status: "ok", Output: out("stdout", "\n a\n\n", "stdout", "\tb  \n\n()\n")},
			"\n a\n\n\tb  \n\n()\n"},
		{"both streams", sandbox.Result{Status: "ok", Output: out("stdout", "a", "stderr", "w\n", "stdout", "b")},
			"ab\nstderr:\nw\n"},
		{"stderr alone", sandbox.Result{Status: "ok", Output: out("stderr", "w\n")}, "stderr:\nw\n"},
		{"exception", sandbox.Result{Status: "error", ExitCode: 1, Output: out("stdout", "a\n"),
			Message: "The code raised.",
			Error: &sandbox.Failure{Type: "ValueError", Message: "no",
				Traceback: "Traceback (most recent call last):\n  line 1\nValueError: no\n", Line: 1}},
			"a\nstatus: error\nTraceback (most recent call last):\n  line 1\nValueError: no"},
		{"exception from a limit", sandbox.Result{Status: "error", Message: "The code raised. Start fewer.",
			Limit: "Start fewer.",
			Error: &sandbox.Failure{Type: "BlockingIOError", Traceback: "BlockingIOError\n"}},
			"status: error\nBlockingIOError\nStart fewer."},
		{"exception without a traceback", sandbox.Result{Status: "error",
			Error: &sandbox.Failure{Type: "SyntaxError", Message: "bad"}}, "status: error — SyntaxError: bad"},
		{"timeout", sandbox.Result{Status: "timeout", Output: out("stdout", "a"),
			Message: "The code was stopped after 2s, its time limit."},
			"a\nstatus: timeout — The code was stopped after 2s, its time limit."},
		{"exit", sandbox.Result{Status: "exit", ExitCode: 3, Message: "The code exited with code 3."},
			"status: exit 3 — The code exited with code 3."},
		{"signal", sandbox.Result{Status: "exit", ExitCode: 139, Signal: 11, Message: "Ended by signal 11."},
			"status: exit (signal 11) — Ended by signal 11."},
		{"memory", sandbox.Result{Status: "memory_limit", Message: "The limit is 512 MiB.",
			Error: &sandbox.Failure{Type: "MemoryError", Traceback: "MemoryError"}},
			"status: memory_limit — The limit is 512 MiB.\nMemoryError"},
		{"engine", sandbox.Result{Status: sandbox.StatusEngine, ExitCode: -1, Output: out("stdout", "a\n"),
			Message: "The engine went away. Next: start it"},
			"a\nstatus: engine — The engine went away. Next: start it"},
		{"cut", sandbox.Result{Status: "ok", Output: out("stdout", strings.Repeat("a", 150), "stdout",
			strings.Repeat("z", 150))},
			strings.Repeat("a", 100) + "\n[... 100 bytes of stdout left out here; read_output(run=\"c\", " +
				"offset=100) reads them ...]\n" + strings.Repeat("z", 100) + mark},
		{"stderr cut", sandbox.Result{Status: "ok", Output: out("stdout", strings.Repeat("a", 100), "stderr",
			strings.Repeat("b", 1050))},
			strings.Repeat("a", 100) + "\nstderr:\n" + strings.Repeat("b", 50) +
				"\n[... 950 bytes of stderr left out here; read_output(run=\"c\", offset=159) reads them ...]\n" +
				strings.Repeat("b", 50) + mark},
		{"both cut", sandbox.Result{Status: "ok", Output: out("stdout", strings.Repeat("a", 1234), "stderr",
			strings.Repeat("b", 150))},
			strings.Repeat("a", 75) + "\n[... 1,084 bytes of stdout left out here; read_output(run=\"c\", " +
				"offset=75) reads them ...]\n" + strings.Repeat("a", 75) +
				"\nstderr:\n" + strings.Repeat("b", 25) + "\n[... 100 bytes of stderr left out here; " +
				"read_output(run=\"c\", offset=1268) reads them ...]\n" + strings.Repeat("b", 25) + mark},
		{"not even kept", sandbox.Result{Status: "ok", Truncated: sandbox.Dropped{Stdout: 5000},
			Output: []sandbox.Chunk{{Stream: "stdout", Text: strings.Repeat("a", 150)}, {Stream: "stdout", Lost: 5000},
				{Stream: "stdout", Text: strings.Repeat("z", 150)}}},
			strings.Repeat("a", 100) + "\n[... 5,100 bytes of stdout left out here, 5,000 of which were not kept; " +
				"read_output(run=\"c\", offset=100) reads them ...]\n" + strings.Repeat("z", 100) + mark},
		{"files that were lost", sandbox.Result{Status: "ok", Lost: []string{"a.bin", "b.bin"}},
			"[files that were not kept, since they are beyond what runs may hand over, or not whole: a.bin, b.bin]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := New("c", tc.res, time.Second, 200, true)
			if diff := cmp.Diff(tc.want, o.text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := o.Result(false); got.IsError != (tc.res.Status != "ok") || got.StructuredContent != nil ||
				got.RawStructuredContent != nil {
				t.Errorf("isError %v, structured %s", got.IsError, got.RawStructuredContent)
			}
		})
	}
}

func TestImagesOfAResultAreBounded(t *testing.T) {
	large := noise(t, 550) // 1.2 MB
	var files []sandbox.Artifact
	for i := range 5 {
		files = append(files, sandbox.Artifact{Name: fmt.Sprint("large", i), Mime: "image/png", Data: large})
	}
	for i := range 30 {
		files = append(files, sandbox.Artifact{Name: fmt.Sprint(i), Mime: "image/png", Data: picture(t, 1, 1)})
	}
	contents, notices := present("r", files, true)
	images := 0
	for _, c := range contents {
		if raw, err := json.Marshal(c); err != nil || bytes.Contains(raw, []byte(`"type":"image"`)) {
			images++
		}
	}
	if images != maxImages || len(contents) != 35 || len(notices) != 35-maxImages {
		t.Errorf("%d contents, %d images, %d notices", len(contents), images, len(notices))
	}
}

// TestManyFiles: a result doesn't fill a context with links.
func TestManyFiles(t *testing.T) {
	var handed []sandbox.Artifact
	for i := range maxLinks + 5 {
		handed = append(handed, sandbox.Artifact{Name: fmt.Sprintf("%d.csv", i), Mime: "text/csv",
			Data: []byte("x")})
	}
	for _, links := range []bool{true, false} {
		contents, notices := present("run", handed, links)
		if len(contents) != maxLinks || len(notices) != 1 || !strings.HasPrefix(notices[0], "5 more files") {
			t.Errorf("links %v: %d contents, notices %q", links, len(contents), notices)
		}
	}
}

// TestHugeTraceback: an exception's text is cut as output is, so that it can't fill a model's
// context.
func TestHugeTraceback(t *testing.T) {
	const limit = 16 << 10
	huge := strings.Repeat("x", 200_000)
	r := sandbox.Result{Status: sandbox.StatusError, Error: &sandbox.Failure{Type: "ValueError",
		Message: huge, Traceback: "Traceback:\n" + huge + "\nValueError: the end"}}
	o := New("c", r, time.Second, limit, true)
	text := o.text()
	if len(text) > limit/2 || !strings.HasSuffix(text, "\nValueError: the end") ||
		!strings.Contains(text, " bytes left out here ...]") {
		t.Errorf("%d bytes, which end in %q", len(text), text[max(0, len(text)-50):])
	}
	if n := len(o.Error.Message); n > limit/2 {
		t.Errorf("the message has %d bytes", n)
	}
	// what the guest has left out before counts too
	half := strings.Repeat("x", 10_000)
	got := shorten(half+"\n[... 980,153 characters left out ...]\n"+half, limit/4)
	if !strings.Contains(got, "\n[... 15,904 bytes and 980,153 characters left out here ...]\n") {
		t.Errorf("a traceback that was cut twice: %s", strings.Trim(got, "x"))
	}
}
