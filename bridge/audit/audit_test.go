package audit

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// lines are all records of a log, of its files from the oldest to the newest. Each is a whole one,
// or the test fails.
func lines(t testing.TB, path string) []Record {
	t.Helper()
	var all []Record
	for i := 100; i >= 0; i-- {
		name := path
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			var r Record
			if err := json.Unmarshal(s.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v in %q", name, err, s.Text())
			}
			all = append(all, r)
		}
	}
	return all
}

func open(t testing.TB, cfg Config) *Log {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, Config{Path: path})
	if got := lines(t, path); len(got) != 0 {
		t.Errorf("opening it has written %+v", got)
	}
	r := Record{Kind: KindCall, Run: "r1", Server: "s\n", Tool: "x", Outcome: "ok", Verdict: "allow"}
	l.SetArguments(&r, json.RawMessage(`{"token":"hunter2"}`))
	if err := l.Record(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := lines(t, path)
	if len(got) != 1 || got[0].Run != "r1" || got[0].Server != "s\n" || got[0].Time.IsZero() ||
		got[0].PID != os.Getpid() ||
		got[0].ArgumentBytes != 19 || got[0].ArgumentSHA256 != fmt.Sprintf("%x",
		sha256.Sum256([]byte(`{"token":"hunter2"}`))) {
		t.Errorf("got %+v", got)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("arguments that were not asked for: %s, %v", text, err)
	}
	for _, name := range []string{path, path + ".lock"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, Config{Path: path, Arguments: true})
	for _, args := range []string{"{\"a\":\n1}", `{"a":`, `"` + strings.Repeat("x", maxArguments) + `"`, ""} {
		r := Record{Kind: KindCall}
		l.SetArguments(&r, json.RawMessage(args))
		if err := l.Record(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	const hiding = "\u009b\u202e\u2066\u200b\u007f\U000e0041\u3164"
	r := Record{Kind: KindCall, Tool: hiding}
	l.SetArguments(&r, json.RawMessage(`"`+hiding+`"`))
	if err := l.Record(t.Context(), r); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.ContainsAny(string(text), hiding) {
		t.Errorf("a terminal would obey %+q, %v", text, err)
	}
	got := lines(t, path)
	if last := got[len(got)-1]; last.Tool != hiding ||
		string(last.Arguments) != `"\u009b\u202e\u2066\u200b\u007f\udb40\udc41\u3164"` {
		t.Errorf("got %+v", last)
	}
	if len(got) != 5 || string(got[0].Arguments) != `{"a":1}` || got[1].Arguments != nil ||
		got[2].Arguments != nil || got[2].ArgumentBytes != maxArguments+2 {
		t.Errorf("got %+v", got)
	}
}

// TestRotation: files stay within their size, all of them together within their number, and the
// newest lines are the ones that stay.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	l := open(t, Config{Path: path})
	l.maxBytes, l.maxFiles = 1000, 3
	for i := range 100 {
		if err := l.Record(t.Context(), Record{Kind: KindRun, Run: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 4 { // with the lock
		t.Errorf("%v, %v", files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > 1000 {
			t.Errorf("%s: %d bytes, %v", name, info.Size(), err)
		}
	}
	got := lines(t, path)
	for i, r := range got {
		if want := strconv.Itoa(100 - len(got) + i); r.Run != want {
			t.Fatalf("record %d is of run %s, not %s", i, r.Run, want)
		}
	}
	if len(got) < 9 {
		t.Errorf("only %d are kept", len(got))
	}
	l.maxBytes = 10
	if err := l.Record(t.Context(), Record{Run: "last"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text),
		"\n") != 1 { // longer than a file may be, but there
		t.Errorf("%s, %v", text, err)
	}
}

// TestUnwritable: what can't be written waits, Ready says why, and nothing is lost once it can.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(dir, "audit.jsonl")
	l, err := Open(Config{Path: path})
	var unwritable *Error
	if !errors.As(err, &unwritable) || !strings.Contains(unwritable.Hint(), "MCP_BRIDGE_AUDIT") ||
		!strings.Contains(err.Error(), path) {
		t.Fatalf("got %v", err)
	}
	for i := range 3 {
		if err := l.Record(t.Context(), Record{Run: strconv.Itoa(i)}); !errors.As(err, &unwritable) {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if got := lines(t, path); len(got) != 3 || got[0].Run != "0" || got[2].Run != "2" {
		t.Errorf("got %+v", got)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if got := lines(t, path); len(got) != 3 {
		t.Errorf("written again: %+v", got)
	}
}

func TestLostRecordsAreSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		record Record
		lines  int // beyond the bound
	}{
		"by number": {Record{}, maxPending + 5},
		"by bytes":  {Record{Tool: strings.Repeat("<", 1<<20)}, pendingBytes>>20 + 4},
		// each a little more than 1 MiB
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "later")
			l, _ := Open(Config{Path: filepath.Join(dir, "audit.jsonl")})
			for range tc.lines {
				_ = l.Record(t.Context(), tc.record)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := l.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "lost 5 records") {
				t.Errorf("got %v", err)
			}
			if l.held != 0 {
				t.Errorf("%d bytes are held", l.held)
			}
		})
	}
}

func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(Config{Path: dir}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(Config{}); err == nil {
		t.Error("no path")
	}
	cut := filepath.Join(dir, "cut")
	if err := os.WriteFile(cut, []byte(`{"run":"1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, Config{Path: cut}).Record(t.Context(), Record{Run: "2"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cut)
	if first, rest, _ := strings.Cut(string(text), "\n"); err != nil || first != `{"run":"1` ||
		!json.Valid([]byte(rest)) {
		t.Errorf("after a line that was cut off: %s, %v", text, err)
	}
}

// TestExposedFile: nothing is recorded where others could read it or write over it.
func TestExposedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions say nothing there")
	}
	file := func(t *testing.T, mode fs.FileMode) string {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Chmod(path, mode))
		return path
	}
	for _, tt := range []struct {
		name string
		path func(t *testing.T) string
		want string // in the error; empty for none
		hint string
	}{
		{"the user's alone", func(t *testing.T) string { return file(t, 0o600) }, "", ""},
		{"that others write", func(t *testing.T) string { return file(t, 0o666) },
			"can be written to by everybody", "chmod o-w"},
		{"in a directory that others write", func(t *testing.T) string {
			path := file(t, 0o600)
			must(t, os.Chmod(filepath.Dir(path), 0o777))
			return path
		}, "another could be put in the place of what is in it", "chmod o-w"},
		{"a link", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "link")
			must(t, os.Symlink(file(t, 0o600), path))
			return path
		}, "not a regular file", ""},
		{"of another user", func(t *testing.T) string {
			path := file(t, 0o600)
			if err := os.Chown(path, 12345, 12345); err != nil {
				t.Skip("to give a file away takes root")
			}
			return path
		}, "belongs to user 12345", "copy it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(Config{Path: tt.path(t)})
			var unwritable *Error
			if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) ||
				!errors.As(err, &unwritable) || !strings.Contains(unwritable.Hint(), tt.hint)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLockThatIsHeld: however many wait for another process's lock, they wait once, and no longer
// than they themselves have time; what they have to record is kept, and written when the lock is
// free.
func TestLockThatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Config{Path: path})
		release, err := filelock.Acquire(t.Context(), path+".lock")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				if err := l.Ready(t.Context()); err == nil {
					t.Error("it can be written while another has the lock")
				}
				if err := l.Record(t.Context(), Record{Run: strconv.Itoa(i)}); err == nil {
					t.Error("it was written while another had the lock")
				}
			})
		}
		brief, cancel := context.WithTimeout(t.Context(), lockWait/10)
		defer cancel()
		if err := l.Ready(brief); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > lockWait/10 {
			t.Errorf("who had less time waited %v: %v", time.Since(begin), err)
		}
		all.Wait()
		if waited := time.Since(begin); waited > 2*lockWait {
			t.Errorf("64 callers have waited %v for a lock", waited)
		}
		release()
		if err := l.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if got := lines(t, path); len(got) != 64 {
			t.Errorf("%d of 64 records were written", len(got))
		}
	})
}
