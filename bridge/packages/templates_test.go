package packages

import (
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
)

// TestNamed: a sandbox has the environment that is named, and none is built for it but data.
func TestNamed(t *testing.T) {
	for _, tc := range []struct{ name, usual, want, err, did string }{
		{name: "base", usual: "data"},
		{name: "", want: "", did: "by name data"},
		{name: "", usual: "small", want: "small", did: "by name small"},
		{name: "small", want: "small", did: "by name small"},
		{name: "data", want: "data", did: "by name data, ready, build data"},
		{name: "text", err: "the environment text is not built", did: "by name text"},
		{name: "other", err: `there is no template "other"; sandbox_template_list lists them`,
			did: "by name other"},
	} {
		t.Run(tc.name+tc.usual, func(t *testing.T) {
			s := newSource(with("small", "pandas 3.1"))
			env, err := chooser(t, s, tc.usual, "on_demand = true").Named(t.Context(), tc.name, func() {},
				func(string) {})
			got := ""
			if env != nil {
				got = env.Name
			}
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("got %q, %v; want %q, %s", got, err, tc.want, tc.err)
			}
			if did := strings.Join(s.did, ", "); did != tc.did {
				t.Errorf("did %s, want %s", did, tc.did)
			}
		})
	}
	if env, err := (*Chooser)(nil).Named(t.Context(), "", nil, nil); env != nil || err != nil {
		t.Errorf("without environments: %v, %v", env, err)
	}
	if _, err := (*Chooser)(nil).Named(t.Context(), "data", nil, nil); err == nil {
		t.Error("without environments there is data")
	}
}

// TestCreate: a template is made where the policy allows it, and never in the place of another.
func TestCreate(t *testing.T) {
	for _, tc := range []struct{ name, rules, template, wanted, err, did string }{
		{"made", "on_demand = true", "web", "flask>=2", "", "by name web, ready, add flask>=2, ready, build web"},
		{"not on demand", "", "web", "flask", "the user hasn't allowed that templates are made for you", ""},
		{"denied", "on_demand = true\ndeny = [\"flask\"]", "web", "flask", "packages.deny in policy.toml has the " +
			"package flask", ""},
		{"not allowed", "on_demand = true\nallow = [\"numpy\"]", "web", "flask",
			"packages.allow in policy.toml doesn't have the package flask", ""},
		{"what it needs is denied", "on_demand = true\ndeny = [\"six\"]", "web", "flask",
			"packages.deny in policy.toml has the package six", "by name web, ready, add flask"},
		{"there already", "on_demand = true", "small", "flask", `there is a template "small" already`,
			"by name small"},
		{"there, not built", "on_demand = true", "text", "flask", `there is a template "text" already`,
			"by name text"},
		{"base", "on_demand = true", "base", "flask", `no template can have the name "base"`, ""},
		{"data", "on_demand = true", "data", "flask", `no template can have the name "data"`, ""},
		{"a path", "on_demand = true", "../x", "flask", `no template can have the name "../x"`, ""},
		{"no package", "on_demand = true", "web", "--index-url=x", "--index-url", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSource(with("small", "pandas 3.1"))
			made, err := chooser(t, s, "", tc.rules).Create(t.Context(), tc.template, []string{tc.wanted}, func() {},
				func(string) {})
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			if err == nil && (made.Name != tc.template || strings.Join(made.Packages, " ") != "flask==1.5 six==1.0") {
				t.Errorf("made %+v", made)
			}
			if did := strings.Join(s.did, ", "); did != tc.did {
				t.Errorf("did %s, want %s", did, tc.did)
			}
		})
	}
	c := chooser(t, newSource(), "", "")
	changed := make(chan struct{})
	go func() { // the race detector looks
		defer close(changed)
		c.SetPolicy(policy.Packages{})
	}()
	if _, err := c.Create(t.Context(), "web", []string{"flask"}, func() {}, func(string) {}); err == nil {
		t.Error("made while the policy changes from one that doesn't allow it to another")
	}
	<-changed
	p, err := policy.Parse("policy.toml",
		[]byte("[packages]\nindex = \"https://x.example/simple\"\nmin_age = \"3d\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSource()
	chooser(t, s, "", "").SetPolicy(p.Packages())
	if did := strings.Join(s.did, ", "); did != "follow https://x.example/simple 72h0m0s" {
		t.Errorf("the source was told %q of a changed policy", did)
	}
	if _, err := (*Chooser)(nil).Create(t.Context(), "x", nil, nil, nil); err == nil {
		t.Error("one is made without environments")
	}
	list, err := chooser(t, newSource(with("small", "pandas 3.1")), "", "").Built(t.Context(), func(string) {})
	if err != nil || len(list) != 1 || list[0].Packages[0] != "pandas==3.1" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := (*Chooser)(nil).Built(t.Context(), nil); list != nil || err != nil {
		t.Errorf("without environments: %v, %v", list, err)
	}
}
