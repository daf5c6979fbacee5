package streamable_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestDrain: a server that is told to end finishes the calls that run, and takes no others.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := newHanging()
		s, _, end := bubble(t, code.run)
		session := s.initialize(latest, `{}`)
		answers := make(chan []message, 2)
		call := func(body string, headers ...string) {
			_, got, _ := s.post(body, headers...)
			answers <- got
		}
		go call(run(1, "old", ""), session...)
		go call(run(1, "new", metaOf("")), standard("tools/call", "run_python")...)
		<-code.began
		<-code.began
		ended := make(chan error, 1)
		go func() { ended <- end() }()
		synctest.Wait()
		health := strings.TrimSuffix(s.url, streamable.Path) + "/healthz"
		if r, err := s.client.Get(health); err != nil || r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("healthz: %v %v", r, err)
		} else {
			r.Body.Close()
		}
		for _, headers := range [][]string{session, standard("tools/call", "run_python")} {
			status, got, header := s.post(run(2, "echo", metaOf("")), headers...)
			if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || len(got) != 1 {
				t.Errorf("a new call: %d %+v", status, got)
			}
		}
		code.done <- struct{}{}
		code.done <- struct{}{}
		for range 2 {
			if got := <-answers; len(got) == 0 || !strings.Contains(got[len(got)-1].text(), "done ") {
				t.Errorf("a call that ran: %+v", got)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestDrainBatch: the calls of a batch are finished, too.
func TestDrainBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := newHanging()
		s, _, end := bubble(t, code.run)
		session := s.initialize("2025-03-26", `{}`)
		answered, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			r := s.do(t.Context(), "POST", "["+run(1, "batched", "")+"]", session...)
			text, _ := io.ReadAll(r.Body)
			answered <- string(text)
		}()
		<-code.began
		go func() { ended <- end() }()
		time.Sleep(time.Second) // of the bubble
		code.done <- struct{}{}
		if got := <-answered; !strings.Contains(got, "done batched") {
			t.Errorf("got %s", got)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestDrainIsBounded: a call that doesn't end is ended.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := newHanging()
		s, _, end := bubble(t, code.run)
		session := s.initialize(latest, `{}`)
		stream := s.do(t.Context(), "GET", "", session...)
		answered := make(chan int, 1)
		go func() {
			status, _, _ := s.post(run(1, "x", ""), session...)
			answered <- status
		}()
		<-code.began
		began := time.Now()
		err := end()
		if took := time.Since(began); err != nil || took < drainTime || took > drainTime+5*time.Second {
			t.Errorf("it has ended after %v: %v", took, err)
		}
		<-code.over
		<-answered
		all(t, stream)
	})
}

// TestStuckCall: a call that doesn't end though it was told to is left behind.
func TestStuckCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		s, _, end := bubble(t, func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
			close(began)
			<-release
			return printed(""), nil
		})
		session := s.initialize(latest, `{}`)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r, _ := http.NewRequestWithContext(t.Context(), "POST", s.url, strings.NewReader(run(1, "x", "")))
			r.Header.Set("Content-Type", "application/json")
			for _, header := range session {
				name, value, _ := strings.Cut(header, ": ")
				r.Header.Set(name, value)
			}
			if got, err := s.client.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, got.Body)
				got.Body.Close()
			}
		}()
		<-began
		at := time.Now()
		if err := end(); err != nil || time.Since(at) > 40*time.Second {
			t.Errorf("it has ended after %v: %v", time.Since(at), err)
		}
		<-answered
		close(release)
	})
}

// TestLost: while no code can be run, no new calls are sent here.
func TestLost(t *testing.T) {
	var lost error
	s := serve(t, nil, func(cfg *streamable.Config) { cfg.Lost = func() error { return lost } })
	for _, tt := range []struct {
		err  error
		want int
	}{{nil, http.StatusOK}, {errors.New("secret"), http.StatusServiceUnavailable}, {nil, http.StatusOK}} {
		lost = tt.err
		r, err := s.client.Get(strings.TrimSuffix(s.url, streamable.Path) + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != tt.want || strings.Contains(string(text), "secret") {
			t.Errorf("with %v: %d %s", tt.err, r.StatusCode, text)
		}
	}
}
