package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestRun: the exit code is right whether or not the engine has removed the container before it is
// asked, the end of the streams is told before the engine is asked for more, and nothing is left.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name    string
		forgets bool
		want    runtime.Exit
	}{
		{"inspected", false, runtime.Exit{Code: 7}},
		{"gone already", true, runtime.Exit{Code: 7, OOMKilled: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.instant, f.forgets = true, tt.forgets
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, out := quiet(t)
				told := 0
				std.Ended = func() { told++ }
				std.ExitUnneeded = func() bool {
					if told != 1 || f.count("inspect")+f.count("remove") > 0 {
						t.Errorf("its end was told %d times, and the engine was asked %q", told, f.asked)
					}
					return false
				}
				exit, err := e.Run(t.Context(), spec, std)
				if err != nil || exit != tt.want || out.String() != "out" || f.left() > 0 {
					t.Errorf("got %+v, %q, %v; %d left", exit, out, err, f.left())
				}
			})
		})
	}
}

// TestSilentEngine: whatever the engine leaves unanswered, a run ends: with its caller's patience
// where the engine still answers a ping, and soon where it doesn't. What was created is removed.
func TestSilentEngine(t *testing.T) {
	for _, at := range []string{"create", "attach", "wait", "start", "kill", "inspect", "remove"} {
		t.Run(at, func(t *testing.T) {
			f := newFake()
			f.hang = at
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, _ := quiet(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun := time.Now()
				_, err := e.Run(ctx, spec, std)
				if took := time.Since(begun); took > time.Minute+2*e.Times.Cleanup {
					t.Errorf("it took %v", took)
				}
				if err == nil {
					t.Error("it has ended well")
				}
				close(f.release)
				f.set(func() { f.hang = "" })
				e.Settle()
				if f.left() > 0 {
					t.Errorf("%d containers are left", f.left())
				}
			})
		})
	}
}

// TestUserBeyondNamespace: what an OCI runtime says of a user of too high a number is explained.
func TestUserBeyondNamespace(t *testing.T) {
	for _, says := range []string{"runc create failed: unable to setup user: setgroups: invalid argument",
		"crun: setresuid: Invalid argument: OCI runtime error"} {
		for _, at := range []string{"attach", "start"} {
			f := newFake()
			f.refuses, f.why = at, errors.New(says)
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, _ := quiet(t)
				if _, err := e.Run(t.Context(), spec, std); err == nil || !errors.Is(err, f.why) ||
					!strings.Contains(err.Error(), "MCP_BRIDGE_CONTAINER_USER") {
					t.Errorf("%s: got %v", at, err)
				}
			})
		}
	}
}

// TestStoppedEngine: one that answers nothing at all is found out without waiting for the caller.
func TestStoppedEngine(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		stopped := make(chan struct{})
		e.cfg.Look = func(context.Context) (*fake, error) { return f, nil }
		f.hang = "ping"
		create := func(ctx context.Context, _ string) (string, error) {
			select {
			case <-stopped:
				return "", errRefused
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		c, err := e.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		std, _ := quiet(t)
		begun := time.Now()
		_, started, err := e.Attempt(t.Context(), c, spec, create, std)
		var un *runtime.UnavailableError
		if took := time.Since(begun); started || !errors.As(err, &un) || !un.Gone || took > 3*e.Times.Silence {
			t.Errorf("got %v after %v", err, took)
		}
		f.set(func() { f.hang = "" })
		close(stopped)
	})
}

// TestCreatedTooLate: a container that is made after its run has given up is removed all the same.
func TestCreatedTooLate(t *testing.T) {
	f := newFake()
	f.hang = "create"
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		ctx, cancel := context.WithCancel(t.Context())
		std, _ := quiet(t)
		time.AfterFunc(time.Second, cancel)
		if _, err := e.Run(ctx, spec, std); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want it cancelled", err)
		}
		close(f.release)
		e.Settle()
		if f.count("create") != 1 || f.count("remove") < 2 || f.left() > 0 {
			t.Errorf("asked %q; %d left", f.asked, f.left())
		}
	})
}

// TestTooOld: a container that outlives its age is killed.
func TestTooOld(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		std, _ := quiet(t)
		exit, err := e.Run(t.Context(), spec, std)
		if err != nil || exit.Code != 7 || f.count("kill") != 1 {
			t.Errorf("got %+v, %v; asked %q", exit, err, f.asked)
		}
	})
}

// TestOwed: a container that the engine doesn't remove is asked for ever more seldom, is said to be
// left, and is removed once the engine does so again.
func TestOwed(t *testing.T) {
	for _, at := range []string{"refuses", "hangs", "dead"} {
		t.Run(at, func(t *testing.T) {
			f := newFake()
			f.instant = true
			inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
				std, _ := quiet(t)
				std.ExitUnneeded = func() bool {
					f.set(func() {
						switch at {
						case "refuses":
							f.refuses = "remove"
						case "hangs":
							f.hang = "remove"
						default:
							f.dead = true
						}
					})
					return true
				}
				_, err := e.Run(t.Context(), spec, std)
				var un *runtime.UnavailableError
				if err == nil || errors.As(err, &un) != (at == "dead") {
					t.Errorf("got %v", err)
				}
				if n := f.count("remove"); at == "refuses" && (n < 5 || n > 20) {
					t.Errorf("it was asked %d times in %v", n, e.Times.Cleanup)
				}
				if f.left() != 1 {
					t.Errorf("%d are left", f.left())
				}
				f.set(func() { f.refuses, f.hang, f.dead = "", "", false })
				e.Settle()
				if f.left() > 0 {
					t.Error("it is still there")
				}
			})
		})
	}
}

// TestOwedToAnother: a container isn't taken for removed because another engine doesn't know it.
func TestOwedToAnother(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		e.removals.add("there", "elsewhere")
		time.Sleep(10 * time.Minute)
		if f.count("look") == 0 || f.count("remove") > 0 {
			t.Errorf("asked %q", f.asked)
		}
	})
}

// TestConnectOnce: all who want an engine share one look, and give up by themselves.
func TestConnectOnce(t *testing.T) {
	f := newFake()
	f.hang = "look"
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Facts(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := e.Facts(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(f.release)
		all.Wait()
		if n := f.count("look"); n != 1 {
			t.Errorf("looked %d times", n)
		}
		f.set(func() { f.dead = true })
		if _, err := e.Facts(t.Context()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("without a socket: got %v", err)
		}
	})
}

// TestCarry: the streams are told apart, and what is wrong with one is said.
func TestCarry(t *testing.T) {
	piece := func(of byte, length uint32, text string) string {
		return string(append(binary.BigEndian.AppendUint32([]byte{of, 0, 0, 0}, length), text...))
	}
	for _, tt := range []struct{ name, in, out, err, fails string }{
		{"both", piece(1, 2, "ab") + piece(2, 1, "c") + piece(1, 1, "d"), "abd", "c", ""},
		{"nothing", "", "", "", ""},
		{"cut in a header", "\x01\x00", "", "", "unexpected EOF"},
		{"the engine's own words", piece(3, 4, "oops"), "", "", "oops"},
		{"no such stream", piece(9, 1, "x"), "", "", "number 9"},
		{"a length beyond the end", piece(1, 1<<31, "x"), "x", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := carry(stream{strings.NewReader(tt.in), func() {}},
				runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if out.String() != tt.out || errs.String() != tt.err || !strings.Contains(fmt.Sprint(err), tt.fails) ||
				(err == nil) != (tt.fails == "") {
				t.Errorf("got %q, %q, %v", &out, &errs, err)
			}
		})
	}
}

// TestImageMissing: an image that is gone is the run's error, and is not the engine's going away.
func TestImageMissing(t *testing.T) {
	f := newFake()
	inBubble(t, f, func(t *testing.T, e *Engine[*fake]) {
		c, err := e.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		create := func(context.Context, string) (string, error) {
			return "", &runtime.ImageError{Ref: "i", Err: errRefused}
		}
		std, _ := quiet(t)
		_, _, err = e.Attempt(t.Context(), c, spec, create, std)
		var image *runtime.ImageError
		if !errors.As(err, &image) || slices.Contains(f.asked, "ping") {
			t.Errorf("got %v; asked %q", err, f.asked)
		}
	})
}

// TestImportLeavesTheFile: a file is its caller's to close.
func TestImportLeavesTheFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, newFake(), func(t *testing.T, e *Engine[*fake]) {
		if err := e.ImportImage(t.Context(), "localhost/x", f); err != nil {
			t.Error(err)
		}
	})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
