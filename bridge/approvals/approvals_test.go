package approvals

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// world is a user's home with a project, and where the bridges of that user meet.
type world struct {
	t                *testing.T
	root, home, proj string
	cfg              Config
	listed           []string // MCP_BRIDGE_CONFIG
	claudeCode       bool     // it starts the bridge
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root, home: filepath.Join(root, "home"), proj: filepath.Join(root, "home", "proj")}
	sockets, err := os.MkdirTemp("", "ap") //nolint:usetesting // its path is to be short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	w.cfg = Config{Record: filepath.Join(root, "state", "approved.json"), Sockets: []string{sockets}}
	for _, dir := range []string{w.proj, filepath.Join(root, "state")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// path is ~/x, p/x of the project, or x below the root.
func (w *world) path(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(w.home, rest)
	}
	if rest, ok := strings.CutPrefix(p, "p/"); ok {
		return filepath.Join(w.proj, rest)
	}
	return filepath.Join(w.root, p)
}

func (w *world) write(p, text string) {
	w.t.Helper()
	p = w.path(p)
	text = strings.ReplaceAll(text, "PROJ", w.proj)
	err := os.MkdirAll(filepath.Dir(p), 0o700)
	if err == nil {
		err = os.WriteFile(p, []byte(strings.ReplaceAll(text, "HOME", w.home)), 0o600)
	}
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// later returns once what was written before is clearly older than what is written then.
func (w *world) later() {
	w.t.Helper()
	for now := time.Now().Add(2 * tick); ; {
		probe, err := os.MkdirTemp("", "later")
		w.must(err)
		made := changed(probe)
		w.must(os.Remove(probe))
		if made.After(now) {
			return
		}
	}
}

// life goes on: the directories that all files are below change.
func (w *world) life() {
	w.t.Helper()
	for _, dir := range []string{w.root, w.home, w.proj, filepath.Dir(w.root)} {
		w.must(os.WriteFile(filepath.Join(dir, "passing"), nil, 0o600))
		w.must(os.Remove(filepath.Join(dir, "passing")))
	}
}

func (w *world) env() discovery.Env {
	return discovery.Env{Home: w.home, Dir: w.proj, GOOS: "linux", ConfigPaths: w.listed,
		Getenv: func(name string) string {
			if w.claudeCode && name == "CLAUDECODE" {
				return "1"
			}
			return ""
		}}
}

func (w *world) scan() discovery.Catalog { return discovery.Scan(discovery.Root(), w.env()) }

// start is a bridge that has just started, and the servers that it holds and may start.
func (w *world) start() (a *Approvals, held, free string) {
	a = New(w.cfg)
	c := a.Update(w.scan())
	held, free = sorted(a, c)
	return a, held, free
}

// hasGood configures the server good.
func (w *world) hasGood() {
	w.t.Helper()
	w.write("~/.cursor/mcp.json", one("good", "good"))
	w.later()
}

// serve starts a bridge that runs code.
func (w *world) serve() *Approvals {
	a, _, _ := w.start()
	a.Begin()
	return a
}

// finds starts a bridge, and compares the servers that it holds and may start.
func (w *world) finds(held, free string) *Approvals {
	w.t.Helper()
	a, h, f := w.start()
	if h != held || f != free {
		w.t.Errorf("%q is held, %q not; want %q and %q", h, f, held, free)
	}
	return a
}

func sorted(a *Approvals, c discovery.Catalog) (held, free string) {
	var h, f []string
	for _, s := range c.Servers {
		if a.Held(s) {
			h = append(h, s.Name)
		} else {
			f = append(f, s.Name)
		}
	}
	return strings.Join(h, " "), strings.Join(f, " ")
}

func (w *world) end(a *Approvals) {
	w.t.Helper()
	w.must(a.Close())
	w.later()
}

func one(name, command string) string {
	return fmt.Sprintf(`{"mcpServers": {%q: {"command": %q}}}`, name, command)
}

// keeper is a watchdog's part.
type keeper struct{ kept map[int][]byte }

func (k *keeper) File(string) (forget func()) { return func() {} }

func (k *keeper) Keep(_ string, text []byte) (forget func()) {
	n := len(k.kept) + 1
	for k.kept[n] != nil {
		n++
	}
	k.kept[n] = text
	return func() { delete(k.kept, n) }
}

// TestKilled: after a kill the watchdog writes what the bridge knew. Code's own word in the record
// doesn't last, and what is known stays known.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.hasGood()
	k := &keeper{kept: map[int][]byte{}}
	w.cfg.Guard = k
	a := w.serve()
	a.Update(w.scan())
	w.write("~/.config/mcp/servers/x.json", one("evil", "evil"))
	w.forge()
	if len(k.kept) != 1 {
		t.Fatalf("%d texts are kept", len(k.kept))
	}
	a.door.close(true) // it is killed
	for _, text := range k.kept {
		w.must(os.WriteFile(w.cfg.Record, text, 0o600))
	}
	w.later()
	w.write("~/.junie/mcp/mcp.json", one("mine", "mine"))
	b := w.finds("evil", "good mine")
	w.must(b.Close())
}

// TestBothKilled: where the watchdog is killed too, all the time since code was first run counts as
// such.
func TestBothKilled(t *testing.T) {
	w := newWorld(t)
	w.write("~/.cursor/mcp.json", one("good", "good"))
	a := w.serve()
	a.door.close(true)
	w.later()
	w.write("~/.config/mcp/servers/x.json", one("evil", "evil"))
	w.later()
	b := w.finds("evil", "good")
	w.must(b.Close())
}

// TestApprove: a yes reaches every bridge that can be reached, lasts, is for one definition, and is
// given up with it.
func TestApprove(t *testing.T) {
	w := newWorld(t)
	a := w.serve()
	b := w.serve()
	w.write("~/.cursor/mcp.json", one("s", "one"))
	for _, x := range []*Approvals{a, b} {
		if held, _ := sorted(x, x.Update(w.scan())); held != "s" {
			t.Fatalf("%q is held", held)
		}
	}
	changes := 0
	b.cfg.Changed = func() { changes++ }
	command := New(w.cfg)
	if told, err := command.Approve(w.scan().Servers[0]); told != 2 || err != nil {
		t.Errorf("%d were told, %v", told, err)
	}
	for _, x := range []*Approvals{a, b} {
		if held, free := sorted(x, x.Update(w.scan())); free != "s" {
			t.Errorf("after a yes %q is held", held)
		}
	}
	w.end(a)
	w.end(b)
	if changes != 1 {
		t.Errorf("%d changes were told of", changes)
	}
	a, held, free := w.start()
	if free != "s" {
		t.Errorf("at the next start %q is held", held)
	}
	a.Begin()
	w.write("~/.cursor/mcp.json", one("s", "two"))
	if held, _ := sorted(a, a.Update(w.scan())); held != "s" {
		t.Error("a yes is for another definition too")
	}
	w.write("~/.cursor/mcp.json", one("s", "one"))
	if held, _ := sorted(a, a.Update(w.scan())); held != "s" {
		t.Error("what was taken away and put back is started")
	}
	w.end(a)
	c := New(w.cfg)
	if told, err := c.Approve(w.scan().Servers[0]); told != 0 || err != nil {
		t.Errorf("%d were told, %v", told, err)
	}
	if a, held, _ = w.start(); held != "" {
		t.Errorf("approved while no bridge ran, %q is held", held)
	}
	w.end(a)
}

// TestFiltersOnlyNarrow: what a host hides from the start on stays hidden whatever is written
// later; what it hides later is hidden.
func TestFiltersOnlyNarrow(t *testing.T) {
	w := newWorld(t)
	filter := func(list string) string {
		return `{"mcpServers": {"s": {"command": "x", "disabledTools": [` + list + `]}}}`
	}
	const file = "~/.config/mcp/servers/s.json"
	w.write(file, filter(`"delete"`))
	a, _, _ := w.start()
	defer w.end(a)
	a.Begin()
	hidden := func() string {
		s := a.Update(w.scan()).Servers[0]
		var names []string
		for _, tool := range []string{"create", "delete", "read"} {
			if _, yes := s.HiddenBy(tool); yes {
				names = append(names, tool)
			}
		}
		if a.Held(s) {
			return "held"
		}
		return strings.Join(names, " ")
	}
	for _, step := range []struct{ list, want string }{
		{`"delete"`, "delete"}, {`"create"`, "create delete"}, {``, "create delete"},
		{`"read"`, "create delete read"}, {`"delete"`, "create delete read"},
	} {
		w.write(file, filter(step.list))
		if got := hidden(); got != step.want {
			t.Errorf("with [%s] %q are hidden, want %q", step.list, got, step.want)
		}
	}
	if _, err := a.Approve(w.scan().Servers[0]); err != nil {
		t.Error(err)
	}
	if got := hidden(); got != "delete" {
		t.Errorf("after a yes %q are hidden", got)
	}
	for i := range 40 {
		w.write(file, filter(fmt.Sprintf(`"t%d"`, i)))
		if hidden() == "held" {
			return
		}
	}
	t.Error("filters without end are remembered")
}

func TestSpans(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	got := spans{{at(5), at(6)}, {at(1), at(3)}, {at(2), at(4)}, {at(8), at(9)}, {at(6), at(7)}}.joined()
	if want := (spans{{at(1), at(4)}, {at(5), at(7)}, {at(8), at(9)}}); !slices.Equal(got, want) {
		t.Errorf("joined they are %v, want %v", got, want)
	}
	var many spans
	for i := range 3 * maxSpans {
		many = append(many, span{at(10 * i), at(10*i + 1)})
	}
	few := many.joined()
	if len(few) != maxSpans {
		t.Errorf("there are %d", len(few))
	}
	for _, s := range many {
		if !few.holds([]time.Time{s.From}) || !few.holds([]time.Time{s.Until}) {
			t.Errorf("%v is lost", s)
		}
	}
	if few.holds([]time.Time{at(30*maxSpans - 5)}) {
		t.Error("time between is held")
	}
}

// TestKnownIsBounded: the record keeps what was there last.
func TestKnownIsBounded(t *testing.T) {
	w := newWorld(t)
	a, _, _ := w.start()
	a.Reach()
	a.mu.Lock()
	for i := range 2 * maxKnown {
		a.state.Known[fmt.Sprint(i)] = fmt.Sprintf("20%02d-01-01", i%50)
	}
	a.state.Known["last"], a.state.dirty = "2099-01-01", true
	a.mu.Unlock()
	w.end(a)
	s, err := readRecord(w.cfg.Record)
	if err != nil || len(s.Known) != maxKnown || s.Known["last"] == "" {
		t.Errorf("%d are known, %v", len(s.Known), err)
	}
}
