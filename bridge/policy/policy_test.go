package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func parse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("policy.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const example = `
default = "ask"

[[rule]]
tools = ["github.*", "files.read_*"]
except = ["github.delete_*"]
verdict = "allow"

[[rule]]
tools = ["*.delete_*"]
verdict = "deny"
reason = "nothing is deleted here"

[[rule]]
tools = ['"my.server".*', 'odd.a\*b']
verdict = "deny"

[[rule]]
tools = ["github.create_issue"]
verdict = "ask"

[hints]
read_only = "allow"
destructive = "deny"
`

func TestDecide(t *testing.T) {
	p := parse(t, example)
	for _, tc := range []struct {
		name, server, tool, hints string
		want                      Verdict
		why                       string
	}{
		{"allowed by a glob", "github", "list_issues", "", Allow, `rule "github.*" (policy.toml, line 4)`},
		{"excepted, and denied by another", "github", "delete_repo", "", Deny,
			`rule "*.delete_*" (policy.toml, line 9): nothing is deleted here`},
		{"the stricter of two, though it is later", "github", "create_issue", "", Ask,
			`rule "github.create_issue" (policy.toml, line 18)`},
		{"a hint doesn't loosen a rule", "files", "delete_all", `{"readOnlyHint":true}`, Deny, `rule "*.delete_*"`},
		{"nor does it tighten one", "files", "read_file", `{"destructiveHint":true}`, Allow, `rule "files.read_*"`},
		{"read only", "db", "query", `{"readOnlyHint":true}`, Allow,
			`hints.read_only, which the server claims (policy.toml, line 23)`},
		{"read only outweighs destructive, as in MCP", "db", "query",
			`{"readOnlyHint":true,"destructiveHint":true}`, Allow, "hints.read_only"},
		{"destructive unless the server says otherwise", "db", "insert", "", Deny, `hints.destructive`},
		{"annotations that can't be read say nothing", "db", "insert", `{"readOnlyHint":"yes"}`, Deny,
			`hints.destructive`},
		{"the default", "db", "insert", `{"destructiveHint":false}`, Ask, `default (policy.toml, line 2)`},
		{"a server with a dot", "my.server", "x", "", Deny, `rule "\"my.server\".*"`},
		{"dots of a tool are its own", "github", "a.b.c", "", Allow, `rule "github.*"`},
		{"a server whose name is the beginning of another's", "git", "hub.x", `{"readOnlyHint":true}`, Allow,
			"hints.read_only"},
		{"an escaped star is a star", "odd", "a*b", "", Deny, `line 14`},
		{"and nothing else", "odd", "axb", `{"readOnlyHint":true}`, Allow, "hints.read_only"},
		{"names are told apart by case", "GitHub", "delete_x", "", Deny, `rule "*.delete_*"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := p.Decide(Tool{Server: tc.server, Name: tc.tool, Annotations: json.RawMessage(tc.hints)})
			if d.Verdict != tc.want || !strings.Contains(d.Why(), tc.why) {
				t.Errorf("got %v by %s, want %v by %s", d.Verdict, d.Why(), tc.want, tc.why)
			}
		})
	}
}

// TestFirstOfEquals: of rules that are equally strict the first in the file is named, of hints the
// first in the order of docs/policy.md.
func TestFirstOfEquals(t *testing.T) {
	p := parse(t, "[[rule]]\ntools = [\"a.*\"]\nverdict = \"deny\"\nreason = \"one\"\n[[rule]]\ntools = "+
		"[\"*.b\"]\nverdict = \"deny\"\nreason = \"two\"\n"+
		"[hints]\nopen_world = \"ask\"\ndestructive = \"ask\"\n")
	for tool, want := range map[string]string{"a.b": `rule "a.*" (policy.toml, line 1): one`,
		"c.b": `rule "*.b" (policy.toml, line 5): two`, "c.c": "hints.destructive, "} {
		server, name, _ := strings.Cut(tool, ".")
		if d := p.Decide(Tool{Server: server, Name: name}); !strings.HasPrefix(d.Why(), want) {
			t.Errorf("%s: by %s, want %s", tool, d.Why(), want)
		}
	}
}

// TestMethodsAreHintedByMCP: what isn't a tool has no annotations, and no server is said to have
// claimed any.
func TestMethodsAreHintedByMCP(t *testing.T) {
	d := parse(t, example).Decide(Tool{Server: "db", Name: "completion/complete", Method: true})
	if want := "hints.read_only, as MCP's methods only read (policy.toml, line 23)"; d.Verdict != Allow ||
		d.Why() != want {
		t.Errorf("got %v by %s, want %s", d.Verdict, d.Why(), want)
	}
}

func TestNoPolicyAllows(t *testing.T) {
	if d := new(Policy).Decide(Tool{Server: "s", Name: "t"}); d.Verdict != Allow ||
		d.Why() != "no policy is set" {
		t.Errorf("no policy: %v by %s", d.Verdict, d.Why())
	}
	if d := parse(t, "").Decide(Tool{Server: "s", Name: "t"}); d.Verdict != Allow {
		t.Errorf("an empty file: %v by %s", d.Verdict, d.Why())
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, server, tool string
		want                  bool
	}{
		{"a.b", "a", "b", true},
		{"a.b", "a", "bc", false},
		{"a.b", "a.b", "b", false},
		{"*.*", "", "", true},
		{"*.*", "any.thing", "at all.\n", true},
		{"g*.read", "github", "read", true},
		{"g*.read", "g.read", "x", false},       // the star doesn't reach over the dot
		{"g*", "", "", false},                   // not a pattern: see TestBadFiles
		{"a.*b*c", "a", "xxbxxbc", true},        //
		{"a.*b*c", "a", "xxbxxb", false},        //
		{"a.b.c", "a", "b.c", true},             // the first dot parts the two
		{"a.b.c", "a.b", "c", false},            //
		{`a\.b.c`, "a.b", "c", true},            //
		{`"a.b".c`, "a.b", "c", true},           //
		{`"a.*".c`, "a.x", "c", false},          // in quotes nothing is special
		{`"a.*".c`, "a.*", "c", true},           //
		{"a.?", "a", "é", true},                 // a character, not a byte
		{"a.??", "a", "é", false},               //
		{"a.[bc]", "a", "b", false},             // no sets
		{"a.[bc]", "a", "[bc]", true},           //
		{`a."b"`, "a", `"b"`, true},             // quotes are for servers only
		{"my files!.*", "my files!", "x", true}, // any other character is itself
	} {
		g, err := parseGlob(tc.pattern)
		if got := err == nil && g.match(Tool{Server: tc.server, Name: tc.tool}); got != tc.want {
			t.Errorf("%s matches %q.%q: %v, want %v (%v)", tc.pattern, tc.server, tc.tool, got, tc.want, err)
		}
	}
}

// TestGlobTakesNoTime has a pattern that naive matchers take exponential time for.
func TestGlobTakesNoTime(t *testing.T) {
	g, err := parseGlob("s." + strings.Repeat("*a", 400) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.match(Tool{Server: "s", Name: strings.Repeat("a", 4000)}) {
		t.Error("it ends with no b")
	}
}

func TestBadFiles(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no TOML", "default = ", "policy.toml, line 1"},
		{"later", "default = \"ask\"\n\n[[rule]\n", "policy.toml, line 3"},
		{"twice", "default = \"ask\"\ndefault = \"deny\"", "policy.toml"},
		{"unknown key", "defalut = \"ask\"", `line 1, key defalut: there is no such key (did you mean "default"?)`},
		{"unknown key of a rule", "\n[[rule]]\ntools = [\"a.b\"]\nverdit = \"deny\"",
			`line 4, key rule.verdit: there is no such key (did you mean "verdict"?); there are: who, tools, ` +
				"except, verdict, reason"},
		{"unknown table", "[rules]\nx = 1", `line 1, key rules: there is no such key (did you mean "rule"?)`},
		{"unknown hint", "[hints]\nreadonly = \"allow\"",
			`line 2, key hints.readonly: there is no such key (did you mean "read_only"?)`},
		{"verdict", "default = \"Deny\"", `line 1, key default: "Deny" is no verdict: say allow, ask or deny`},
		{"no list", "[[rule]]\ntools = \"a.b\"\nverdict = \"deny\"",
			`line 2, key rule.tools: it must be a list of strings such as ["github.*"], not the string "a.b"`},
		{"no list of strings", "[[rule]]\nverdict = \"deny\"\ntools = [\"a.b\", 3]",
			`line 3, key rule.tools: it must be a list of strings such as ["github.*"], not a list with the number ` +
				`3 in it`},
		{"a number for a verdict", "\ndefault = 7",
			`line 2, key default: it must be "allow", "ask" or "deny", in quotes, not the number 7`},
		{"a number that is a verdict in here", "[[rule]]\ntools = [\"a.b\"]\nverdict = 1",
			`line 3, key rule.verdict: it must be "allow", "ask" or "deny", in quotes, not the number 1`},
		{"a boolean", "[hints]\nread_only = true",
			`line 2, key hints.read_only: it must be "allow", "ask" or "deny", in quotes, not true`},
		{"a string for a number", "[[limit]]\ntools = [\"a.b\"]\ncalls = \"many\"",
			`line 3, key limit.calls: it must be a whole number such as 100, not the string "many"`},
		{"half a call", "[[limit]]\ntools = [\"a.b\"]\ncalls = 1.5",
			`line 3, key limit.calls: it must be a whole number such as 100, not the number 1.5`},
		{"one pair of brackets", "[rule]\ntools = [\"a.b\"]",
			`line 1, key rule: it must be tables that begin with [[rule]], not a table`},
		{"no tables", "limit = [1]", `line 1, key limit: it must be tables that begin with [[limit]], not a list ` +
			`with the number 1 in it`},
		{"hints that are no table", "hints = \"ask\"",
			`line 1, key hints: it must be a table, not the string "ask"`},
		{"a reason that is a date", "[[rule]]\ntools = [\"a.b\"]\nverdict = \"deny\"\nreason = 2026-01-01",
			`line 4, key rule.reason: it must be a string, in quotes, not a date or a time`},
		{"the first of several", "[[rule]]\ntools = [\"a.b\"]\nverdict = \"deny\"\n[[limit]]\ntools = " +
			"1\n[[rule]]\ntools = 2", `line 5, key limit.tools`},
		{"in braces", "rule = [\n{tools = 3, verdict = \"deny\"}]",
			`line 1, key rule.tools: it must be a list of strings`},
		{"without quotes", "default = deny", `line 1`},
		{"no verdict", "[[rule]]\ntools = [\"a.b\"]", "line 1, key rule.verdict: the rule has no verdict"},
		{"no tools", "[[rule]]\nverdict = \"deny\"",
			`line 1, key rule.tools: it names no tools: say tools = ["SERVER.TOOL"]`},
		{"no dot", "[[rule]]\nverdict = \"deny\"\ntools = [\"a.b\",\n\"github\"]",
			`line 3, key rule.tools: pattern "github" has no dot: say SERVER.TOOL, such as "github.*"`},
		{"no tool", "[[rule]]\nverdict = \"deny\"\ntools = [\"a.\"]", "nothing before or after its dot"},
		{"open quote", "[[rule]]\nverdict = \"deny\"\ntools = ['\"a.b']", "a quote that is not closed"},
		{"backslash", "[[rule]]\nverdict = \"deny\"\ntools = ['a.b\\']", "ends with a backslash"},
		{"second rule", "[[rule]]\ntools=[\"a.b\"]\nverdict=\"deny\"\n" +
			"[[rule]]\ntools=[\"a.b\"]\nexcept=[\"x\"]\nverdict=\"ask\"", "line 6, key rule.except"},
		{"empty limit", "[[limit]]\ntools = [\"a.b\"]", "line 1, key limit: it limits nothing"},
		{"negative", "[[limit]]\ntools = [\"a.b\"]\ncalls = -1",
			"line 3, key limit.calls: a limit must not be negative"},
		{"per", "[[limit]]\ntools = [\"a.b\"]\ncalls = 1\nper = \"day\"",
			`line 4, key limit.per: calls are counted per run, server or tool, not per "day"`},
		{"too long a pattern", "[[rule]]\nverdict = \"deny\"\ntools = [\"a." + strings.Repeat("x", 2000) + "\"]",
			"the pattern is 2002 bytes long"},
		{"too many rules", strings.Repeat("[[rule]]\ntools=[\"a.b\"]\nverdict=\"deny\"\n", maxRules+1),
			"1001 rules"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("policy.toml", []byte(tc.text))
			var bad *FileError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			for _, ours := range []string{"fileText", "ruleText", "limitText", "Verdict", "[]", "int64"} {
				if err != nil && strings.Contains(strings.NewReplacer("[[rule]]", "", "[[limit]]",
					"").Replace(err.Error()), ours) {
					t.Errorf("it speaks of Go's types: %v", err)
				}
			}
		})
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: "it is not a regular file", dir + "/none": "no such file"} {
		var bad *FileError
		if _, err := Read(path); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(bad.Hint(), "policy check") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUnused(t *testing.T) {
	p := parse(t, "[[rule]]\ntools = [\"github.*\", \"gitub.x\"]\nverdict = "+
		"\"deny\"\n[[limit]]\ntools=[\"*.x\", \"a.b\"]\ncalls=1")
	got := strings.Join(p.Unused([]string{"github"}), "\n")
	if want := `pattern "gitub.x" is of no server that is configured (policy.toml, line 2)` + "\n" +
		`pattern "a.b" is of no server that is configured (policy.toml, line 5)`; got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestMissing: a misspelt tool is named by its pattern and its key's line, in exceptions too; what
// may be for several is not.
func TestMissing(t *testing.T) {
	p := parse(t, "[[rule]]\ntools = [\"time.*\", \"time.now\", \"time.nw\", \"none.nw\"]\nexcept = "+
		"[\n\"*.zon\"]\nverdict = \"allow\"\n[[limit]]\ntools=['t\\ime.n?w', 'tim\\e.a\\*']\ncalls=1")
	got := strings.Join(p.Missing([]string{"time", "clock"}, func(servers []string, tool string) string {
		if tool == "now" {
			return ""
		}
		return strings.Join(servers, " and ") + " without " + tool
	}), "\n")
	want := `pattern "time.nw" is of no tool: time without nw (policy.toml, line 2)
pattern "*.zon" is of no tool: time and clock without zon (policy.toml, line 3)
pattern "tim\\e.a\\*" is of no tool: time without a* (policy.toml, line 7)`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExact(t *testing.T) {
	for _, one := range []Tool{{Server: "a", Name: "b"}, {Server: "my.files", Name: "read.x"},
		{Server: `o"d\`, Name: `a*?\`}} {
		if got, err := Exact(Literal(one)); err != nil || got.String() != one.String() || got.Server != one.Server {
			t.Errorf("%v: got %v, %v", one, got, err)
		}
	}
	for _, text := range []string{"a.*", "*.b", "a?.b"} {
		if _, err := Exact(text); !errors.Is(err, ErrPattern) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Exact("a"); err == nil || errors.Is(err, ErrPattern) {
		t.Errorf("without a dot: %v", err)
	}
}

// TestByteOrderMark: a file that an editor begins with one is read, and its lines are counted as in
// the editor.
func TestByteOrderMark(t *testing.T) {
	p, err := Parse("policy.toml", []byte("\ufeff[[rule]]\ntools = [\"a.b\"]\nverdict = \"deny\""))
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(Tool{Server: "a", Name: "b"}); d.Verdict != Deny || !strings.Contains(d.Source, "line 1") {
		t.Errorf("got %+v", d)
	}
}

func TestHinted(t *testing.T) {
	p := parse(t, "[[rule]]\ntools=[\"a.*\"]\nverdict=\"ask\"\n[hints]\nread_only=\"allow\"")
	for server, want := range map[string]bool{"a": false, "b": true} {
		if got := p.Hinted(Tool{Server: server, Name: "x"}); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
	if parse(t, `default="ask"`).Hinted(Tool{}) {
		t.Error("without hints")
	}
}

// TestExceptedUnderAnyName: a further name of a server doesn't get back what an allow was not to
// have.
func TestExceptedUnderAnyName(t *testing.T) {
	for _, text := range []string{
		"default='deny'\n[[rule]]\ntools=['*.*']\nexcept=['github.delete_*']\nverdict='allow'",
		"[[rule]]\ntools=['*.*']\nexcept=['github.delete_*']\nverdict='allow'\n[hints]\ndestructive='deny'",
	} {
		p := parse(t, text)
		for _, x := range []Tool{
			{Server: "github", Name: "delete_repo"},
			{Server: "github", Name: "delete_repo", Also: []string{"gh"}},
			{Server: "gh", Name: "delete_repo", Also: []string{"x", "github"}},
		} {
			if got := p.Decide(x); got.Verdict != Deny {
				t.Errorf("%+v: %v by %s", x, got.Verdict, got.Why())
			}
		}
		if got := p.Decide(Tool{Server: "gh", Name: "get_repo", Also: []string{"github"}}); got.Verdict != Allow {
			t.Errorf("what isn't excepted: %v by %s", got.Verdict, got.Why())
		}
	}
}

// TestOtherNames: a server that has several names is held to what is said of any of them, the
// strictest first; what an ask or a deny excepts under one name it still has under another.
func TestOtherNames(t *testing.T) {
	p := parse(t, `
default = "deny"
[[rule]]
tools = ["files.*"]
except = ["files.write"]
verdict = "allow"
[[rule]]
tools = ["project.delete"]
verdict = "deny"
[[rule]]
tools = ["project.*"]
except = ["project.ask"]
verdict = "ask"
[[limit]]
tools = ["project.*"]
calls = 1
`)
	for tool, want := range map[string]Verdict{"read": Ask, "delete": Deny, "ask": Allow, "write": Ask} {
		for _, x := range []Tool{{Server: "files", Name: tool, Also: []string{"project"}},
			{Server: "project", Name: tool, Also: []string{"files"}}} {
			if got := p.Decide(x); got.Verdict != want {
				t.Errorf("%+v: %+v, want %v", x, got, want)
			}
		}
	}
	run := p.Run()
	if err := run.Count(Tool{Server: "files", Name: "read", Also: []string{"project"}}, 0); err != nil {
		t.Error(err)
	}
	if err := run.Count(Tool{Server: "files", Name: "read", Also: []string{"project"}}, 0); err == nil {
		t.Error("a limit on the other name doesn't hold")
	}
}

// TestKeysInOtherLetters: a key is itself in small letters only. The decoder would take both for
// one, and lose what one of them says.
func TestKeysInOtherLetters(t *testing.T) {
	for _, text := range []string{
		"Default = 'deny'", "Default = 1", "[Hints]\nread_only = 'deny'", "[hints]\nRead_only = 'deny'",
		"[[Rule]]\ntools=['a.b']\nverdict='deny'",
		"[[rule]]\ntools=['*.*']\nexcept=['a.b']\nExcept=['x.y']\nverdict='allow'",
		"[[limit]]\ntools=['*.*']\nCalls=1",
	} {
		if _, err := Parse("policy.toml", []byte(text)); err == nil ||
			!strings.Contains(err.Error(), "small letters") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTightened: of a policy that waits for the user's yes, what is stricter counts: for each
// principal, with its limits and packages, and without its words for people.
func TestTightened(t *testing.T) {
	p := parse(t, `
default = "ask"
[[rule]]
tools = ["shop.add"]
verdict = "deny"
[[rule]]
tools = ["shop.echo"]
verdict = "allow"
[packages]
on_demand = true
min_age = "14d"
`)
	waiting := parse(t, `
[[rule]]
tools = ["shop.*"]
who = ["alice"]
verdict = "deny"
reason = "say yes to all"
[[limit]]
tools = ["shop.echo"]
calls = 1
[packages]
on_demand = true
deny = ["requests"]
min_age = "1h"
index = "https://evil.example/simple"
`)
	tight := p.Tightened(waiting)
	alice, key := tight.For("alice")
	if _, other := tight.For("bob"); key == other {
		t.Error("alice has what bob has")
	}
	for _, tc := range []struct {
		who  *Policy
		tool string
		want Verdict
		says string
	}{
		{tight, "add", Deny, "as the file was before a change that waits for the user's approval"},
		{tight, "echo", Allow, "line 6"},
		{tight, "other", Ask, "as the file was before"},
		{alice, "echo", Deny, "a change that waits for the user's approval (policy.toml)"},
		{alice, "add", Deny, "line 3"},
	} {
		d := tc.who.Decide(Tool{Server: "shop", Name: tc.tool})
		if d.Verdict != tc.want || !strings.Contains(d.Source, tc.says) || d.Reason != "" {
			t.Errorf("%s: %+v", tc.tool, d)
		}
	}
	looser, _ := tight.Tightened(parse(t, `default = "allow"`)).For("alice")
	if d := looser.Decide(Tool{Server: "shop", Name: "echo"}); d.Verdict != Deny {
		t.Errorf("a later change has taken back what was stricter: %+v", d)
	}
	run := alice.Run()
	echo := Tool{Server: "shop", Name: "echo"}
	if first, second := run.Count(echo, 1), run.Count(echo, 1); first != nil || second == nil {
		t.Errorf("a limit of one call: %v, %v", first, second)
	}
	for _, err := range []error{run.Count(echo, 1), tight.Packages().Allows("requests", "2")} {
		if !strings.Contains(err.Error(), "a change that waits") || strings.Contains(err.Error(), "shop.echo") {
			t.Errorf("words of a file that anybody may have written: %v", err)
		}
	}
	all := tight.Packages()
	if !all.OnDemand || all.Index != "" || all.MinAge != p.Packages().MinAge || all.Allows("numpy", "") != nil ||
		all.Allows("requests", "") == nil || all.Denies("requests", "1") == nil {
		t.Errorf("packages: %+v", all)
	}
	if p.Tightened(parse(t, "")).Packages().OnDemand {
		t.Error("packages are made on demand, which the policy that waits doesn't allow")
	}
}
