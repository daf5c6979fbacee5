package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"kind":"call","tool":"echo"}` + "\n" + `{"kind":"call","tool":"run"}` + "\n" + `{"kind":"run"}` + "\n")
	for kind, want := range map[string]int{"call": 2, "run": 1, "other": 0} {
		if n, err := recorded(path, kind); err != nil || n != want {
			t.Errorf("%s: %d, %v, want %d", kind, n, err, want)
		}
	}
	write(`{"kind":"run"}` + "\n" + `{"kind":"ru`)
	if n, err := recorded(path, "run"); err == nil || n != 1 {
		t.Errorf("a torn line: %d, %v", n, err)
	}
	if _, err := recorded(path+".none", "run"); err == nil {
		t.Error("no record is none of an error")
	}
}

// TestReducedRunsSaySo: a page says how long (h) and (i) are in a full run.
func TestReducedRunsSaySo(t *testing.T) {
	full := options{share: 1, load: fullLoad, calls: steadyCalls}
	if got := reduced(full); got != nil {
		t.Errorf("a full run: %q", got)
	}
	if got := reduced(options{quick: true, share: 0.1, load: time.Second, calls: 10}); got != nil {
		t.Errorf("a quick run, which says so itself: %q", got)
	}
	for want, change := range map[string]func(*options){
		"rounds was run: 0.5":               func(o *options) { o.share = 0.5 },
		"was 20 s of calls":                 func(o *options) { o.load = 20 * time.Second },
		"not the 60 s of a full run":        func(o *options) { o.load = 1500 * time.Millisecond },
		"to be 1500 in all":                 func(o *options) { o.calls = 1500 },
		"not the 10000 of a full run":       func(o *options) { o.calls = 20_000 },
		"was 1.5 s of calls and as long of": func(o *options) { o.load = 1500 * time.Millisecond },
	} {
		o := full
		change(&o)
		if got := reduced(o); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProcessesAreFound(t *testing.T) {
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	own := strings.TrimSpace(string(comm))
	for name, want := range map[string]float64{own: 1, own + "x": 0} {
		if n, err := called(name)(os.Getpid()); err != nil || n != want {
			t.Errorf("%s: %v, %v, want %v", name, n, err, want)
		}
	}
	if mb, err := contained(os.Getpid()); err != nil || mb != 0 { // a process that has no container
		t.Errorf("%v MB of containers, %v", mb, err)
	}
}
