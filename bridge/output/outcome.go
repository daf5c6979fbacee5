// Package output renders what a run leaves: the text that a model reads, links to files, images,
// and the structured form of all of it. A Store keeps what a result doesn't show, for read_output
// and resources/read.
package output

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Statuses of a call whose code was not run. Others are those of package sandbox.
const (
	StatusInvalid     = entrypoint.CodeValidation // the arguments are wrong
	StatusUnavailable = "unavailable"             // the machine isn't ready
	StatusBusy        = "busy"                    // the queue was full, or the wait in it too long
	StatusCancelled   = string(sandbox.StatusCancelled)
)

// An Outcome is all that a caller is told of one call. In structured mode it is the
// structuredContent.
type Outcome struct {
	Call     string `json:"call"` // id, as in the log
	Status   string `json:"status"`
	ExitCode int    `json:"exitCode"`
	Signal   int    `json:"signal,omitempty"`
	Message  string `json:"message,omitempty"` // what ended the run, or why there was none, and the next step

	Stdout    string         `json:"stdout"`
	Stderr    string         `json:"stderr"`
	Error     *failure       `json:"error,omitempty"` // the exception
	Truncated *truncated     `json:"truncated,omitempty"`
	Artifacts []artifactInfo `json:"artifacts,omitempty"`

	Sandbox        *Sandbox  `json:"sandbox,omitempty"`     // that the code ran in, if it lasts
	Environment    string    `json:"environment,omitempty"` // whose packages the code had
	Calls          int       `json:"calls"`                 // of servers, that the code made
	TimeoutSeconds float64   `json:"timeoutSeconds"`        // that the run had
	Notices        []string  `json:"notices,omitempty"`
	Durations      durations `json:"durations"`

	limit string // a sentence on the limit that the exception came from; in Message too
	all   string // the whole output
	reads bool   // the caller can read what is left out
	files []sandbox.Artifact
	shown []mcp.Content // what stands for the files
}

type failure struct {
	Type      string `json:"type,omitempty"`
	Message   string `json:"message,omitempty"`
	Traceback string `json:"traceback,omitempty"`
	Line      int    `json:"line,omitempty"`
}

// truncated counts the bytes of output that are missing where a mark in it says so.
type truncated struct {
	Stdout int64 `json:"stdoutBytes"`
	Stderr int64 `json:"stderrBytes"`
}

type artifactInfo struct {
	Name  string `json:"name"`
	Mime  string `json:"mime"`
	Bytes int    `json:"bytes"`
	URI   string `json:"uri,omitempty"`  // for resources/read, while it is kept
	Path  string `json:"path,omitempty"` // absolute, where it was written to
}

// durations are in milliseconds, to the microsecond.
type durations struct {
	Queue   float64 `json:"queueMs"`             // until other calls had ended
	Prepare float64 `json:"prepareMs,omitempty"` // until engine and image were there, from 1 ms on
	Start   float64 `json:"startMs"`             // until the container was ready
	Run     float64 `json:"runMs"`               // the code's own time
	Total   float64 `json:"totalMs"`             // of the call, from its arrival to its answer
}

// longWait is the time in the queue from which on the text of a result mentions it.
const longWait = time.Second

// Timed adds where the call's time went. What it never came to is zero.
func (o *Outcome) Timed(t sandbox.Took) {
	o.Durations = durations{
		Queue: millis(t.Queued), Start: millis(t.Start), Run: millis(t.Run), Total: millis(t.Total),
	}
	if t.Prepared >= time.Millisecond {
		o.Durations.Prepare = millis(t.Prepared)
	}
	if t.Queued >= longWait && o.Status != StatusBusy {
		o.Note(fmt.Sprintf("the call waited %.1f s for other calls to end before its own began",
			t.Queued.Seconds()))
	}
}

// New returns the outcome of a run that had timeout. It shows at most limit bytes of what was
// printed. reads says whether the caller has a tool that reads the rest.
func New(id string, r sandbox.Result, timeout time.Duration, limit int, reads bool) Outcome {
	o := Outcome{
		Call: id, Status: string(r.Status), ExitCode: r.ExitCode, Signal: r.Signal, Message: r.Message,
		TimeoutSeconds: timeout.Seconds(), limit: r.Limit, files: r.Artifacts,
		reads: reads,
	}
	o.Durations = durations{
		Queue: millis(r.Took.Queued), Start: millis(r.Took.Start),
		Run: millis(r.Took.Run), Total: millis(r.Took.Total),
	}
	if r.Error != nil {
		most := max(limit/4, minFailure)
		o.Error = &failure{
			Type: r.Error.Type, Message: shorten(r.Error.Message, most),
			Traceback: shorten(r.Error.Traceback, most), Line: r.Error.Line,
		}
	}
	for _, f := range r.Artifacts {
		o.Artifacts = append(o.Artifacts, artifactInfo{Name: f.Name, Mime: f.Mime, Bytes: len(f.Data)})
	}
	o.print(r.Output, limit)
	if len(r.Lost) > 0 {
		o.Note("files that were not kept, since they are beyond what runs may hand over, or not whole: " +
			strings.Join(r.Lost, ", "))
	}
	return o
}

// Refused returns the outcome of a call whose code was not run: one sentence, and the next step
// where the error has a Hint.
func Refused(id, status string, err error) Outcome {
	return Outcome{Call: id, Status: status, ExitCode: -1, Message: text.Hinted(err)}
}

// Note adds sentences that the caller reads after the output.
func (o *Outcome) Note(notices ...string) { o.Notices = append(o.Notices, notices...) }

// HasFiles reports whether the run has handed over files.
func (o *Outcome) HasFiles() bool { return len(o.files) > 0 }

// minFailure is how many bytes of an exception's text are shown at least, and of its traceback.
const minFailure = 2 << 10

// guestCut is the mark of entrypoint/guest/tracebacks.py for what it has left out.
var guestCut = regexp.MustCompile(`\n\[\.\.\. ([0-9,]{1,15}) characters left out \.\.\.\]\n`)

// shorten returns s without its middle where it is longer than limit bytes. Where the guest's mark
// is in that, the new one says how much both stand for.
func shorten(s string, limit int) string {
	p := printed{text: s}
	if m := guestCut.FindStringSubmatch(s); m != nil {
		p.mark = m[0]
		p.lost, _ = strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
	}
	short, _ := p.cut(limit, func(_ int, n, lost int64) string {
		more := ""
		if lost > 0 {
			more = " and " + text.Count(lost) + " characters"
		}
		return fmt.Sprintf("\n[... %s bytes%s left out here ...]\n", text.Count(n-lost), more)
	})
	return short
}

// print cuts both streams to limit bytes together. Stderr gives way, except for a quarter.
func (o *Outcome) print(chunks []sandbox.Chunk, limit int) {
	stdout, stderr := streams(chunks)
	var begin int
	o.all, begin = joined(stdout.text, stderr.text)
	forErr := min(len(stderr.text), max(limit/4, limit-len(stdout.text)))
	var t truncated
	o.Stdout, t.Stdout = stdout.cut(limit-forErr, o.mark("stdout", 0))
	o.Stderr, t.Stderr = stderr.cut(forErr, o.mark("stderr", begin))
	if t != (truncated{}) {
		o.Truncated = &t
	}
}

// mark returns a function for cut, of a stream that begins at an offset of the whole output.
func (o *Outcome) mark(stream string, begin int) func(offset int, n, lost int64) string {
	return func(offset int, n, lost int64) string {
		gone := ""
		if lost > 0 {
			gone = fmt.Sprintf(", %s of which were not kept", text.Count(lost))
		}
		if !o.reads {
			return fmt.Sprintf("\n[... %s bytes of %s left out here%s; print less ...]\n", text.Count(n), stream, gone)
		}
		return fmt.Sprintf("\n[... %s bytes of %s left out here%s; %s(run=%q, offset=%d) reads them ...]\n",
			text.Count(n), stream, gone, ReadTool, o.Call, begin+offset)
	}
}

// Keep keeps in v what the result doesn't show, and makes the contents that stand for the files:
// links, or text for a client without them. Notices say what can't be read later.
func (o *Outcome) Keep(v View, links bool) {
	if o.Truncated == nil && !o.HasFiles() {
		return
	}
	if !v.keep(&kept{id: o.Call, text: o.all, files: o.files}) {
		o.Note("the rest of the output and the files are too large to be kept: they can't be read later")
	}
	for i, f := range o.files {
		o.Artifacts[i].URI = fileURI(o.Call, f.Name)
	}
	var notices []string
	o.shown, notices = present(o.Call, o.files, links)
	o.Note(notices...)
}

// At sets the paths that the caller has written files to, by their names.
func (o *Outcome) At(paths map[string]string) {
	o.Artifacts = slices.Clone(o.Artifacts)
	for i, f := range o.Artifacts {
		o.Artifacts[i].Path = paths[f.Name]
	}
}

func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// Result returns the tool's result. Any status but ok is an error, so that a failure can't pass for
// data.
func (o Outcome) Result(structured bool) *mcp.CallToolResult {
	res := &mcp.CallToolResult{IsError: o.Status != string(sandbox.StatusOK)}
	if text := o.text(); text != "" { // hosts refuse a text without characters
		res.Content = append(res.Content, mcp.NewTextContent(text))
	}
	res.Content = append(res.Content, o.shown...)
	if structured {
		res.RawStructuredContent = o.JSON()
	}
	return res
}

// JSON returns the structured form.
func (o Outcome) JSON() json.RawMessage { return text.JSON(o) }

// text returns what a model reads: what was printed to stdout, byte for byte, and after it only
// what else there is to say.
func (o Outcome) text() string {
	var b strings.Builder
	add := func(section string) {
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(section)
	}
	b.WriteString(o.Stdout)
	if o.Stderr != "" {
		add("stderr:\n" + o.Stderr)
	}
	if o.Status != string(sandbox.StatusOK) {
		add(o.statusText())
	}
	for _, n := range o.Notices {
		add("[" + n + "]")
	}
	if o.Truncated != nil && o.reads { // hosts that cut results keep their ends, and drop the mark in the middle
		add(fmt.Sprintf("[… cut in the middle: %s(run=%q)]", ReadTool, o.Call))
	}
	if b.Len() == 0 && len(o.files) == 0 {
		b.WriteString("(no output)")
	}
	if o.Sandbox != nil {
		add("[" + o.Sandbox.line() + "]")
	}
	return b.String()
}

// statusText returns the status with its reason. That of an exception is its traceback, which ends
// with its type and message.
func (o Outcome) statusText() string {
	line := "status: " + o.Status
	switch {
	case o.Status == string(sandbox.StatusExit) && o.Signal != 0:
		line += fmt.Sprintf(" (signal %d)", o.Signal)
	case o.Status == string(sandbox.StatusExit):
		line += fmt.Sprintf(" %d", o.ExitCode)
	}
	e := o.Error
	switch {
	case e == nil:
		return line + reasonText(o.Message)
	case o.Status != string(sandbox.StatusError):
		line += reasonText(o.Message)
	case e.Traceback == "":
		line += reasonText(strings.TrimPrefix(e.Type+": "+e.Message, ": "))
	}
	if e.Traceback != "" {
		line += "\n" + strings.TrimRight(e.Traceback, "\n")
	}
	if o.limit != "" {
		line += "\n" + o.limit
	}
	return line
}

func reasonText(s string) string {
	if s == "" {
		return ""
	}
	return " — " + s
}
