package docker

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// taken is what was asked since it was last called, in an order that doesn't depend on what is
// asked at the same time. A container stands for its name.
func (f *fake) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.asked
	f.asked = nil
	for i, what := range list {
		if strings.HasPrefix(what, "DELETE ") {
			list[i] = "DELETE container"
		}
	}
	slices.Sort(list)
	return list
}

// TestRequests: what the engine is asked to be found, for its image, and for each run, and nothing
// else.
func TestRequests(t *testing.T) {
	alone(t)
	f := newFake()
	f.instant = true
	d := New(Config{Endpoint: f.listen(t)})
	defer d.Close()
	expect := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if diff := cmp.Diff(want, f.taken()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	look := func() {
		t.Helper()
		if _, err := d.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	unneeded := false
	run := func(image string) {
		t.Helper()
		g := runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}
		exit, err := d.Run(t.Context(), g.Spec("pass"),
			runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
				ExitUnneeded: func() bool { return unneeded }})
		if want := map[bool]int{true: -1, false: 7}[unneeded]; err != nil || exit.Code != want {
			t.Errorf("got %+v, %v", exit, err)
		}
	}
	ofRun := []string{"POST create", "POST attach", "POST wait", "POST start", "GET json", "DELETE container"}
	look()
	expect("found", "HEAD _ping", "GET info", "GET version")
	look()
	expect("found again")
	found, has, err := d.FindImage(t.Context(), "docker.io/library/python:3.12-slim")
	if err != nil || !has {
		t.Fatal(has, err)
	}
	expect("its image", "GET json")
	for range 2 {
		run(found.ID)
		expect("a run by the image's id", ofRun...)
	}
	run("python:3.12-slim") // what a name stands for may change, so it is looked up
	expect("a run by a name", append(ofRun, "GET json")...)
	unneeded = true
	run(found.ID)
	expect("a run of which all is known",
		slices.DeleteFunc(ofRun, func(what string) bool { return what == "GET json" })...)
}
