package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

var asOf = time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)

func sample() List {
	return List{AsOf: asOf, Tools: []upstream.Tool{
		{Name: "read <&> \u2028", Title: "Read", Description: "Reads.\nAll of it.",
			InputSchema: json.RawMessage(`{"a":9007199254740993,"b":"<&>"}`)},
		{Name: "odd", InputSchema: json.RawMessage(`true`), OutputSchema: json.RawMessage(`{"type":"object"}`),
			Annotations: json.RawMessage(`{"readOnlyHint":true}`)},
		{Name: "bare"},
	}}
}

func saved(t *testing.T, s *Store, key string) {
	t.Helper()
	if err := s.Save(key, sample()); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Load(key); !ok || !reflect.DeepEqual(got, sample()) {
		t.Fatalf("%v (-want +got):\n%s", ok, cmp.Diff(sample(), got))
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "tools")
	s := OpenStore(dir)
	if _, ok := s.Load("k"); ok {
		t.Error("something is loaded from nowhere")
	}
	saved(t, s, "k")
	if _, ok := s.Load("other"); ok {
		t.Error("a list is loaded under another key")
	}
	if got, ok := OpenStore(dir).Load("k"); !ok || len(got.Tools) != 3 {
		t.Error("another process finds nothing")
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "k.json"): 0o600} {
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, about.Mode(), err)
		}
	}
	changed := sample()
	changed.Tools = changed.Tools[:1]
	if err := s.Save("k", changed); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Load("k"); len(got.Tools) != 1 {
		t.Errorf("after a change: %+v", got)
	}
}

// TestBrokenFiles: whatever became of a file, it is as good as none, and the next Save mends it.
func TestBrokenFiles(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(t *testing.T, dir, file string)
	}{
		{"cut", func(t *testing.T, _, file string) {
			rewrite(t, file,
				func(b []byte) []byte { return b[:len(b)/2] })
		}},
		{"empty", func(t *testing.T, _, file string) { rewrite(t, file, func([]byte) []byte { return nil }) }},
		{"another format", func(t *testing.T, _, file string) {
			rewrite(t, file, func(b []byte) []byte {
				return bytes.Replace(b, []byte(format),
					[]byte("mcp-bridge-tools-2"), 1)
			})
		}},
		{"a list that is no JSON", func(t *testing.T, _, file string) {
			rewrite(t, file, func(b []byte) []byte { return append(bytes.SplitAfter(b, []byte("\n"))[0], '{') })
		}},
		{"of another key", func(t *testing.T, dir, file string) {
			saved(t, OpenStore(dir), "other")
			if err := os.Rename(filepath.Join(dir, "other.json"), file); err != nil {
				t.Fatal(err)
			}
		}},
		{"too long", func(t *testing.T, _, file string) {
			rewrite(t, file, func(b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), maxFile)...) })
		}},
		{"in a directory that others may write", func(t *testing.T, dir, _ string) { chmod(t, dir, 0o777) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			chmod(t, dir, 0o700)
			s := OpenStore(dir)
			saved(t, s, "k")
			tc.spoil(t, dir, filepath.Join(dir, "k.json"))
			if got, ok := s.Load("k"); ok {
				t.Errorf("it is believed: %+v", got)
			}
			saved(t, s, "k")
		})
	}
}

func rewrite(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		changed := change(text)
		if bytes.Equal(changed, text) {
			t.Fatal("nothing is changed")
		}
		err = os.WriteFile(file, changed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestBounds: neither one server nor many fill the disk.
func TestBounds(t *testing.T) {
	s := OpenStore(t.TempDir())
	s.files = 3
	for i := range 6 {
		key := fmt.Sprint("k", i)
		saved(t, s, key)
		old := asOf.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(s.dir, key+suffix), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		if _, ok := s.Load(fmt.Sprint("k", i)); ok != (i >= 3) {
			t.Errorf("list %d is there: %v; the latest three are to be kept", i, ok)
		}
	}
	s.total = 1
	saved(t, s, "k9")
	if left := names(t, s.dir); len(left) != 1 {
		t.Errorf("beyond the bytes: %v", left)
	}
	huge := sample()
	huge.Tools[0].Description = strings.Repeat("x", maxFile)
	if err := s.Save("k9", huge); err != nil {
		t.Error(err)
	}
	if _, ok := s.Load("k9"); ok {
		t.Error("a list is kept that isn't the latest")
	}
	if err := s.Save("new", huge); err != nil {
		t.Errorf("a list that is too long: %v", err)
	}
	if left := names(t, s.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// names returns the names of the files in a store.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			all = append(all, e.Name())
		}
	}
	return all
}

// TestUnfinishedFilesAreRemoved: of a bridge that was killed while it wrote.
func TestUnfinishedFilesAreRemoved(t *testing.T) {
	s := OpenStore(t.TempDir())
	s.files = 1
	if err := os.WriteFile(filepath.Join(s.dir, "new-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	saved(t, s, "k")
	if got := strings.Join(names(t, s.dir), " "); got != "k.json" {
		t.Errorf("there are %s", got)
	}
}

// TestNowhereToWrite: the error is told, and nothing else happens.
func TestNowhereToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := OpenStore(filepath.Join(file, "tools"))
	if err := s.Save("k", sample()); err == nil || !strings.Contains(err.Error(),
		"keeping the tools of a server") {
		t.Errorf("got %v", err)
	}
	if _, ok := s.Load("k"); ok {
		t.Error("something is loaded")
	}
}

// TestPurposeAlone: what a server is for is read without its list, as that was saved.
func TestPurposeAlone(t *testing.T) {
	s := OpenStore(t.TempDir())
	l := sample()
	l.Purpose = "Issues,\nand \"pulls\""
	if err := s.Save("k", l); err != nil {
		t.Fatal(err)
	}
	if got := s.Purpose("k"); got != l.Purpose {
		t.Errorf("got %q, want %q", got, l.Purpose)
	}
	if got, ok := s.Load("k"); !ok || got.Purpose != l.Purpose {
		t.Errorf("loaded %+v, %v", got, ok)
	}
	if got := s.Purpose("other") + (*Store)(nil).Purpose("k"); got != "" {
		t.Errorf("of none: %q", got)
	}
	for name, text := range map[string]string{
		"another format": `{"format":"mcp-bridge-tools-2","key":"k","purpose":"a"}` + "\n",
		"another key":    `{"format":"` + format + `","key":"j","purpose":"a"}` + "\n",
		"no text":        `{"format":"` + format + `","key":"k","purpose":1}` + "\n",
		"no end":         `{"format":"` + format + `","key":"k","purpose":"` + strings.Repeat("a", maxHead),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, "k"+suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.Purpose("k"); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	l.Purpose = strings.Repeat("ä", maxPurpose)
	if err := s.Save("k", l); err != nil || s.Purpose("k") != strings.Repeat("ä", maxPurpose/2) {
		t.Errorf("a long one: %.20q, %v", s.Purpose("k"), err)
	}
}

// TestSeen: shapes are kept beside the lists, joined with what others have saved, and not believed
// where they could not have been made here.
func TestSeen(t *testing.T) {
	shapeOfBare := func(text string) map[string]*shape {
		s, ok := shapeOf(text)
		if !ok {
			t.Fatal(text)
		}
		return map[string]*shape{"bare": s}
	}
	dir := t.TempDir()
	s := OpenStore(dir)
	saved(t, s, "k")
	for _, text := range []string{`[{"a":1,"c":true},{"a":1,"c":true}]`,
		`[{"a":"x","c":true},{"a":"x","c":true}]`} {
		if err := OpenStore(dir).saveSeen("k", shapeOfBare(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.seen("k")["bare"].text(100); got != "list[{a: int | str, c: bool}]" {
		t.Errorf("got %s", got)
	}
	saved(t, s, "k") // the list, which leaves them
	if s.seen("k")["bare"] == nil {
		t.Error("the shape is gone")
	}
	path := filepath.Join(dir, "k"+suffix)
	rewrite(t, path, func(b []byte) []byte {
		head, _, _ := bytes.Cut(b, []byte("\n"))
		return append(head, []byte("\n"+`{"seen":{"good":{"s":4},"bad":{"o":[{"k":"call me at once!","v":{}}]},`+
			`"none":null}}`)...)
	})
	if got := s.seen("k"); len(got) != 1 || got["good"] == nil {
		t.Errorf("got %v", got)
	}
	if _, ok := s.Load("k"); ok || len(s.seen("other")) != 0 {
		t.Error("what was never saved is loaded")
	}
	var none *Store
	if _, ok := none.Load("k"); ok || len(none.seen("k")) != 0 || none.saveSeen("k", nil) != nil ||
		none.Save("k", sample()) != nil {
		t.Error("no store keeps something")
	}
}

// TestSavedTogether: shapes that several processes save at the same time are all kept.
func TestSavedTogether(t *testing.T) {
	dir := t.TempDir()
	one, _ := shapeOf(`{"a":1}`)
	for round := range 10 {
		key := fmt.Sprint("k", round)
		var all sync.WaitGroup
		for i := range 8 {
			s := OpenStore(dir)
			all.Go(func() {
				if err := s.saveSeen(key, map[string]*shape{fmt.Sprint("t", i): one}); err != nil {
					t.Error(err)
				}
				if got := OpenStore(dir).seen(key); got[fmt.Sprint("t", i)] == nil {
					t.Errorf("half a file is read: %v", got)
				}
			})
		}
		all.Wait()
		if got := OpenStore(dir).seen(key); len(got) != 8 {
			t.Errorf("%d of 8 are kept", len(got))
		}
	}
}

// TestSeenIsBounded: shapes of tools that the server no longer lists are dropped, and all of them
// where the list alone has room.
func TestSeenIsBounded(t *testing.T) {
	s := OpenStore(t.TempDir())
	one, _ := shapeOf(`{"a":1}`)
	save := func(names ...string) []string {
		t.Helper()
		tools := map[string]*shape{}
		for _, name := range names {
			tools[name] = one
		}
		if err := s.saveSeen("k", tools); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(s.seen("k")))
	}
	save("bare", "gone")
	saved(t, s, "k")
	if got := save("odd", "other"); !slices.Equal(got, []string{"bare", "odd"}) {
		t.Errorf("listed are bare and odd, kept are %q", got)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "k"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	s.size = len(text) - 1
	if got := save("bare"); len(got) != 0 {
		t.Errorf("kept are %q", got)
	}
	if _, ok := s.Load("k"); !ok {
		t.Error("the list is gone")
	}
}

// TestDirectoryOfAnother: nothing is written into another user's directory, which is left as it is.
func TestDirectoryOfAnother(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("owners say little there")
	}
	dir := "/" // root's
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := OpenStore(dir).Save("k", List{}); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("got %v", err)
	}
	after, err := os.Stat(dir)
	if err != nil || after.Mode() != before.Mode() {
		t.Errorf("its mode was %v and is %v, %v", before.Mode(), after.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*"+suffix)); err != nil || len(left) > 0 {
		t.Errorf("%v is left there, %v", left, err)
	}
}
