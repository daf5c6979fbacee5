package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// answers has guests that last answer each order with these fields of done.
func answers(fl *fleet, done string) { fl.set(func() { fl.answer = done }) }

// TestKeptNote: what the supervisor says of the variables reaches the caller in every state.
func TestKeptNote(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		answers(fl, `"ok":true,"wait":{"exited":true,"status":0},"sandbox":{"state":"kept","reason":"threads `+
			`are gone"}`)
		r, err := k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
		if err != nil || r.Kept.State != sandbox.StateKept || r.Kept.Note != "threads are gone" ||
			r.Kept.Reason != "" {
			t.Errorf("kept: got %+v, %v", r.Kept, err)
		}
		o, err := k.Exec(t.Context(), sandbox.Command{Line: "true", Timeout: time.Minute})
		if err != nil || o.Kept.Note != "threads are gone" {
			t.Errorf("a command: got %+v, %v", o, err)
		}
		if err := k.WriteFile(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		if got := k.Note(); got != "threads are gone" {
			t.Errorf("a file: got %q", got)
		}
		if got := k.Note(); got != "" {
			t.Errorf("a second time: got %q", got)
		}
		answers(fl, `"wait":{"signal":9},"sandbox":{"state":"before","reason":"an older copy took over"}`)
		r, err = k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
		if err != nil || r.Kept.State != sandbox.StateBefore || r.Kept.Note != "an older copy took over" ||
			!strings.Contains(r.Kept.Reason, "signal 9") {
			t.Errorf("before: got %+v, %v", r.Kept, err)
		}
		answers(fl, `"wait":{"signal":9},"sandbox":{"state":"lost","reason":"no copy answered"}`)
		r, err = k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
		if err != nil || r.Kept.State != sandbox.StateLost || r.Kept.Note != "" ||
			r.Kept.Reason != "no copy answered" {
			t.Errorf("lost: got %+v, %v", r.Kept, err)
		}
	})
}

// TestWords: memory is said to have run out only where that is known, a limit of processes is told
// with its number, and a reason has no full stop.
func TestWords(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		run := func(done string) sandbox.Result {
			t.Helper()
			answers(fl, done)
			r, err := k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		const raised = `"wait":{"exited":true,"status":1},"error":{"code":"memory_limit","type":"MemoryError",` +
			`"message":"%s"},"sandbox":{"state":"kept","noWayBack":"its processes are as many as there may be; ` +
			`end some"}`
		for words, want := range map[string]string{
			"":     "The code ran out of memory: the limit is ",
			"mine": "The code raised a MemoryError that nothing caught. A run may use ",
		} {
			r := run(strings.Replace(raised, "%s", words, 1))
			if r.Status != sandbox.StatusMemoryLimit || !strings.HasPrefix(r.Message, want) ||
				!strings.HasSuffix(r.Message, "(MCP_BRIDGE_MEMORY).") {
				t.Errorf("MemoryError(%q): got %+v", words, r)
			}
			if want := "as many as there may be, 128 (MCP_BRIDGE_PIDS); end some"; !strings.HasSuffix(r.Kept.NoWayBack,
				want) {
				t.Errorf("got %q, want %q", r.Kept.NoWayBack, want)
			}
		}
		r := run(`"wait":{"signal":9},"sandbox":{"state":"lost"}`)
		if want := "the code was ended by signal 9 (killed)"; r.Kept.Reason != want {
			t.Errorf("got %q, want %q", r.Kept.Reason, want)
		}
	})
}

// TestKeptUndoFails: an undo that the supervisor could not do is told as what it was.
func TestKeptUndoFails(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		for _, tc := range []struct {
			done, want string
			none       bool // there was nothing to undo
		}{
			{`"error":{"code":"validation_error","message":"there is no call"},"sandbox":{"state":"kept"}`,
				sandbox.ErrNoUndo.Error(), true},
			{`"error":{"code":"validation_error"},"sandbox":{"state":"kept","reason":"its processes ended between ` +
				`calls"}`, sandbox.ErrNoUndo.Error() + " (its processes ended between calls)", true},
			{`"error":{"code":"internal_error","message":"the copy didn't answer"},` +
				`"sandbox":{"state":"kept","reason":"threads are gone"}`,
				"the call was not undone: the copy didn't answer (threads are gone)", false},
		} {
			answers(fl, tc.done)
			if _, err := k.Undo(t.Context()); err == nil || err.Error() != tc.want ||
				errors.Is(err, sandbox.ErrNoUndo) != tc.none {
				t.Errorf("%s: got %v, want %s", tc.done, err, tc.want)
			}
		}
		if why, over := k.Ended(); over {
			t.Fatalf("it has ended: %s", why)
		}
		answers(fl, `"error":{"code":"validation_error"},"sandbox":{"state":"lost","reason":"no copy answered"}`)
		var ended *sandbox.EndedError
		if _, err := k.Undo(t.Context()); !errors.As(err, &ended) || ended.Reason != "no copy answered" {
			t.Errorf("lost: got %v", err)
		}
		<-k.Done()
	})
}

// TestKeptNotHeard: of a process that didn't say that it had begun the code it isn't known whether
// it has.
func TestKeptNotHeard(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		answers(fl, `"wait":{"signal":9,"killed":"deaf"},"sandbox":{"state":"before"}`)
		r, err := k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
		if err != nil || r.Message != "The code was stopped: the process of the sandbox didn't say that it had "+
			"begun it." {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// TestKeptLingers: a guest that lasts isn't ended while something comes of a call that was
// cancelled, within its bound.
func TestKeptLingers(t *testing.T) {
	for _, tc := range []struct {
		code string
		want sandbox.State
		took time.Duration
	}{{"17s lingers", sandbox.StateKept, 17 * time.Second},
		{"30s lingers", sandbox.StateLost, 18 * time.Second}} {
		t.Run(tc.code, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, _ *fleet) {
				k := keep(t, s)
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r, err := k.Run(ctx, sandbox.Request{Code: tc.code, Timeout: time.Minute}, nil)
				took := time.Since(begin)
				if err != nil || r.Kept.State != tc.want || took < tc.took || took > tc.took+time.Second {
					t.Errorf("got %+v, %v after %v", r.Kept, err, took)
				}
			})
		})
	}
}
