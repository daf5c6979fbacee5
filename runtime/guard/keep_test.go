//go:build linux

package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeptFile: what a file is to hold is written by the watchdog once the bridge is gone, the
// latest of it, whole or not at all.
func TestKeptFile(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789\n\x00"), 10_000)
	for _, tt := range []struct {
		name string
		rest func(g *Guard, path string) string // of what the watchdog is told
		want []byte
	}{
		{"a text", func(g *Guard, path string) string { g.Keep(path, []byte("new")); return "" }, []byte("new")},
		{"one of many lines", func(g *Guard, path string) string { g.Keep(path, long); return "" }, long},
		{"an empty one", func(g *Guard, path string) string { g.Keep(path, nil); return "" }, []byte{}},
		{"forgotten", func(g *Guard, path string) string { g.Keep(path, []byte("new"))(); return "" },
			[]byte("before")},
		{"the second", func(g *Guard, path string) string {
			forget := g.Keep(path, []byte("first"))
			g.Keep(path, []byte("second"))
			forget()
			return ""
		}, []byte("second")},
		{"the last of many", func(g *Guard, path string) string {
			for i := range 50 {
				g.Keep(path, []byte{byte(i)})
			}
			return ""
		}, []byte{49}},
		{"an end in the midst of it", func(_ *Guard, path string) string {
			return strings.TrimSuffix(lines(entry{ID: 1, Path: []byte(path), Keep: true, Text: []byte("new")}), "}\n")
		}, []byte("before")},
		{"a good end", func(g *Guard, path string) string {
			g.Keep(path,
				[]byte("new"))
			return lines(entry{End: true})
		},
			[]byte("before")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "record")
			if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			g, err := New(Config{Argv: []string{"none"}})
			if err != nil {
				t.Fatal(err)
			}
			rest := tt.rest(g, path)
			if g.dog != nil {
				t.Error("it has started a watchdog")
			}
			if _, err := Watch(strings.NewReader(g.registered()+rest), nil); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, tt.want) {
				t.Errorf("it holds %d bytes, %.20q, and %v", len(got), got, err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("there are %v, %v", left, err)
			}
		})
	}
}
