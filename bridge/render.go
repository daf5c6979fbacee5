package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Statuses of a call whose code was not run.
const (
	statusInvalid     = entrypoint.CodeValidation // the arguments are wrong
	statusPanic       = "panic"                   // the bridge has failed; no result says so
	statusUnavailable = "unavailable"             // the machine isn't ready
	statusBusy        = "busy"                    // the queue was full, or the wait in it too long
	statusCancelled   = string(sandbox.StatusCancelled)
)

// outcome is all that a caller is told of one call; in structured mode it is the structuredContent.
type outcome struct {
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

	Calls          int       `json:"calls"`          // tool calls made
	TimeoutSeconds float64   `json:"timeoutSeconds"` // that the run had
	Notices        []string  `json:"notices,omitempty"`
	Durations      durations `json:"durations"`

	limit string   // a sentence on the limit that the exception came from; in Message too
	doc   document // all of the output
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
	Queue   float64 `json:"queueMs"`             // until other calls had ended, and their containers were gone
	Prepare float64 `json:"prepareMs,omitempty"` // until engine and image were there, where that took a millisecond or more
	Start   float64 `json:"startMs"`             // until the container was ready
	Run     float64 `json:"runMs"`               // the code's own time
	Total   float64 `json:"totalMs"`             // of the call, from its arrival to its answer
}

// longWait is from what time on in the queue the text of a result tells of it.
const longWait = time.Second

// timed adds where the call's time went.
func (o *outcome) timed(t times) {
	o.Durations = durations{Queue: millis(t.queued), Start: millis(t.started), Run: millis(t.ran), Total: millis(t.total)}
	if t.prepared >= time.Millisecond {
		o.Durations.Prepare = millis(t.prepared)
	}
	if t.queued >= longWait && o.Status != statusBusy {
		o.Notices = append(o.Notices, fmt.Sprintf("the call waited %.1f s for other calls to end before its own began", t.queued.Seconds()))
	}
}

// newOutcome shows at most so many bytes of what was printed.
func newOutcome(id string, a arguments, r sandbox.Result, limit int64) outcome {
	o := outcome{
		Call: id, Status: string(r.Status), ExitCode: r.ExitCode, Signal: r.Signal, Message: r.Message,
		Calls: r.Calls, TimeoutSeconds: a.timeout.Seconds(),
		Durations: durations{Queue: millis(r.Took.Room), Start: millis(r.Took.Start), Run: millis(r.Took.Run), Total: millis(r.Took.Total)},
		limit:     r.Limit, files: r.Artifacts,
	}
	if r.Error != nil {
		most := max(limit/4, minFailure)
		o.Error = &failure{
			Type: r.Error.Type, Message: shortText(r.Error.Message, most),
			Traceback: shortText(r.Error.Traceback, most), Line: r.Error.Line,
		}
		if why := a.catalog.missing(r.Error.Type, r.Error.Message); why != "" {
			o.Notices = append(o.Notices, why)
		}
	}
	for _, f := range r.Artifacts {
		o.Artifacts = append(o.Artifacts, artifactInfo{Name: f.Name, Mime: f.Mime, Bytes: len(f.Data)})
	}
	o.printed(r.Output, limit)
	if len(r.Lost) > 0 {
		o.Notices = append(o.Notices, "files that were not kept, since they are beyond what runs may hand over, or not whole: "+strings.Join(r.Lost, ", "))
	}
	if a.clamped != "" {
		o.Notices = append(o.Notices, a.clamped)
	}
	if r.Status == sandbox.StatusTimeout && a.timeout < a.most {
		o.Notices = append(o.Notices, "to allow more time, give a longer timeout: up to "+seconds(a.most)+" s")
	}
	return o
}

// minFailure is how many bytes of an exception's text are shown at least, and of its traceback.
const minFailure = 2 << 10

// shortText is text without its middle where it is longer than limit bytes.
func shortText(long string, limit int64) string {
	short, _ := document{{text: long}}.cut(limit, func(_, n, _ int64) string {
		return fmt.Sprintf("\n[... %s bytes left out here ...]\n", text.Count(n))
	})
	return short
}

// printed cuts both streams to limit bytes together: stderr gives way, but for a quarter.
func (o *outcome) printed(chunks []sandbox.Chunk, limit int64) {
	stdout, stderr := streams(chunks)
	var begin int64
	o.doc, begin = both(stdout, stderr)
	forErr := min(stderr.size(), max(limit/4, limit-stdout.size()))
	var t truncated
	o.Stdout, t.Stdout = stdout.cut(limit-forErr, o.mark("stdout", 0))
	o.Stderr, t.Stderr = stderr.cut(forErr, o.mark("stderr", begin))
	if t != (truncated{}) {
		o.Truncated = &t
	}
}

// mark makes what stands where a stream that begins at an offset of all output was cut.
func (o *outcome) mark(stream string, begin int64) func(offset, n, lost int64) string {
	return func(offset, n, lost int64) string {
		gone := ""
		if lost > 0 {
			gone = fmt.Sprintf(", %s of which were not kept", text.Count(lost))
		}
		return fmt.Sprintf("\n[... %s bytes of %s left out here%s; %s(run=%q, offset=%d) reads them ...]\n",
			text.Count(n), stream, gone, readOutputName, o.Call, begin+offset)
	}
}

// keptAs keeps what isn't shown, or says that it can't be read later, and makes the contents that stand for the files.
func (o *outcome) keptAs(s *runs, links bool) {
	if !s.keep(&keptRun{id: o.Call, doc: o.doc, files: o.files}) {
		o.Notices = append(o.Notices, "the rest of the output and the files are too large to be kept: they can't be read later")
	}
	for i, f := range o.files {
		o.Artifacts[i].URI = fileURI(o.Call, f.Name)
	}
	var notices []string
	o.shown, notices = present(o.Call, o.files, links)
	o.Notices = append(o.Notices, notices...)
}

func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// render makes the tool result. Everything but a status of ok is an error, so that a failure can't pass for data.
func (o outcome) render(structured bool) *mcp.CallToolResult {
	res := &mcp.CallToolResult{IsError: o.Status != string(sandbox.StatusOK)}
	if text := o.text(); text != "" { // hosts refuse a text without characters
		res.Content = append(res.Content, mcp.NewTextContent(text))
	}
	res.Content = append(res.Content, o.shown...)
	if structured {
		res.RawStructuredContent = o.encoded()
	}
	return res
}

func (o outcome) encoded() json.RawMessage {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // no field of an outcome can fail
	}
	return b
}

// text is what a model reads: what was printed to stdout, byte for byte, and after it only what there is to say besides.
func (o outcome) text() string {
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
	if o.Truncated != nil { // hosts that cut results keep their ends, and drop the mark in the middle
		add(fmt.Sprintf("[… cut in the middle: %s(run=%q)]", readOutputName, o.Call))
	}
	if b.Len() == 0 && len(o.files) == 0 {
		return "(no output)"
	}
	return b.String()
}

// statusText is the status with what is known of its reason: for an exception its traceback, which ends with its type and message.
func (o outcome) statusText() string {
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
