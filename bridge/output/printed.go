package output

import (
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// printed is what a run printed to one stream. A mark in it stands for what was not kept.
type printed struct {
	text, mark string
	lost       int64 // bytes that the mark stands for
}

// streams returns what a run printed to stdout and to stderr.
func streams(chunks []sandbox.Chunk) (stdout, stderr printed) {
	var outText, errText strings.Builder
	for _, c := range chunks {
		b, p := &outText, &stdout
		if c.Stream == "stderr" {
			b, p = &errText, &stderr
		}
		if c.Lost > 0 {
			p.lost += c.Lost
			p.mark = fmt.Sprintf("\n[... %s bytes were not kept ...]\n", text.Count(c.Lost))
			b.WriteString(p.mark)
		}
		b.WriteString(c.Text)
	}
	stdout.text, stderr.text = outText.String(), errText.String()
	return stdout, stderr
}

// joined returns stdout and, behind it, stderr, which is the text that run_python shows when
// nothing is cut, and the offset at which stderr begins.
func joined(stdout, stderr string) (all string, offset int) {
	if stderr == "" {
		return stdout, len(stdout)
	}
	head := "stderr:\n"
	if stdout != "" && !strings.HasSuffix(stdout, "\n") {
		head = "\n" + head
	}
	return stdout + head + stderr, len(stdout) + len(head)
}

// cut returns the text without its middle where it is longer than limit bytes, and how many bytes
// of the stream are missing. Mark returns what stands for n bytes from an offset on, of which some
// were lost.
func (p printed) cut(limit int, mark func(offset int, n, lost int64) string) (short string, missing int64) {
	if len(p.text) <= limit {
		return p.text, p.lost
	}
	head, tail := text.First(p.text, limit/2), text.Last(p.text, limit/2)
	middle := p.text[len(head) : len(p.text)-len(tail)]
	n, lost := int64(len(middle)), int64(0)
	if p.lost > 0 && strings.Contains(middle, p.mark) {
		lost = p.lost
		n += lost - int64(len(p.mark))
	}
	return head + mark(len(head), n, lost) + tail, n + p.lost - lost
}
