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

func ids(v View) string {
	var names []string
	for _, r := range v.store.runs {
		names = append(names, r.id)
	}
	return strings.Join(names, " ")
}

func bounded(maxBytes int64, maxRuns int) View {
	return (&Store{maxBytes: maxBytes, maxRuns: maxRuns}).Of("alice")
}

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
	for _, r := range s.store.runs {
		sum += r.size()
	}
	if sum != s.store.bytes {
		t.Errorf("%d bytes are counted, %d are there", s.store.bytes, sum)
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

// TestNearRun: an id that is one character short is known, and a stranger's is not named.
func TestNearRun(t *testing.T) {
	s := bounded(1<<30, 4)
	s.keep(keeping("942c840391a8", 1))
	if _, err := s.find("942c840391a"); err == nil ||
		!strings.Contains(err.Error(), `"942c840391a" (did you mean "942c840391a8"?): `) {
		t.Errorf("got %v", err)
	}
	if _, err := s.store.Of("bob").find("942c840391a"); err == nil || strings.Contains(err.Error(), "a8") {
		t.Errorf("another one got %v", err)
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
	if len(s.store.runs) > 8 || s.store.bytes > 20_000 {
		t.Errorf("%d runs with %d bytes are kept", len(s.store.runs), s.store.bytes)
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

// TestOthersRuns has principals look for each other's runs, and be told of their own alone.
func TestOthersRuns(t *testing.T) {
	alice := bounded(1<<20, 10)
	bob := alice.store.Of("bob")
	alice.keep(keeping("a", 1))
	bob.keep(keeping("b", 1))
	for _, id := range []string{"a", "x"} {
		_, err := bob.find(id)
		if err == nil || !strings.Contains(err.Error(), "the last used first: b;") {
			t.Errorf("bob finds %s: %v", id, err)
		}
		if _, err := bob.Resource(fileURI(id, "f")); err == nil {
			t.Errorf("bob reads the file of %s", id)
		}
		if text, err := bob.Read(json.RawMessage(`{"run":"` + id + `"}`)); err == nil {
			t.Errorf("bob reads the output of %s: %s", id, text)
		}
	}
	if all := bob.Files(); len(all) != 1 || all[0].Run != "b" || len(bob.Resources()) != 1 {
		t.Errorf("bob has %v", all)
	}
}

// TestShares has one principal fill the store, whose runs then make room for those of another.
func TestShares(t *testing.T) {
	size := keeping("", 1000).size()
	alice := bounded(10*size, 100)
	bob := alice.store.Of("bob")
	for i := range 10 {
		alice.keep(keeping(fmt.Sprint("a", i), 1000))
	}
	bob.keep(keeping("b0", 1000))
	for i := range 10 {
		alice.keep(keeping(fmt.Sprint("a1", i), 1000))
	}
	if _, err := bob.find("b0"); err != nil {
		t.Errorf("alice has driven out bob's run: %v", err)
	}
	if bob.keep(keeping("huge", int(9*size))) {
		t.Errorf("bob has driven out all of alice's: %s", ids(bob))
	}
	few := bounded(1<<30, 4)
	for i, who := range []string{"b", "c", "a", "a", "d", "a", "a", "a"} {
		few.store.Of(who).keep(keeping(fmt.Sprint(who, i), 1))
	}
	if got := ids(few); got != "b0 c1 d4 a7" {
		t.Errorf("kept are %s", got)
	}
}
