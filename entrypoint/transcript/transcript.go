// Package transcript reads the protocol's transcripts, entrypoint/testdata/transcripts, for tests
// that play one side of them. The README there says what the files mean; this package knows their
// form and nothing of playing them.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Side is an end of the conversation.
type Side string

const (
	Host  Side = "host"
	Guest Side = "guest"
	Both  Side = "both" // only of Transcript.PlayedBy
)

// Transcript is one conversation.
type Transcript struct {
	Name     string // of the file, without its extension
	Prose    string
	PlayedBy Side   // whose conduct it is about
	Code     string // "" when there is no code
	Order    string // what the container's command ends in, as JSON; "" for nothing
	Lines    []Line
	Result   json.RawMessage // what the host makes of the run: one object; see Result
}

// File is one that was handed over.
type File struct {
	Name string `json:"name"`
	Mime string `json:"mime"`
	Text string `json:"text"`
}

// Result is the decoded form of Transcript.Result. What is nil is not said; texts are patterns for
// Text.
type Result struct {
	Status    string  `json:"status"`
	Sandbox   *string `json:"sandbox"` // what became of the variables, where they are kept
	ExitCode  *int    `json:"exitCode"`
	Signal    *int    `json:"signal"`
	Stdout    *string `json:"stdout"`
	Stderr    *string `json:"stderr"`
	Truncated *bool   `json:"truncated"`
	Artifacts []File  `json:"artifacts"`
	Error     *struct {
		Type    *string `json:"type"`
		Line    *int    `json:"line"`
		Message *string `json:"message"`
	} `json:"error"`
}

// Line is one line of the conversation: exactly one of Frame, Raw, Close and Exit is meant.
type Line struct {
	At    int // line number in the file's frames
	From  Side
	Frame json.RawMessage // a frame, or the pattern for one; its made strings are made
	Raw   []byte          // a line that is no frame, without its end
	Close bool            // the guest's standard input ends
	Exit  *int            // the guest's process ends with this status
}

// Type returns the frame's type; "" for what is no frame.
func (l Line) Type() string {
	var f struct{ Type string }
	if l.Frame == nil || json.Unmarshal(l.Frame, &f) != nil {
		return ""
	}
	return f.Type
}

// Load reads all transcripts of a folder, by name. A folder without any is an error: a test that
// plays none would pass unseen.
func Load(fsys fs.FS) ([]Transcript, error) {
	names, err := fs.Glob(fsys, "*.txtar")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no transcripts: there is no *.txtar here; see entrypoint/testdata/transcripts")
	}
	all := make([]Transcript, 0, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		t, err := Parse(strings.TrimSuffix(path.Base(name), ".txtar"), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

var playedBy = regexp.MustCompile(`(?m)^Played by: (host|guest)$`)

// Parse reads one transcript.
func Parse(name string, data []byte) (Transcript, error) {
	archive := txtar.Parse(data)
	t := Transcript{Name: name, Prose: string(archive.Comment), PlayedBy: Both}
	if m := playedBy.FindStringSubmatch(t.Prose); m != nil {
		t.PlayedBy = Side(m[1])
	}
	var frames []byte
	for _, f := range archive.Files {
		switch f.Name {
		case "code.py":
			t.Code = string(f.Data)
		case "order":
			t.Order = string(f.Data)
		case "frames":
			frames = f.Data
		case "result":
			t.Result = bytes.TrimSpace(f.Data)
		default:
			return Transcript{}, fmt.Errorf("file %q; there are code.py, order, frames and result", f.Name)
		}
	}
	var r Result
	if err := json.Unmarshal(t.Result, &r); err != nil || r.Status == "" {
		return Transcript{}, fmt.Errorf("result %q is no object with a status", t.Result)
	}
	for i, text := range strings.Split(string(frames), "\n") {
		if text == "" || text[0] == '#' {
			continue
		}
		line, err := t.line(text)
		if err != nil {
			return Transcript{}, fmt.Errorf("frames, line %d: %w", i+1, err)
		}
		line.At = i + 1
		t.Lines = append(t.Lines, line)
	}
	return t, nil
}

func (t *Transcript) line(text string) (Line, error) {
	side, text, found := strings.Cut(text, "> ")
	l := Line{From: Side(side)}
	if !found || l.From != Host && l.From != Guest {
		return l, fmt.Errorf("it begins neither with %q nor with %q", "host> ", "guest> ")
	}
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case strings.HasPrefix(text, "{"):
		var v any
		if err := decode([]byte(text), &v); err != nil {
			return l, err
		}
		var err error
		l.Frame, err = json.Marshal(t.make(v))
		return l, err
	case word == "@raw":
		l.Raw = []byte(repeat.ReplaceAllStringFunc(rest, repeated))
		return l, nil
	case text == "@close" && l.From == Host:
		l.Close = true
		return l, nil
	case word == "@exit" && l.From == Guest:
		status, err := strconv.Atoi(rest)
		l.Exit = &status
		return l, err
	}
	return l, fmt.Errorf("%.40q is neither a frame nor something the %s does", text, l.From)
}

var repeat = regexp.MustCompile(`@repeat\((.*?), (\d+)\)`)

func repeated(s string) string {
	m := repeat.FindStringSubmatch(s)
	n, _ := strconv.Atoi(m[2]) // digits, by the pattern
	return strings.Repeat(m[1], n)
}

// make makes the strings that stand for others.
func (t *Transcript) make(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = t.make(e)
		}
	case []any:
		for i, e := range v {
			v[i] = t.make(e)
		}
	case string:
		if v == "@code" {
			return t.Code
		}
		if m := repeat.FindString(v); m != "" && m == v {
			return repeated(v)
		}
	}
	return v
}

// decode keeps numbers as they are written: 64-bit integers must not pass through a float.
func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// SkipSource reads what a guest is sent before any frame, entrypoint.Source or SourceWith.
func SkipSource(in *bufio.Reader) error {
	head, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	var boot, modules, code int64
	if _, err := fmt.Sscanf(head, "%d %d %d\n", &boot, &modules, &code); err != nil {
		return fmt.Errorf("the first line of a source is %.40q: %w", head, err)
	}
	_, err = io.CopyN(io.Discard, in, boot+modules+code)
	return err
}
