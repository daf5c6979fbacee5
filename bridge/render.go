package bridge

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Statuses of a call whose code was not run.
const (
	statusInvalid     = entrypoint.CodeValidation // the arguments are wrong
	statusUnavailable = "unavailable"             // the machine isn't ready
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

	files []sandbox.Artifact
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
}

// durations are in milliseconds.
type durations struct {
	Start float64 `json:"startMs"` // until the container was ready
	Run   float64 `json:"runMs"`   // the code's own time
	Total float64 `json:"totalMs"`
}

func newOutcome(id string, a arguments, r sandbox.Result) outcome {
	o := outcome{
		Call: id, Status: string(r.Status), ExitCode: r.ExitCode, Signal: r.Signal, Message: r.Message,
		Stdout: r.Stdout(), Stderr: r.Stderr(),
		Calls: r.Calls, TimeoutSeconds: a.timeout.Seconds(),
		Durations: durations{millis(r.Took.Start), millis(r.Took.Run), millis(r.Took.Total)},
		files:     r.Artifacts,
	}
	if r.Error != nil {
		o.Error = &failure{r.Error.Type, r.Error.Message, r.Error.Traceback, r.Error.Line}
	}
	for _, f := range r.Artifacts {
		o.Artifacts = append(o.Artifacts, artifactInfo{f.Name, f.Mime, len(f.Data)})
	}
	if d := r.Truncated; d.Stdout > 0 || d.Stderr > 0 {
		o.Truncated = &truncated{d.Stdout, d.Stderr}
		o.Notices = append(o.Notices, fmt.Sprintf("output: %d bytes are cut out where marked; print less at a time", d.Stdout+d.Stderr))
	}
	if a.clamped != "" {
		o.Notices = append(o.Notices, a.clamped)
	}
	return o
}

func millis(d time.Duration) float64 { return toMillis(d) * 1000 }

// render makes the tool result. Everything but a status of ok is an error, so that a failure can't pass for data.
func (o outcome) render(structured bool) *mcp.CallToolResult {
	res := &mcp.CallToolResult{IsError: o.Status != string(sandbox.StatusOK)}
	res.Content = append(res.Content, mcp.NewTextContent(o.text()))
	for _, f := range o.files {
		res.Content = append(res.Content, o.content(f))
	}
	if structured {
		b, err := json.Marshal(o)
		if err != nil {
			panic(err) // no field of an outcome can fail
		}
		res.RawStructuredContent = b
	}
	return res
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
		return line + reasonText(strings.TrimPrefix(e.Type+": "+e.Message, ": "))
	}
	if e.Traceback != "" {
		line += "\n" + strings.TrimRight(e.Traceback, "\n")
	}
	return line
}

func reasonText(s string) string {
	if s == "" {
		return ""
	}
	return " — " + s
}

// imageTypes are those that hosts show to their models.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (o outcome) content(f sandbox.Artifact) mcp.Content {
	data := base64.StdEncoding.EncodeToString(f.Data)
	if slices.Contains(imageTypes, f.Mime) {
		return mcp.NewImageContent(data, f.Mime)
	}
	return mcp.NewEmbeddedResource(mcp.BlobResourceContents{
		URI: "resource://mcp-bridge/artifacts/" + o.Call + "/" + f.Name, MIMEType: f.Mime, Blob: data,
	})
}
