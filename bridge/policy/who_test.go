package policy

import (
	"strings"
	"testing"
)

const shared = `
default = "deny"

[[rule]]
tools = ["files.*"]
verdict = "allow"

[[rule]]
who = ["alice", "team-*"]
tools = ["github.*"]
verdict = "allow"

[[rule]]
who = ["team-?"]
tools = ["github.delete"]
verdict = "ask"

[[rule]]
who = ["local", 'jwt:a\*b']
tools = ["*.*"]
verdict = "allow"

[[limit]]
who = ["team-*"]
tools = ["github.*"]
calls = 1
`

func TestWho(t *testing.T) {
	whole, err := Parse("policy.toml", []byte(shared))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who    string
		github Verdict // of github.list
		delete Verdict // of github.delete
		calls  int     // of github.list
	}{
		{"alice", Allow, Allow, 9},
		{"alice2", Deny, Deny, 9},
		{"Alice", Deny, Deny, 9},
		{"team-", Allow, Allow, 1},
		{"team-1", Allow, Ask, 1},
		{"team-12", Allow, Allow, 1},
		{"jwt:team-1", Deny, Deny, 9},
		{"jwt:alice", Deny, Deny, 9},
		{"jwt:a*b", Allow, Allow, 9},
		{"jwt:axb", Deny, Deny, 9},
		{"", Deny, Deny, 9},
		{Local, Allow, Allow, 9},
	} {
		other, _ := whole.For("bob")
		p, _ := other.For(c.who) // what it was asked for before doesn't count
		if d := p.Decide(Tool{Server: "github", Name: "list"}); d.Verdict != c.github {
			t.Errorf("%s: github.list is %v", c.who, d)
		}
		if d := p.Decide(Tool{Server: "github", Name: "delete"}); d.Verdict != c.delete {
			t.Errorf("%s: github.delete is %v", c.who, d)
		}
		if d := p.Decide(Tool{Server: "files", Name: "read"}); d.Verdict != Allow {
			t.Errorf("%s: files.read is %v", c.who, d)
		}
		run, calls := p.Run(), 0
		for calls < 9 && run.Count(Tool{Server: "github", Name: "list"}, 0) == nil {
			calls++
		}
		if calls != c.calls {
			t.Errorf("%s: %d calls, want %d", c.who, calls, c.calls)
		}
	}
	// As it is read, it is the policy of the machine's own user.
	if d := whole.Decide(Tool{Server: "github", Name: "delete"}); d.Verdict != Allow {
		t.Errorf("without For: %v", d)
	}
	if rules, limits := whole.Size(); rules != 4 || limits != 1 {
		t.Errorf("%d rules, %d limits", rules, limits)
	}
	if none := whole.Unused([]string{"files", "github"}); len(none) != 0 {
		t.Errorf("unused: %q", none)
	}
}

func TestKeys(t *testing.T) {
	whole, err := Parse("policy.toml", []byte(shared))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, who := range []string{"bob", "carol", "alice", "team-1", "team-2", "team-12"} {
		_, key := whole.For(who)
		keys[key] = append(keys[key], who)
	}
	if len(keys) != 4 {
		t.Errorf("got %v", keys)
	}
	none := new(Policy)
	if p, key := none.For("alice"); p != none || key != "" {
		t.Errorf("without a file: %v, %q", p, key)
	}
}

func TestBadWho(t *testing.T) {
	for text, want := range map[string]string{
		`who = []`:             "it names no principal",
		`who = "alice"`:        "it must be a list of strings",
		`who = [1]`:            "it must be a list of strings",
		`who = [""]`:           "name is not empty",
		`who = ['alice\']`:     "ends with a backslash",
		`whom = ["alice"]`:     `(did you mean "who"?)`,
		"who = [\"a\u0000\"]x": "line 5",
	} {
		file := "default = \"deny\"\n[[rule]]\ntools = [\"*.*\"]\nverdict = \"allow\"\n" + text
		if p, err := Parse("policy.toml", []byte(file)); err == nil || p != nil ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 5") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
