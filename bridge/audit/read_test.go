package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// logOf writes files of a log.
func logOf(t *testing.T, files map[string]string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit")
	for suffix, text := range files {
		if err := os.WriteFile(path+suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// read returns the ids of the runs that are read, in their order.
func read(t *testing.T, path string) (runs []string, damaged []Damage) {
	t.Helper()
	damaged, err := Read(t.Context(), path, func(r Record) { runs = append(runs, r.Run) })
	if err != nil {
		t.Fatal(err)
	}
	return runs, damaged
}

func record(run string) string {
	return fmt.Sprintf(`{"time":"2026-11-21T16:00:00Z","kind":"run","run":%q,"outcome":"ok"}`, run) + "\n"
}

func TestReadDamaged(t *testing.T) {
	long := strings.TrimSpace(strings.Replace(record("a"), "{", "{ ", 1))
	for _, tt := range []struct {
		name, text string
		runs       []string
		bad        int
	}{
		{"nothing", "", nil, 0},
		{"whole", record("a") + record("b"), []string{"a", "b"}, 0},
		{"no JSON", record("a") + "{\"time\":\n" + record("b"), []string{"a", "b"}, 1},
		{"zeros of a power failure", record("a") + strings.Repeat("\x00", 300) + "\n" + record("b"),
			[]string{"a", "b"}, 1},
		{"of a sandbox's tool", strings.Replace(record("a"), `"kind":"run"`, `"kind":"sandbox"`, 1), []string{"a"},
			0},
		{"another kind", strings.Replace(record("a"), `"run"`, `"later"`, 1) + record("b"), []string{"b"}, 1},
		{"no time", `{"kind":"run","run":"a"}` + "\n", nil, 1},
		{"a field of another type", strings.Replace(record("a"), `"a"`, "7", 1), nil, 1},
		{"too long", `{"run":"` + strings.Repeat("x", 3*maxLine) + "\"}\n" + record("b"), []string{"b"}, 1},
		{"as long as the buffer", strings.Repeat("x", maxLine) + "\n" + record("b"), []string{"b"}, 1},
		{"as a record behind the buffer", long + strings.Repeat(" ", maxLine-len(long)) + "{\n", nil, 1},
		{"no end of the last line", record("a") + strings.TrimSpace(record("b")), []string{"a", "b"}, 0},
		{"cut off", record("a") + record("b")[:30], []string{"a"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := logOf(t, map[string]string{"": tt.text})
			runs, damaged := read(t, path)
			if !slices.Equal(runs, tt.runs) {
				t.Errorf("read %q, want %q", runs, tt.runs)
			}
			var want []Damage
			if tt.bad > 0 {
				want = []Damage{{Path: path, Lines: tt.bad}}
			}
			if !slices.Equal(damaged, want) {
				t.Errorf("damaged: %v, want %v", damaged, want)
			}
		})
	}
}

// TestReadRotated reads all files of a log that was rotated, the oldest first, and says which it
// can't read.
func TestReadRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	l := open(t, Config{Path: path})
	l.maxBytes = 2000
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprint(i))
		if err := l.Record(t.Context(), Record{Kind: KindRun, Run: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := filepath.Glob(path + ".?"); len(files) < 3 {
		t.Fatalf("rotated: %q", files)
	}
	runs, damaged := read(t, path)
	if !slices.Equal(runs, want) || damaged != nil {
		t.Errorf("read %q and %v", runs, damaged)
	}
	for _, err := range []error{os.Remove(path + ".1"), os.Mkdir(path+".1", 0o700), os.Remove(path)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	runs, damaged = read(t, path)
	if len(runs) == 0 || len(runs) >= len(want) || runs[0] != "0" {
		t.Errorf("without two files: %q", runs)
	}
	if len(damaged) != 1 || damaged[0].Path != path+".1" || damaged[0].Err == nil {
		t.Errorf("damaged: %v", damaged)
	}
}

func TestReadNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	_, err := Read(t.Context(), path, func(Record) { t.Error("a record") })
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); left != nil {
		t.Errorf("reading has made %q", left)
	}
	path = logOf(t, map[string]string{"": record("a")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, path, func(Record) { t.Error("a record") }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
