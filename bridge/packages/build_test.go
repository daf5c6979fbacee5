package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
)

// TestBuildOutlivesItsCall: a call that is given up doesn't end the build that it began. Others
// wait for the same build, hear how far it is, and have what it makes.
func TestBuildOutlivesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, done := newSource(), make(chan struct{})
		s.building = func(ctx context.Context) error {
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		c := chooser(t, s, "", "")
		gone := errors.New("the host gave up")
		ctx, giveUp := context.WithCancelCause(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := c.Choose(ctx, asking(`"numpy"`), func() {}, func(string) {}); !errors.Is(err, gone) {
				t.Errorf("the call that was given up has %v", err)
			}
		})
		synctest.Wait()
		giveUp(gone)
		calls.Wait()
		for range 2 {
			told := ""
			calls.Go(func() {
				env, err := c.Choose(t.Context(), asking(`"numpy"`), func() {}, func(line string) { told = line })
				if err != nil || name(env) != "data" || !strings.Contains(told, "(20%)") {
					t.Errorf("another call has %v, %v, and heard %q", env, err, told)
				}
			})
		}
		synctest.Wait()
		close(done)
		calls.Wait()
		if did := strings.Join(s.did, ", "); did != "ready, build data" {
			t.Errorf("did %s", did)
		}
	})
}

// TestBuildsAreBounded: Close ends builds and their calls, and then none begins. No more than
// maxBuilds are underway.
func TestBuildsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.building = func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		c := chooser(t, s, "", "")
		build := func(name string) error {
			_, err := c.build(t.Context(), name, func() {}, func(string) {})
			return err
		}
		var calls sync.WaitGroup
		for i := range maxBuilds {
			calls.Go(func() {
				if err := build(fmt.Sprint("e", i)); !errors.Is(err, errEnding) {
					t.Errorf("a call has %v when the bridge ends", err)
				}
			})
		}
		synctest.Wait()
		if err := build("another"); err == nil || !strings.Contains(err.Error(), "are being built") {
			t.Errorf("one more has %v", err)
		}
		c.Close()
		calls.Wait()
		if err := build(environments.Data); !errors.Is(err, errEnding) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestBuildPanics: a build that panics is an error of its calls, and the next one is tried.
func TestBuildPanics(t *testing.T) {
	s := newSource()
	s.building = func(context.Context) error { panic("a wheel that no one has thought of") }
	c := chooser(t, s, "", "")
	for range 2 {
		_, err := c.build(t.Context(), environments.Data, func() {}, func(string) {})
		if err == nil || !strings.Contains(err.Error(), "an error of the bridge") {
			t.Errorf("got %v", err)
		}
	}
}
