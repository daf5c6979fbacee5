package hibernation

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// asChild in the environment makes the test binary a bridge that saves a sandbox: see saving.
const asChild = "HIBERNATION_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asChild); dir != "" {
		fmt.Fprintln(os.Stderr, saving(dir, os.Args[1]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// numbered is what the child saves for the nth time: 320 kB that tell whether they are whole.
func numbered(n int) string { return strings.Repeat(fmt.Sprintf("%08d", n), 40_000) }

// saving saves again and again, and prints what it has saved. At a moment other than "any" it
// stops, says so and waits to be killed.
func saving(dir, moment string) error {
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler),
		Key: func(bool) ([]byte, error) { return key, nil }})
	if err != nil {
		return err
	}
	stop := func() error {
		fmt.Println("stopped")
		_, err := io.Copy(io.Discard, os.Stdin) // which the parent doesn't close
		return errors.Join(err, errors.New("it was not killed"))
	}
	if moment == "before the rename" {
		s.replace = func(path, pattern string, write func(io.Writer) error) error {
			return filelock.ReplaceBy(path, pattern, func(w io.Writer) error {
				return errors.Join(write(w), stop())
			})
		}
	}
	for n := 2; ; n++ {
		c, err := s.Claim("me", "abcd")
		if err != nil {
			return err
		}
		err = c.Save(about("me", "abcd"), func(w io.Writer) error {
			text := numbered(n)
			if _, err := io.WriteString(w, text[:len(text)/2]); err != nil {
				return err
			}
			if moment == "in the middle" {
				return stop()
			}
			_, err := io.WriteString(w, text[len(text)/2:])
			return err
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// killed starts a bridge that saves over the first content of dir, kills it when it has stopped, or
// at any moment after it has saved once, and returns the number of the last content that it has
// told of. Before it is killed, meanwhile is called.
func killed(t *testing.T, dir, moment string, meanwhile func()) (last int) {
	t.Helper()
	save(t, open(t, dir), "me", "abcd", numbered(1))
	cmd := exec.CommandContext(t.Context(), os.Args[0], moment)
	cmd.Env, cmd.Stderr = append(os.Environ(), asChild+"="+dir), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last = 1
	lines := bufio.NewScanner(out)
	for begun := false; lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			last = n
		}
		if !begun {
			begun = true
			meanwhile()
			if moment == "any" {
				<-time.After(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("it was not killed: %v", err)
	}
	return last
}

// TestKilledWhileSaving: a bridge that is killed while it saves, at a moment of ours or at any,
// leaves what was whole last. What it had begun is removed by the next bridge, but not while it is
// alive.
func TestKilledWhileSaving(t *testing.T) {
	for _, moment := range []string{"in the middle", "before the rename", "any"} {
		t.Run(moment, func(t *testing.T) {
			rounds := 1
			if moment == "any" {
				rounds = 25
			}
			for range rounds {
				dir := t.TempDir()
				last := killed(t, dir, moment, func() {
					if moment == "any" {
						return
					}
					next := open(t, dir)
					if !strings.Contains(files(t, dir), ".new-") {
						t.Errorf("what a bridge is writing was removed: there is %s", files(t, dir))
					}
					if _, err := next.Claim("me", "abcd"); !errors.Is(err, ErrInUse) {
						t.Errorf("while another bridge has it: %v", err)
					}
				})
				checkKilled(t, dir, moment, last)
			}
		})
	}
}

// checkKilled checks what the next bridge finds.
func checkKilled(t *testing.T, dir, moment string, last int) {
	t.Helper()
	next := open(t, dir)
	if left := files(t, dir); strings.Contains(left, ".new-") {
		t.Errorf("left: %s", left)
	}
	text, err := read(next, "me", "abcd")
	n, _ := strconv.Atoi(text[:min(len(text), 8)])
	if err != nil || text != numbered(n) || n < last || n > last+1 || moment != "any" && n != 1 {
		t.Errorf("%d bytes of content %d, of which %d was told to be saved: %v", len(text), n, last, err)
	}
	c, err := next.Claim("me", "abcd")
	if err != nil {
		t.Fatal(err)
	}
	if moment != "any" && !c.Lost {
		t.Error("nothing says that the later life was lost")
	}
	c.Remove()
	if left := files(t, dir); left != "" {
		t.Errorf("left at the end: %s", left)
	}
}
