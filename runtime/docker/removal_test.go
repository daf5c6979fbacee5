package docker

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestRemovalUnderWay: an engine that is removing the container already is waited for.
func TestRemovalUnderWay(t *testing.T) {
	f := newFake()
	f.instant, f.forgets = true, true
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	f.names["here"] = &fakeContainer{dead: make(chan struct{})}
	f.answer = map[string]reply{"DELETE here": {http.StatusConflict,
		map[string]string{"message": "removal is already in progress"}}}
	f.names["here"].die()
	if err := d.Remove(t.Context(), "here"); err != nil {
		t.Error(err)
	}
	if left := f.left(); len(left) > 0 {
		t.Errorf("it returned before the removal: %v", left)
	}
}

// TestEndedBeforeTheRemoval: that the streams have ended is told before the engine is asked to
// remove the container.
func TestEndedBeforeTheRemoval(t *testing.T) {
	f := newFake()
	f.instant = true
	f.hang, f.release = http.MethodDelete, make(chan struct{})
	close(f.release)
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	told := 0
	g := runtimetest.Target{Driver: d, Image: "i", Owner: runtime.Self()}
	_, err := d.Run(t.Context(), g.Spec("pass"),
		runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Ended: func() {
			told++
			select {
			case <-f.reached:
				t.Error("the engine was asked before")
			default:
			}
		}})
	if err != nil || told != 1 {
		t.Errorf("got %v, and it was told %d times", err, told)
	}
	<-f.reached
}

// TestRemovalThatHangs: a container that the engine doesn't remove in time is removed as soon as
// the engine answers again.
func TestRemovalThatHangs(t *testing.T) {
	f := newFake()
	f.instant = true
	f.hang, f.release = http.MethodDelete, make(chan struct{})
	d := New(Config{Endpoint: f.listen(t)})
	d.Times.Cleanup, d.Times.Retry = 50*time.Millisecond, time.Millisecond
	defer d.Close()
	if _, _, err := play(t, t.Context(), d); err == nil ||
		!strings.Contains(err.Error(), "could not be removed yet") {
		t.Errorf("got %v; want it to say what is left", err)
	}
	if len(f.left()) != 1 {
		t.Fatalf("the engine has %v", f.left())
	}
	close(f.release)
	d.Settle()
	if left := f.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestRemovalRefused: an engine that fails to remove a container is asked ever more seldom, and
// again after the run.
func TestRemovalRefused(t *testing.T) {
	f := newFake()
	f.instant = true
	f.names["given"] = &fakeContainer{dead: make(chan struct{})}
	f.answer = map[string]reply{
		"POST create": {http.StatusCreated, map[string]any{"Id": "given"}},
		"DELETE given": {http.StatusInternalServerError,
			map[string]string{"message": "driver failed to remove root filesystem"}},
	}
	d := New(Config{Endpoint: f.listen(t)})
	d.Times.Cleanup, d.Times.Retry = 500*time.Millisecond, time.Millisecond
	defer d.Close()
	if _, _, err := play(t, t.Context(), d); err == nil || !strings.Contains(err.Error(), "root filesystem") {
		t.Errorf("got %v; want the engine's reason", err)
	}
	f.mu.Lock()
	asked := 0
	for _, what := range f.asked {
		if what == "DELETE given" {
			asked++
		}
	}
	delete(f.answer, "DELETE given")
	f.mu.Unlock()
	if asked < 2 || asked > 10 {
		t.Errorf("it was asked %d times in %v", asked, d.Times.Cleanup)
	}
	d.Settle()
	if left := f.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
