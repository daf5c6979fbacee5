package output

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func keeping(id string, n int) *kept {
	return &kept{id: id, files: []sandbox.Artifact{{Name: "f", Data: make([]byte, n)}}}
}

func ids(s *Store) string {
	var names []string
	for _, r := range s.runs {
		names = append(names, r.id)
	}
	return strings.Join(names, " ")
}

func bounded(maxBytes int64, maxRuns int) *Store { return &Store{maxBytes: maxBytes, maxRuns: maxRuns} }

func TestRunsAreKeptWithinBounds(t *testing.T) {
	overhead := int(keeping("", 0).size())
	s := bounded(int64(3*overhead+3000), 4)
	for _, id := range []string{"a", "b", "c"} {
		s.keep(keeping(id, 1000-1))
	}
	if _, err := s.find("a"); err != nil { // so that b is the oldest
		t.Fatal(err)
	}
	s.keep(keeping("d", 1000-1))
	if got := ids(s); got != "c a d" {
		t.Errorf("kept are %s", got)
	}
	if s.keep(keeping("huge", 10_000)) || ids(s) != "c a d" {
		t.Errorf("what can't be kept drove others out: %s", ids(s))
	}
	s.keep(keeping("e", 3500))
	if got := ids(s); got != "e" {
		t.Errorf("kept are %s", got)
	}
	few := bounded(1<<30, 4)
	for i := range 20 {
		few.keep(keeping(fmt.Sprint(i), 1))
	}
	if got := ids(few); got != "16 17 18 19" {
		t.Errorf("kept are %s", got)
	}
	var sum int64
	for _, r := range s.runs {
		sum += r.size()
	}
	if sum != s.bytes {
		t.Errorf("%d bytes are counted, %d are there", s.bytes, sum)
	}
}

func TestRunThatIsNotKept(t *testing.T) {
	s := bounded(1000_000, 20)
	if _, err := s.find("x"); err == nil || !strings.Contains(err.Error(), `of a run "x"`) ||
		!strings.Contains(err.Error(), "none is kept now") {
		t.Errorf("got %v", err)
	}
	for i := range 15 {
		s.keep(keeping(fmt.Sprintf("run%d", i), 1))
	}
	_, err := s.find("x")
	if err == nil || !strings.Contains(err.Error(), "the last used first: run14, run13") ||
		!strings.Contains(err.Error(), "and 5 more; run the code again") {
		t.Errorf("got %v", err)
	}
}

func TestRunsAreSafeForConcurrentUse(t *testing.T) {
	s := bounded(20_000, 8)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				id := fmt.Sprint(g, "-", i)
				s.keep(keeping(id, i*10))
				if r, err := s.find(id); err == nil && r.id != id {
					t.Errorf("asked for %s, got %s", id, r.id)
				}
			}
		})
	}
	wg.Wait()
	if len(s.runs) > 8 || s.bytes > 20_000 {
		t.Errorf("%d runs with %d bytes are kept", len(s.runs), s.bytes)
	}
}

// TestFilesAreCopiedWhenEncoded, and not for each answer that waits.
func TestFilesAreCopiedWhenEncoded(t *testing.T) {
	const size = 8 << 20
	s := bounded(1<<30, 4)
	s.keep(keeping("a", size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	contents, err := s.Resource(fileURI("a", "f"))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; err != nil || got > size/2 {
		t.Errorf("reading a file of %d bytes takes %d bytes (%v)", size, got, err)
	}
	want := `[{"uri":"mcp-bridge://runs/a/f","blob":"AAAA`
	if raw, err := json.Marshal(contents); err != nil || !strings.HasPrefix(string(raw), want) {
		t.Errorf("got %.100s, %v", raw, err)
	}
}
