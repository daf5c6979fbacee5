package install

import (
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// Diff returns what changes in the file, as diff -u writes it but without lines around it. Of a
// line that is touched and holds something else too, the rest shows as …: it may be a secret.
func (f *File) Diff() string {
	name, each, moves := config.Show(f.Path), "", false
	for _, h := range f.hunks {
		each, moves = each+h.shown, moves || h.shown != h.text
	}
	switch {
	case f.Remove:
		return "--- " + name + "\n+++ /dev/null\n(the file is removed: it holds nothing else)\n"
	case f.info == nil:
		return "--- /dev/null\n+++ " + name + "\n" + each
	}
	all, oneSided := differing(f.old, f.New)
	if !oneSided || moves { // what lies between the changes may be a secret
		all = each
	}
	return "--- " + name + "\n+++ " + name + "\n" + all
}

// A hunk is the lines that a change touches, as they are and as they may be shown.
type hunk struct{ text, shown string }

// hunkOf returns the hunk of a change. Of a moved server's entry the values are hidden that could
// be secrets, and of one that goes, or comes back, everything.
func (f *File) hunkOf(c fileChange, before, after []byte) hunk {
	text, _ := differing(before, after)
	whole := c.Value
	if whole.Is("nothing") {
		if root, err := edit.Parse(f.Path, before); err == nil {
			whole, _ = edit.At(root, c.Path)
		}
	}
	if _, entry := whole.Object(); c.move == nil || !entry {
		return hunk{text, text}
	}
	place, _, _ := strings.Cut(text, "\n")
	sign := "+"
	if c.Value.Is("nothing") {
		sign = "-"
	} else if f.host == config.Own {
		hidden := edit.Change{Path: c.Path, Value: object(c.move.Entry.Shown()).Value()}
		if made, err := edit.Apply(f.Path, before, hidden); err == nil {
			shown, _ := differing(before, made)
			return hunk{text, shown}
		}
	}
	return hunk{text, place + "\n" + sign + edit.Dotted(c.Path) + ": …\n"}
}

// differing returns the lines in which two texts differ, from the first difference to the last, and
// whether text was only added, or only removed.
func differing(before, after []byte) (out string, oneSided bool) {
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
	if head := a[from:start]; removed == "" && strings.HasSuffix(added, head) {
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
	out = fmt.Sprintf("@@ line %d @@\n", strings.Count(a[:from], "\n")+1)
	for _, l := range lines(head + removed + rest) {
		out += "-" + l + "\n"
	}
	for _, l := range lines(head + added + rest) {
		out += "+" + l + "\n"
	}
	return out, removed == "" || added == ""
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

// withoutPlaces returns hunks without the numbers of their lines.
func withoutPlaces(hunks []hunk) []string {
	bare := make([]string, len(hunks))
	for i, h := range hunks {
		_, bare[i], _ = strings.Cut(h.text, "\n")
	}
	return bare
}
