package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// Diff returns what changes in the file, as diff -u writes it, but without lines around it: in
// their place stands what the change is in. Of a line that is touched and holds something else too,
// the rest shows as …: it may be a secret.
func (f *File) Diff() string {
	name, all := config.Show(f.Path), ""
	if f.Remove {
		return "--- " + name + "\n+++ /dev/null\n(the file is removed: it holds nothing else)\n"
	}
	for i := 0; i < len(f.hunks); i++ {
		h := f.hunks[i]
		for ; i+1 < len(f.hunks); i++ {
			next := f.hunks[i+1]
			_, both, oneSided := differing(h.before, next.after)
			if h.hides || next.hides || !oneSided { // what lies between two changes may be a secret
				break
			}
			h.shown, h.line = both, min(h.line, next.line)
			for !slices.Equal(h.in, next.in[:min(len(h.in), len(next.in))]) {
				h.in = h.in[:len(h.in)-1]
			}
		}
		if f.info != nil {
			all += h.place()
		}
		all += h.shown
	}
	if f.info == nil {
		return "--- /dev/null\n+++ " + name + "\n" + all
	}
	return "--- " + name + "\n+++ " + name + "\n" + all
}

// A hunk is the lines that a change touches, as they are and as they may be shown.
type hunk struct {
	line          int      // of the file as it was read; 0 for none
	in            []string // what the change is in
	text, shown   string
	before, after []byte // the file, with what may be shown of the lines
	hides         bool   // the entry shows as one line
}

func (h hunk) place() string {
	switch {
	case h.line == 0:
		return ""
	case len(h.in) == 0:
		return fmt.Sprintf("@@ line %d @@\n", h.line)
	}
	return fmt.Sprintf("@@ line %d, in %s @@\n", h.line, edit.Dotted(h.in))
}

// hunkOf returns the hunk of a change. Of a moved server's entry the values are hidden that could
// be secrets, and of one that goes, or comes back, everything.
func (f *File) hunkOf(c fileChange, before, after []byte) hunk {
	line, text, _ := differing(before, after)
	h := hunk{line: line, in: c.Path, text: text, shown: text, before: before, after: after}
	if len(f.hunks) > 0 {
		if made, err := edit.Apply(f.Path, f.old, c.Change); err == nil {
			h.line, _, _ = differing(f.old, made)
		}
	}
	whole, was := c.Value, config.Value{}
	if root, err := edit.Parse(f.Path, before); err == nil {
		was, _ = edit.At(root, c.Path)
	}
	if whole.Is("nothing") {
		whole = was
	}
	if goes := c.Value.Is("nothing"); len(c.Path) > 0 && !c.Add && (goes || was.Is("nothing")) {
		h.in = c.Path[:len(c.Path)-1] // a value that takes another's place is what the change is in
	}
	if _, entry := whole.Object(); c.move == nil || !entry {
		return h
	}
	sign := "+"
	if c.Value.Is("nothing") {
		sign = "-"
	} else if f.host == config.Own {
		if n := len(f.hunks); n > 0 {
			h.before = f.hunks[n-1].after
		}
		hidden := edit.Change{Path: c.Path, Value: object(c.move.Entry.Shown()).Value()}
		if made, err := edit.Apply(f.Path, h.before, hidden); err == nil {
			_, h.shown, _ = differing(h.before, made)
			h.after = made
			return h
		}
	}
	h.shown, h.hides = sign+edit.Dotted(c.Path[len(h.in):])+": …\n", true
	return h
}

// differing returns the lines in which two texts differ, from the first difference to the last, the
// number of the first, and whether text was only added, or only removed.
func differing(before, after []byte) (line int, out string, oneSided bool) {
	a, b := string(before), string(after)
	start, end := common(before, after)
	end = len(a) - end
	if len(a)-end > start && len(b)-end > start { // of a string, all of it
		for start > 0 && !strings.ContainsRune("\"' \t\n", rune(a[start-1])) {
			start--
		}
		for end > 0 && !strings.ContainsRune("\"' \t\n", rune(a[len(a)-end])) {
			end--
		}
	}
	removed, added := a[start:len(a)-end], b[start:len(b)-end]
	from := strings.LastIndexByte(a[:start], '\n') + 1
	if head := a[from:start]; strings.TrimSpace(head) != "" {
		// An entry after the last one begins with the comma of that one.
	} else if removed == "" && strings.HasSuffix(added, head) {
		added, start = head+strings.TrimSuffix(added, head), from // whole lines
	} else if added == "" && strings.HasSuffix(removed, head) {
		removed, start = head+strings.TrimSuffix(removed, head), from
	}
	wholeLines := func(s string) bool { return s == "" || strings.HasSuffix(s, "\n") }
	rest := ""
	if start > from || !wholeLines(removed) || !wholeLines(added) {
		rest, _, _ = strings.Cut(a[start+len(removed):], "\n")
		rest = hidden(rest)
	}
	head := hidden(a[from:start])
	for _, l := range lines(head + removed + rest) {
		out += "-" + l + "\n"
	}
	for _, l := range lines(head + added + rest) {
		out += "+" + l + "\n"
	}
	return strings.Count(a[:from], "\n") + 1, out, removed == "" || added == ""
}

// hidden returns a part of a line that doesn't change: as it is where it is brackets and blanks.
func hidden(part string) string {
	if strings.Trim(part, " \t\r{}[],") == "" {
		return part
	}
	blanks := part[:len(part)-len(strings.TrimLeft(part, " \t"))]
	return blanks + "…"
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	all := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range all {
		all[i] = strings.ReplaceAll(text.Escape(strings.TrimSuffix(l, "\r")), "……", "…")
	}
	return all
}

// texts returns the lines of hunks, without their places.
func texts(hunks []hunk) []string {
	all := make([]string, len(hunks))
	for i, h := range hunks {
		all[i] = h.text
	}
	return all
}
