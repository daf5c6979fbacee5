package approvals

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
)

var (
	said = policy.SeenOf([]string{"it adds"}, nil, nil)
	add  = policy.Grant{Server: "s", Tool: "add", Definition: "1", Seen: said}
	sub  = policy.Grant{Server: "s", Tool: "sub", Definition: "1", Seen: said}
)

func tools(a *Approvals) string {
	var names []string
	for _, g := range a.Grants() {
		names = append(names, g.Tool)
	}
	return strings.Join(names, " ")
}

func (w *world) grant(a *Approvals, g policy.Grant) {
	w.t.Helper()
	w.must(a.Grant(g))
}

func tool(name string) func(policy.Grant) bool {
	return func(g policy.Grant) bool { return g.Tool == name }
}

// TestGrants: what a command allows and forgets without a bridge is in the record, which only the
// user can read.
func TestGrants(t *testing.T) {
	w := newWorld(t)
	w.cfg.Record = filepath.Join(w.root, "a", "b", "approved.json")
	a := New(w.cfg)
	w.grant(a, sub)
	w.grant(a, add)
	w.grant(a, add)
	b := New(w.cfg)
	if got := tools(b); got != "add sub" || b.Grants()[0].Since.IsZero() {
		t.Errorf("kept are %q: %v", got, b.Grants())
	}
	for _, tc := range []struct {
		policy.Grant
		want bool
	}{
		{add, true},
		{policy.Grant{Server: "s", Tool: "add", Definition: "2"}, false},
		{policy.Grant{Server: "t", Tool: "add", Definition: "1"}, false},
	} {
		if _, got := b.Granted(tc.Grant); got != tc.want {
			t.Errorf("%+v: %v", tc.Grant, got)
		}
	}
	for path, want := range map[string]os.FileMode{w.cfg.Record: 0o600, filepath.Dir(w.cfg.Record): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if n, err := a.Forget(tool("add")); n != 1 || err != nil {
		t.Errorf("%d were forgotten, %v", n, err)
	}
	if got := tools(New(w.cfg)); got != "sub" {
		t.Errorf("left are %q", got)
	}
	long := policy.Grant{Server: "s", Tool: strings.Repeat("x", maxGrants)}
	if err := a.Grant(long); err == nil || !strings.Contains(err.Error(), "policy forget") {
		t.Errorf("without bounds: %v", err)
	}
}

// TestGrantsAtTheSameTime: commands that run at the same time lose nothing of each other's.
func TestGrantsAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				if err := New(w.cfg).Grant(policy.Grant{Server: "s", Tool: fmt.Sprint(i, j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all := New(w.cfg).Grants(); len(all) != 40 {
		t.Errorf("%d of 40 are kept", len(all))
	}
}

// TestGrantsReachBridges: what is allowed or forgotten anywhere counts in each bridge at once, and
// in those that start later.
func TestGrantsReachBridges(t *testing.T) {
	w := newWorld(t)
	a := w.serve()
	early := New(w.cfg) // which can't be reached yet
	b := w.serve()
	w.grant(a, add)
	command := New(w.cfg)
	w.must(command.Grant(sub))
	for _, x := range []*Approvals{a, b, New(w.cfg)} {
		if got := tools(x); got != "add sub" {
			t.Errorf("%q are known", got)
		}
	}
	early.Reach()
	if n, err := New(w.cfg).Forget(tool("add")); n != 1 || err != nil {
		t.Errorf("%d were forgotten, %v", n, err)
	}
	for i, x := range []*Approvals{a, b, early} {
		if got := tools(x); got != "sub" {
			t.Errorf("%d: left are %q", i, got)
		}
	}
	if s, err := readRecord(w.cfg.Record); err != nil || len(s.Grants) != 1 {
		t.Errorf("the record has %v, %v while bridges run", s.Grants, err)
	}
	w.end(a)
	w.end(early)
	w.end(b)
	if got := tools(New(w.cfg)); got != "sub" {
		t.Errorf("at the next start %q are known", got)
	}
}

// TestForgottenBeforeReached: a bridge that starts to run code late has forgotten what was
// forgotten meanwhile.
func TestForgottenBeforeReached(t *testing.T) {
	w := newWorld(t)
	w.grant(New(w.cfg), add)
	late, _, _ := w.start()
	if n, err := New(w.cfg).Forget(tool("add")); n != 1 || err != nil {
		t.Errorf("%d were forgotten, %v", n, err)
	}
	late.Begin()
	if got := tools(late); got != "" {
		t.Errorf("it knows %q", got)
	}
	w.end(late)
}

// forgeGrant is code that copies an entry of the record, with another tool's name and without what
// its server said of it.
func (w *world) forgeGrant() {
	w.t.Helper()
	text, err := os.ReadFile(w.cfg.Record)
	w.must(err)
	var r record
	w.must(json.Unmarshal(text, &r))
	r.Grants = append(slices.Clone(r.Grants), policy.Grant{Server: "s", Tool: "evil", Definition: "1"})
	text, err = json.Marshal(r)
	w.must(err)
	w.must(os.WriteFile(w.cfg.Record, text, 0o600))
	old := filepath.Join(filepath.Dir(w.cfg.Record), "grants.json")
	w.must(os.WriteFile(old, text, 0o600))
}

// TestForgedGrants: what code writes into the record counts neither in the bridge that runs it, nor
// in one beside it, nor in the next, after a good end and after a kill.
func TestForgedGrants(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			w := newWorld(t)
			k := &keeper{kept: map[int][]byte{}}
			w.cfg.Guard = k
			a := w.serve()
			w.grant(a, add)
			w.forgeGrant()
			for _, x := range []*Approvals{a, New(w.cfg)} {
				if got := tools(x); got != "add" {
					t.Errorf("in the same session %q are known", got)
				}
			}
			beside := w.serve()
			w.grant(beside, sub)
			for _, x := range []*Approvals{a, beside, New(w.cfg)} {
				if got := tools(x); got != "add sub" {
					t.Errorf("%q are known", got)
				}
			}
			w.end(beside)
			w.forgeGrant()
			if killed {
				a.door.close(true)
				for _, text := range k.kept {
					w.must(os.WriteFile(w.cfg.Record, text, 0o600))
				}
			} else {
				w.end(a)
			}
			if got := tools(New(w.cfg)); got != "add sub" {
				t.Errorf("at the next start %q are known", got)
			}
		})
	}
}

// TestPinnedGrant: a grant of a tool that wasn't known is for what the server says of it first.
func TestPinnedGrant(t *testing.T) {
	w := newWorld(t)
	a := w.serve()
	w.grant(a, policy.Grant{Server: "s", Tool: "add", Definition: "1"})
	if kept, ok := a.Granted(add); !ok || kept.Seen != said {
		t.Errorf("%v, %v", kept, ok)
	}
	w.end(a)
	other := add
	other.Seen = policy.SeenOf([]string{"it burns"}, nil, nil)
	if kept, _ := New(w.cfg).Granted(other); len(kept.Seen.Changed(other.Seen)) != 1 {
		t.Errorf("%v isn't told from what it was", kept)
	}
}

// TestPolicyFile: which contents of a policy file are trusted at the next start.
func TestPolicyFile(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, while string // what the file holds at first, and what is written while code is run
		after         string // what the user writes afterwards
		approve       bool   // while code is run
		want          bool
	}{
		{name: "as it was", before: "deny", want: true},
		{name: "written again the same", before: "deny", while: "deny", want: true},
		{name: "written while code was run", before: "deny", while: "allow"},
		{name: "made while code was run", while: "allow"},
		{name: "approved meanwhile", before: "deny", while: "allow", approve: true, want: true},
		{name: "written by the user afterwards", before: "deny", while: "allow", after: "ask", want: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			trusts := func(a *Approvals) bool {
				text, err := os.ReadFile(w.path("~/policy.toml"))
				w.must(err)
				return a.Trusts(w.path("~/policy.toml"), text)
			}
			if tc.before != "" {
				w.write("~/policy.toml", tc.before)
			}
			w.later()
			a, _, _ := w.start()
			if tc.before != "" && !trusts(a) {
				t.Fatal("it isn't trusted at first")
			}
			a.Begin()
			if tc.while != "" {
				w.write("~/policy.toml", tc.while)
			}
			if got := trusts(New(w.cfg)); got != (tc.while == "" || tc.while == tc.before) {
				t.Errorf("beside the bridge that runs code: %v", got)
			}
			if tc.approve {
				w.must(New(w.cfg).Trust(w.path("~/policy.toml"), []byte(tc.while)))
			}
			w.later()
			w.end(a)
			if tc.after != "" {
				w.write("~/policy.toml", tc.after)
			}
			for range 2 {
				b, _, _ := w.start()
				if got := trusts(b); got != tc.want {
					t.Errorf("at the next start: %v, want %v", got, tc.want)
				}
				b.Begin()
				w.end(b)
			}
			if !tc.want {
				w.must(New(w.cfg).Trust(w.path("~/policy.toml"), []byte(tc.while)))
				if !trusts(New(w.cfg)) {
					t.Error("a yes without a bridge counts for nothing")
				}
			}
		})
	}
}
