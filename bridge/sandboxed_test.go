package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// in is the arguments of a run in a sandbox.
func in(id, code string) string { return fmt.Sprintf(`{"code":%q,"sandbox":%q}`, code, id) }

var begun = regexp.MustCompile(`\[sandbox ([a-z0-9]{4}): new\]$`)

// begin begins a sandbox and returns its id.
func (p *peer) begin() string {
	p.t.Helper()
	text := p.call(in("new", "count")).Content[0].Text
	m := begun.FindStringSubmatch(text)
	if m == nil {
		p.t.Fatalf("no sandbox was begun: %s", text)
	}
	return m[1]
}

// TestLastLine: the last line of a result says what became of the sandbox.
func TestLastLine(t *testing.T) {
	b, g := keeping(t, nil)
	p := connect(t, b)
	id := p.begin()
	for _, tc := range []struct {
		code, want string
		failed     bool
	}{
		{"count", "2\n[sandbox ID, call 2]", false},
		{"bad", "status: timeout — The code was stopped.\n" +
			"[to allow more time, give a longer timeout: up to 120 s]\n" +
			"[sandbox ID: variables as before this call; files as the code left them; threads and processes of " +
			"earlier calls are gone]", true},
		{"silent", "(no output)\n[sandbox ID: variables as before this call; files as the code left them; " +
			"threads and processes of earlier calls are gone; the code has ended its process]", false},
		{"large", "3\n[sandbox ID, call 5; no way back from here: variables take 230 of 512 MiB]", false},
		{"older", "4\n[sandbox ID, call 6; a copy of an earlier state has taken over]", false},
		{"bad older", "status: timeout — The code was stopped.\n" +
			"[to allow more time, give a longer timeout: up to 120 s]\n" +
			"[sandbox ID: variables as before this call; files as the code left them; threads and processes of " +
			"earlier calls are gone; a copy of an earlier state has taken over]", true},
		{"die", "status: memory_limit\n[sandbox ID has ended: it ran out of memory; start again with \"new\"]",
			true},
		{"count", "status: validation_error — sandbox \"ID\" has ended: it ran out of memory. Nothing was run. " +
			"Pass sandbox \"new\" and define again what you need; you have no live sandboxes", true},
	} {
		r := p.call(in(id, tc.code))
		if got := strings.ReplaceAll(r.Content[0].Text, id, "ID"); got != tc.want || r.IsError != tc.failed {
			t.Errorf("%s: got (error %v)\n%s\nwant (error %v)\n%s", tc.code, r.IsError, got, tc.failed, tc.want)
		}
	}
	if runs := g.at(0).runs; runs != 8 {
		t.Errorf("%d runs: an ended sandbox has run code", runs)
	}
	if r := p.call(`{"code":"print(1)"}`); r.Content[0].Text != "print(1)" {
		t.Errorf("a call without a sandbox: %s", r.Content[0].Text)
	}
}

// TestNinth: the result that begins one too many says which one has ended for it.
func TestNinth(t *testing.T) {
	b, _ := keeping(t, nil)
	p := connect(t, b)
	oldest := p.begin()
	for range sandboxes.PerOwner - 1 {
		p.begin()
	}
	if got := p.call(in("new", "count")).Content[0].Text; !strings.HasSuffix(got, ": new; "+oldest+
		" has ended for it]") {
		t.Errorf("the ninth: %s", got)
	}
}

// TestSandboxForPrograms: the structured form says the same.
func TestSandboxForPrograms(t *testing.T) {
	b, _ := keeping(t, func(c *Config) { c.OutputMode = OutputStructured })
	p := connect(t, b)
	state := func(args string) (s struct {
		ID, State, Reason, NoWayBack string
		Call                         int
		New                          bool
	}) {
		t.Helper()
		var o struct{ Sandbox any }
		o.Sandbox = &s
		if err := json.Unmarshal(p.call(args).Struct, &o); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := state(in("new", "count"))
	if len(first.ID) != 4 || first.State != "kept" || first.Call != 1 || !first.New {
		t.Errorf("%+v", first)
	}
	for code, want := range map[string]string{"count": "kept", "bad": "before", "large": "kept"} {
		if s := state(in(first.ID, code)); s.State != want || s.New || s.ID != first.ID ||
			(code == "large") != (s.NoWayBack != "") {
			t.Errorf("%s: %+v", code, s)
		}
	}
	if s := state(in(first.ID, "die")); s.State != "lost" || s.Reason != "it ran out of memory" || s.Call != 5 {
		t.Errorf("%+v", s)
	}
}

// TestSandboxErrors: what can't be run names why, and which sandboxes the caller has.
func TestSandboxErrors(t *testing.T) {
	b, g := keeping(t, nil)
	p, other := connect(t, b), connect(t, b)
	mine, theirs := p.begin(), other.begin()
	p.begin()
	unknown := `you have no sandbox "ID": sandboxes end with the bridge, which was started WHEN, and over ` +
		`stdio with their connection. Nothing was run. Pass sandbox "new" and define again what you ` +
		`need; your live sandboxes: `
	for _, tc := range []struct{ args, want string }{
		{in(theirs, "count"), strings.ReplaceAll(unknown, "ID", theirs)},
		{in("zzzz", "count"), strings.ReplaceAll(unknown, "ID", "zzzz")},
		{in(strings.Repeat("é", 300), "count"), strings.ReplaceAll(unknown, "ID", strings.Repeat("é", 80))},
		{in("", "count"), `argument "sandbox" must be "new" or the id of a sandbox, such as "k7f2", not ""`},
		{`{"code":"count","sandbox":7}`, `must be "new" or the id of a sandbox, such as "k7f2", not 7`},
		{`{"code":"","sandbox":"new"}`, `argument "code" is empty`},
	} {
		r := p.call(tc.args)
		got := regexp.MustCompile(`started (just now|\d+ s ago),`).
			ReplaceAllString(r.Content[0].Text, "started WHEN,")
		if !r.IsError || !strings.Contains(got, tc.want) || strings.Contains(tc.want, "live") &&
			!strings.Contains(got, mine+" (call 1, just now)") {
			t.Errorf("%s: got %s\nwant %s", tc.args, got, tc.want)
		}
		if strings.Contains(strings.Split(got, "live")[len(strings.Split(got, "live"))-1], theirs) {
			t.Errorf("%s lists another caller's: %s", tc.args, got)
		}
	}
	if n := g.made(); n != 3 || g.at(1).runs != 1 {
		t.Errorf("%d guests, %d runs in another caller's", n, g.at(1).runs)
	}
	plain := connect(t, build(t, nil))
	if r := plain.call(in("new", "count")); !strings.Contains(r.Content[0].Text, `has no argument "sandbox"`) {
		t.Errorf("without sandboxes: %s", r.Content[0].Text)
	}
}

// TestSandboxModern: an id works in requests without a session of their own.
func TestSandboxModern(t *testing.T) {
	b, g := keeping(t, nil)
	p := connect(t, b)
	call := func(id int, args string) string {
		t.Helper()
		p.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":%s,%s}`,
			id, args, modern[1:])
		return p.next().tool(t).Content[0].Text
	}
	m := begun.FindStringSubmatch(call(1, in("new", "count")))
	if m == nil {
		t.Fatal("none was begun")
	}
	if got, want := call(2, in(m[1], "count")), "2\n[sandbox "+m[1]+", call 2]"; got != want || g.made() != 1 {
		t.Errorf("got %q, want %q, of %d guests", got, want, g.made())
	}
}

// TestSandboxOrder: calls of one sandbox run in the order in which they came, and not beside each
// other; those of others run meanwhile; the tenth is refused.
func TestSandboxOrder(t *testing.T) {
	b, g := keeping(t, nil)
	p := connect(t, b)
	id, other := p.begin(), p.begin()
	p.run(100, in(id, "hold"), "")
	for i := range 8 {
		p.run(101+i, in(id, "count"), "")
	}
	p.run(200, in(id, "count"), "")
	if f := p.next(); string(f.ID) != "200" || !strings.Contains(f.tool(t).Content[0].Text,
		"status: busy — sandbox "+id+" is busy: 8 calls wait for it, which is the limit. Nothing was run") {
		t.Errorf("the tenth: %s %s", f.ID, f.Result)
	}
	p.run(300, in(other, "count"), "")
	if f := p.next(); string(f.ID) != "300" {
		t.Errorf("that of another sandbox: %s", f.ID)
	}
	p.run(400, `{"code":"print(1)"}`, "")
	if f := p.next(); string(f.ID) != "400" {
		t.Errorf("that of no sandbox: %s", f.ID)
	}
	close(g.hold)
	got := map[string]string{}
	for range 9 {
		f := p.next()
		got[string(f.ID)] = strings.SplitN(f.tool(t).Content[0].Text, "\n", 2)[0]
	}
	for i := range 9 {
		if id := fmt.Sprint(100 + i); got[id] != fmt.Sprint(2+i) {
			t.Errorf("call %s was number %s", id, got[id])
		}
	}
}

// TestConnectionEnds: the sandboxes of a client end with its connection, and no others.
func TestConnectionEnds(t *testing.T) {
	b, g := keeping(t, nil)
	p, other := connect(t, b), connect(t, b)
	p.begin()
	id := other.begin()
	p.in.Close()
	<-g.at(0).Done()
	if r := other.call(in(id, "count")); r.IsError {
		t.Errorf("another client's: %s", r.Content[0].Text)
	}
}

// TestStateOfSession: calls of a client that name no sandbox share one, which is replaced when it
// has ended, and the result says so.
func TestStateOfSession(t *testing.T) {
	b, g := keeping(t, func(c *Config) { c.State = StateSession })
	p, other := connect(t, b), connect(t, b)
	text := func(p *peer, code string) string { return p.call(fmt.Sprintf(`{"code":%q}`, code)).Content[0].Text }
	first := begun.FindStringSubmatch(text(p, "count"))
	if first == nil {
		t.Fatal("none was begun")
	}
	if got := text(p, "count"); got != "2\n[sandbox "+first[1]+", call 2]" {
		t.Errorf("the second call: %s", got)
	}
	if got := text(other, "count"); !strings.HasPrefix(got, "1\n") {
		t.Errorf("another client's: %s", got)
	}
	if r := p.call(in(first[1], "count")); r.Content[0].Text != "3\n[sandbox "+first[1]+", call 3]" {
		t.Errorf("by its id: %s", r.Content[0].Text)
	}
	if got := text(p, "die"); !strings.HasSuffix(got, " has ended: it ran out of memory; the next call begins "+
		"another one]") {
		t.Errorf("as it ends: %s", got)
	}
	if got := text(p, "count"); !strings.HasPrefix(got, "1\n") ||
		!strings.HasSuffix(got, ": new; sandbox "+first[1]+
			" has ended: it ran out of memory]") {
		t.Errorf("after its end: %s", got)
	}
	p.in.Close()
	<-g.at(2).Done()
}

// TestPackagesOfSandbox: the code of the first call chooses the packages, for all calls.
func TestPackagesOfSandbox(t *testing.T) {
	f := &fakePackages{built: true, image: "first"}
	b, g := keeping(t, func(c *Config) {
		c.Packages = packages.New(packages.Config{Source: f, Ready: func(context.Context, runtime.Progress) error {
			return nil
		}})
	})
	p := connect(t, b)
	with := "# /// script\n# dependencies = [\"pandas\"]\n# ///\ncount"
	text := p.call(in("new", with)).Content[0].Text
	if g.at(0).request.Environment == nil || !strings.Contains(text, "[environment: data]\n[sandbox ") {
		t.Errorf("the first call: %s", text)
	}
	id := begun.FindStringSubmatch(text)[1]
	lacks := "# /// script\n# dependencies = [\"nothing-has-this\"]\n# ///\ncount"
	if got := p.call(in(id, lacks)).Content[0].Text; got != "2\n[environment: data, chosen by the "+
		"sandbox's first call]\n[sandbox "+id+", call 2]" {
		t.Errorf("a later call: %s", got)
	}
	if r := p.call(in("new", lacks)); !r.IsError || g.made() != 1 {
		t.Errorf("a new one with what there isn't: %s", r.Content[0].Text)
	}
}

// TestEachCallIsJudged: the policy's limits and the record are each call's own.
func TestEachCallIsJudged(t *testing.T) {
	b, path := audited(t, func(c *Config) {
		lasting(t, c)
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.me\"]\nverdict = \"allow\"\n[[limit]]\ntools = "+
			"[\"github.me\"]\ncalls = 1\nper = \"run\"")
	})
	p := connect(t, b)
	id := p.begin()
	for range 2 {
		if r := p.call(in(id, "tool")); !strings.Contains(r.Content[0].Text, "<nil>") {
			t.Errorf("the tool's call: %s", r.Content[0].Text)
		}
	}
	runs := map[string]int{}
	for _, r := range readRecords(t, path) {
		if r.Kind == "run" {
			runs[r.Sandbox]++
		}
	}
	if len(runs) != 1 || runs[id] != 3 {
		t.Errorf("recorded runs by sandbox: %v", runs)
	}
}

// TestConsentOfEachCall: a consent "for this run" is the call's. The next call of the same sandbox
// asks again.
func TestConsentOfEachCall(t *testing.T) {
	b, _ := keeping(t, func(c *Config) {
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.me\"]\nverdict = \"ask\"")
	})
	p := connect(t, b)
	p.introduce(`{"elicitation":{}}`)
	id := p.begin()
	for i := range 2 {
		p.run(100+i, in(id, "tool tool"), "")
		q := p.next()
		if q.Method != "elicitation/create" {
			t.Fatalf("call %d asks nothing: %+v", i, q)
		}
		p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer("run"))
		if got := p.next().tool(t).Content[0].Text; strings.Count(got, "github.me{") != 2 {
			t.Errorf("call %d, allowed for the run: %s", i, got)
		}
	}
}
