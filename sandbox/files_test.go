package sandbox

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

func piece(name string, chunk, of int, data string) entrypoint.FromGuest {
	return entrypoint.FromGuest{Name: name, Mime: "text/plain", Chunk: chunk, Of: of,
		Data: base64.StdEncoding.EncodeToString([]byte(data))}
}

func TestFilesArePutTogether(t *testing.T) {
	var held atomic.Int64
	c := newCollector(10_000, &held)
	for i, tc := range []struct {
		frame entrypoint.FromGuest
		ok    bool
	}{
		{piece("a.txt", 1, 2, "one "), true},
		{piece("b.txt", 0, 0, "whole"), true}, // a file in one piece needs no numbers
		{piece("a.txt", 1, 2, "again"), false},
		{piece("a.txt", 2, 3, "of more"), false},
		{piece("a.txt", 3, 2, "beyond"), false},
		{piece("a.txt", 2, 2, "two"), true},
		{piece("A.txt", 1, 1, "case"), true},
		{piece("c", 2, 2, "the end of nothing"), false},
		{piece("", 1, 1, "x"), false},
		{piece(strings.Repeat("n", 300), 1, 1, "x"), false},
		{entrypoint.FromGuest{Name: "d", Data: "!"}, false},
		{piece("never.txt", 1, 2, "half"), true},
	} {
		if got := c.add(tc.frame); got != tc.ok {
			t.Errorf("frame %d: %v, want %v", i, got, tc.ok)
		}
	}
	kept, lost := c.result()
	want := []Artifact{{"b.txt", "text/plain", []byte("whole")}, {"a.txt", "text/plain", []byte("one two")},
		{"A-2.txt", "text/plain", []byte("case")}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"never.txt"}, lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}

func TestFilesAreBounded(t *testing.T) {
	var held atomic.Int64
	c := newCollector(1000, &held)
	c.add(piece("small", 1, 1, "x"))
	c.add(piece("big", 1, 3, strings.Repeat("x", 400)))
	c.add(piece("big", 2, 3, strings.Repeat("x", 400)))
	c.add(piece("big", 3, 3, "x"))
	kept, lost := c.result()
	if len(kept) != 1 || kept[0].Name != "small" || len(lost) != 1 || lost[0] != "big" {
		t.Errorf("kept %v, lost %v", kept, lost)
	}

	many := newCollector(1<<20, &held)
	for i := range 500 {
		many.add(piece(fmt.Sprint(i), 1, 1, ""))
	}
	kept, lost = many.result()
	if len(kept) != maxFiles || len(lost) != maxLostNames+1 || lost[maxLostNames] != "and 380 more" {
		t.Errorf("kept %d, lost %v", len(kept), lost)
	}

	open := newCollector(1<<20, &held)
	for i := range 500 {
		open.add(piece(fmt.Sprint(i), 1, 2, "x"))
	}
	if len(open.partial) > maxFiles {
		t.Errorf("%d files are begun at a time", len(open.partial))
	}
	for _, c := range []*collector{c, many, open} {
		c.release()
	}
	if held.Load() != 0 {
		t.Errorf("%d bytes are still counted", held.Load())
	}
}

// TestFilesOfAllRunsAreBounded: together runs hold eight times what one may, and room that is given
// back can be used again.
func TestFilesOfAllRunsAreBounded(t *testing.T) {
	var held atomic.Int64
	var all []*collector
	kept := 0
	for range 20 {
		c := newCollector(1000, &held)
		c.add(piece("f", 1, 1, strings.Repeat("x", 700)))
		files, _ := c.result()
		kept += len(files)
		all = append(all, c)
	}
	if kept != 8 {
		t.Errorf("%d runs kept a file, want 8", kept)
	}
	all[0].release()
	last := newCollector(1000, &held)
	last.add(piece("f", 1, 1, strings.Repeat("x", 700)))
	if files, _ := last.result(); len(files) != 1 {
		t.Error("room that was given back can't be used")
	}
}

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{
		"plot.png": "plot.png", "Übersicht-1.csv": "Übersicht-1.csv", "a/b.c": "a/b.c",
		"../../etc/passwd": "etc/passwd", "/etc/passwd": "etc/passwd",
		`C:\x\y`: "C_/x/y", "a//b/./..": "a/b", ".ssh/.x": "ssh/x", "a\nb\x00\u202e": "a_b__", "..": "file",
		"": "file", "a b?c#d%e": "a_b_c_d_e",
		"\xff": "_", "\ufffd": "_",
	} {
		if got := safeName(in); got != want || safeName(got) != got {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"image/png": "image/png", "text/plain;charset=utf-8": "text/plain;charset=utf-8", "": unknownMIME,
		"png": unknownMIME, "a/b\n": unknownMIME,
		"a/b c": unknownMIME, "/b": unknownMIME, "a/": unknownMIME, "a/" + strings.Repeat("b", 200): unknownMIME,
		"é/b": unknownMIME,
	} {
		if got := safeMIME(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
