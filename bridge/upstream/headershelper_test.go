//go:build unix

package upstream

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestHelperIsAskedOnceForAll: where the headers of many calls are refused at once, the program that prints them is run once.
func TestHelperIsAskedOnceForAll(t *testing.T) {
	const calls = 20
	f := newFar(t)
	dir := t.TempDir()
	token, runs := filepath.Join(dir, "token"), filepath.Join(dir, "runs")
	for file, text := range map[string]string{token: "old", runs: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	good, refused, all := "Bearer old", 0, make(chan struct{})
	srv, _ := web(t, discovery.HTTP, "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		right := r.Header.Get("Authorization") == good
		if r.Method == http.MethodPost && !right {
			if refused++; refused == calls {
				close(all)
			}
		}
		mu.Unlock()
		switch {
		case r.Method != http.MethodPost || right:
			f.ServeHTTP(w, r)
		default: // only once all have sent the old one
			select {
			case <-all:
			case <-f.stop:
			}
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	srv.HeadersHelper = `echo run >>` + runs + `; printf '{"Authorization":"Bearer %s"}' "$(cat ` + token + `)"`
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	if err := os.WriteFile(token, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	good = "Bearer new"
	mu.Unlock()
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			if _, err := p.Call(t.Context(), "fake", "plain", nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if text, err := os.ReadFile(runs); err != nil || string(text) != "run\nrun\n" {
		t.Errorf("it was run %d times, want 2 (%v)", strings.Count(string(text), "run"), err)
	}
}

// printer is a helper whose runs end when they are told how.
type printer struct {
	helper
	began chan struct{}
	end   chan error
}

func newPrinter() *printer {
	p := &printer{helper: helper{turn: make(chan struct{}, 1)}, began: make(chan struct{}, 100), end: make(chan error)}
	p.run = func(ctx context.Context) (map[string]string, error) {
		p.began <- struct{}{}
		select {
		case err := <-p.end:
			return map[string]string{"X": "1"}, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return p
}

// wanted is what came of callers, of whom each has had its headers from run refused.
func (p *printer) wanted(ctx context.Context, callers, refused int) <-chan error {
	errs := make(chan error, callers)
	for range callers {
		go func() { // ends when its run does
			got, err := p.headers(ctx, refused)
			if err == nil && got.run <= refused {
				err = errors.New("refused headers once more")
			}
			errs <- err
		}()
	}
	synctest.Wait()
	return errs
}

// TestHelperIsShared: who waits takes what comes of the run under way, be it a failure, but not that its caller gave up; who gives up
// doesn't wait for it.
func TestHelperIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPrinter()
		broken := errors.New("broken")
		each := func(errs <-chan error, want error) {
			t.Helper()
			for range cap(errs) {
				if err := <-errs; !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
		}
		first := p.wanted(t.Context(), 5, 0)
		p.end <- nil
		each(first, nil)
		each(p.wanted(t.Context(), 5, 0), nil) // nobody refused it
		second := p.wanted(t.Context(), 5, 1)
		p.end <- broken
		each(second, broken)
		each(p.wanted(t.Context(), 5, 0), nil) // what was printed last is what there is

		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		owner := p.wanted(hasty, 1, 1)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		waiting := p.wanted(impatient, 3, 1)
		patient := p.wanted(t.Context(), 3, 1)
		each(waiting, context.DeadlineExceeded)
		each(owner, context.DeadlineExceeded)
		synctest.Wait()
		p.end <- nil
		each(patient, nil)
		if n := len(p.began); n != 4 {
			t.Errorf("%d runs, want 4", n)
		}
	})
}
