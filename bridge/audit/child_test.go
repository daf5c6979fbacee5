//go:build !windows

package audit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// asChild in the environment makes the test binary one more bridge.
const asChild = "AUDIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(asChild); what != "" {
		if err := children[what](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs one of children in a process of its own.
func child(t testing.TB, what string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asChild+"="+what)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var children = map[string]func(args []string) error{"write": write, "full": full}

// write has goroutines record: path, name of the process, goroutines, records of each.
func write(args []string) error {
	goroutines, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	each, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	l, err := Open(Config{Path: args[0]})
	if err != nil {
		return err
	}
	l.maxBytes, l.maxFiles = 4000, 100
	errs := make(chan error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if err := l.Record(context.Background(), Record{Kind: KindRun,
					Run: fmt.Sprintf("%s-%d-%d", args[1], g, i)}); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// full records on a file that can't grow beyond a line and a half, and again when it can.
func full(args []string) error {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit then is cut, as on a full disk
	l, err := Open(Config{Path: args[0]})
	if err != nil {
		return err
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := l.Record(context.Background(), Record{Run: "0"}); err != nil {
		return err
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	limit := was
	limit.Cur = uint64(info.Size() * 3 / 2)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := l.Record(context.Background(), Record{Run: "1"}); err == nil {
		return fmt.Errorf("a record beyond the limit was written")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if int64(len(text)) != info.Size() || !bytes.HasSuffix(text, []byte("\n")) {
		return fmt.Errorf("the beginning of a line is left: %s", text)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	return l.Ready(context.Background())
}

// TestFullDisk: a line that has no room leaves no beginning of it, and is there once there is room.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if out, err := child(t, "full", path); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := lines(t, path); len(got) != 2 || got[1].Run != "1" {
		t.Errorf("got %+v", got)
	}
}

// TestManyWriters has bridges in processes of their own, and goroutines in each, write the same
// files and rotate them: no line is torn and none is lost.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	const processes, goroutines, each = 3, 3, 40
	var wg sync.WaitGroup
	for p := range processes {
		wg.Go(func() {
			if out, err := child(t, "write", path, strconv.Itoa(p), strconv.Itoa(goroutines),
				strconv.Itoa(each)); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, r := range lines(t, path) {
		seen[r.Run]++
	}
	for p := range processes {
		for g := range goroutines {
			for i := range each {
				if n := seen[fmt.Sprintf("%d-%d-%d", p, g, i)]; n != 1 {
					t.Fatalf("record %d-%d-%d is there %d times", p, g, i, n)
				}
			}
		}
	}
}
