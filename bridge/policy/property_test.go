package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// random is a policy and tools, of few names so that much of it meets.
type random struct{ *rand.Rand }

func (r random) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r random) name() string { return r.pick("a", "ab", "a.b", "b", "*", "b.a", `"`, "é") }

func (r random) tool() Tool {
	hints := r.pick("", `{}`, `{"readOnlyHint":true}`, `{"destructiveHint":false}`,
		`{"openWorldHint":false,"idempotentHint":true}`, `[`)
	return Tool{Server: r.name(), Name: r.name(), Annotations: json.RawMessage(hints)}
}

func (r random) pattern() string {
	if r.IntN(2) == 0 {
		return Literal(r.tool())
	}
	return r.pick("*", "a*", "a", `a\.b`, `"a.b"`, "?") + "." + r.pick("*", "a*", "*b", "a.b", "?")
}

func (r random) verdict() string { return r.pick("allow", "ask", "deny") }

func (r random) rules() []string {
	var rules []string
	for range r.IntN(6) {
		rules = append(rules, fmt.Sprintf("[[rule]]\ntools=['%s','%s']\nexcept=['%s']\nverdict=%q\n", r.pattern(),
			r.pattern(), r.pattern(), r.verdict()))
	}
	return rules
}

func (r random) hints() []string {
	var hints []string
	for _, k := range hintKeys {
		if r.IntN(2) == 0 {
			hints = append(hints, fmt.Sprintf("%s=%q\n", k.key, r.verdict()))
		}
	}
	return hints
}

func (r random) shuffled(s []string) string {
	s = append([]string(nil), s...)
	r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return strings.Join(s, "")
}

// TestProperties holds over many random policies what docs/policy.md promises.
func TestProperties(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	seen := map[Verdict]int{}
	for range 3000 {
		rules, hints, base := r.rules(), r.hints(), fmt.Sprintf("default=%q\n", r.verdict())
		p := parse(t, base+strings.Join(rules, "")+"[hints]\n"+strings.Join(hints, ""))
		other := parse(t, base+"[hints]\n"+r.shuffled(hints)+r.shuffled(rules))
		without := parse(t, base+strings.Join(rules, ""))
		more := parse(t, base+strings.Join(rules, "")+fmt.Sprintf("[[rule]]\ntools=['%s']\nverdict=%q\n",
			r.pattern(), r.verdict()))
		tool := r.tool()
		waiting := parse(t, fmt.Sprintf("default=%q\n", r.verdict())+strings.Join(r.rules(), "")+"[hints]\n"+
			strings.Join(r.hints(), ""))
		tight := p.Tightened(waiting)
		if v := tight.Decide(tool).Verdict; v != max(p.Decide(tool).Verdict, waiting.Decide(tool).Verdict) {
			t.Fatalf("%v: %v by two policies", tool, v)
		}
		bare := tool
		if bare.Annotations = nil; tight.Decide(bare).Verdict != tight.Decide(tool).Verdict && !tight.Hinted(tool) {
			t.Fatalf("%v: hints count, unsaid", tool)
		}
		got := p.Decide(tool)
		seen[got.Verdict]++
		if o := other.Decide(tool); o.Verdict != got.Verdict {
			t.Fatalf("%v: %v by %s, in another order %v by %s", tool, got.Verdict, got.Why(), o.Verdict, o.Why())
		}
		byRule := strings.HasPrefix(without.Decide(tool).Source, "rule ")
		if byRule && got.Verdict != without.Decide(tool).Verdict {
			t.Fatalf("%v: hints have changed the verdict of a rule: %s", tool, got.Why())
		}
		if byRule && more.Decide(tool).Verdict < got.Verdict {
			t.Fatalf("%v: a further rule has loosened %s", tool, got.Why())
		}
		named := tool
		named.Also = []string{r.name()}
		if allowed := parse(t, strings.Join(rules, "")).allows(Tool{Server: named.Also[0],
			Name: tool.Name}); !allowed && byRule && p.Decide(named).Verdict < got.Verdict {
			t.Fatalf("%v: a further name of its server, %q, which nothing allows, has loosened %s", tool,
				named.Also[0], got.Why())
		}
		tool.Annotations = json.RawMessage(r.pick(`{"readOnlyHint":true}`, "null", "1"))
		if d := without.Decide(tool); d.Verdict == Deny && p.Decide(tool).Verdict != Deny && byRule {
			t.Fatalf("%v: a hint has overridden a deny", tool)
		}
	}
	for v := Allow; v <= Deny; v++ {
		if seen[v] < 100 {
			t.Errorf("only %d verdicts were %v: the test has lost its aim", seen[v], v)
		}
	}
}

// allows says whether a rule allows the tool.
func (p *Policy) allows(t Tool) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		_, ok := r.match(t)
		return ok && r.verdict == Allow
	})
}

// TestLiteral: a literal pattern matches its own tool and none that differs, whatever the names
// are.
func TestLiteral(t *testing.T) {
	r := random{rand.New(rand.NewPCG(3, 4))}
	for range 5000 {
		a, b := r.tool(), r.tool()
		g, err := parseGlob(Literal(a))
		if err != nil {
			t.Fatal(err)
		}
		same := a.Server == b.Server && a.Name == b.Name
		if !g.match(a) || g.match(b) != same {
			t.Fatalf("%s: matches %q.%q: %v; %q.%q: %v", g.text, a.Server, a.Name, g.match(a), b.Server, b.Name,
				g.match(b))
		}
	}
}

// FuzzParse: no text makes it panic, and what is accepted gives every tool one of the three
// verdicts, the same each time.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{example, "", "default=\"deny\"", "[[limit]]\ntools=[\"*.*\"]\ncalls=3",
		"rule = [{tools=['a.b'], verdict='ask'}]",
		"[hints]\nread_only='allow'", "[[rule]]\ntools=['\"a.b\".*']\nverdict='deny'", "[rule]\n", "\xff",
		"rule.0.tools = 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		tool := Tool{Server: "a.b", Name: "c", Annotations: json.RawMessage(`{"readOnlyHint":true}`)}
		d := p.Decide(tool)
		if d.Verdict < Allow || d.Verdict > Deny || d.Source == "" || p.Decide(tool) != d {
			t.Errorf("%v by %q", d.Verdict, d.Source)
		}
		if err := p.Run().Count(tool, 1); err != nil && len(p.limits) == 0 {
			t.Error(err)
		}
	})
}
