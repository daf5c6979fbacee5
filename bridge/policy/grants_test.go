package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestGrants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "grants.json")
	g := NewGrants(path)
	if all, err := g.List(); err != nil || len(all) != 0 {
		t.Fatalf("before there is a file: %v, %v", all, err)
	}
	x := Grant{Server: "s", Tool: "x", Definition: "1"}
	for _, n := range []Grant{x, x, {Server: "s", Tool: "a", Definition: "1"}} {
		if err := g.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	all, err := NewGrants(path).List() // another process
	if err != nil || len(all) != 2 || all[0].Tool != "a" || all[0].Since.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	for _, tc := range []struct {
		Grant
		want bool
	}{{x, true}, {Grant{Server: "s", Tool: "x", Definition: "2"}, false}, {Grant{Server: "t", Tool: "x", Definition: "1"}, false}} {
		if _, got, err := g.Find(tc.Grant); err != nil || got != tc.want {
			t.Errorf("%+v: %v, %v", tc.Grant, got, err)
		}
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	n, err := g.Remove(func(o Grant) bool { return o.Tool == "x" })
	if _, has, herr := g.Find(x); n != 1 || err != nil || has || herr != nil {
		t.Errorf("removed %d, %v; still there: %v, %v", n, err, has, herr)
	}
}

// TestGrantsThatCannotBeRead grant nothing, and are not written over.
func TestGrantsThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grants.json")
	if err := os.WriteFile(path, []byte(`{"grants":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := NewGrants(path)
	if _, ok, err := g.Find(Grant{}); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
	if err := g.Add(Grant{Server: "s"}); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("added: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != `{"grants":[{` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestGrantsAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grants.json")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				if err := NewGrants(path).Add(Grant{Server: "s", Tool: fmt.Sprint(i, j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := NewGrants(path).List(); len(all) != 40 || err != nil {
		t.Errorf("%d of 40 are kept, %v", len(all), err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
