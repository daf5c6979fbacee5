package policy

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// Packages says for which packages environments may be made on demand. The zero value allows none.
type Packages struct {
	OnDemand bool
	Index    string        // from which packages are taken; empty for the one that is configured
	MinAge   time.Duration // that a release must have; zero for the usual one

	allow, deny []wheels.Requirement // no allow means all
	path        string
	waiting     []Packages // see Policy.Tightened
}

// Packages returns what the policy says of packages.
func (p *Policy) Packages() Packages {
	if p == nil {
		return Packages{}
	}
	return p.packages
}

// Allows returns why an environment with a package may not be made on demand, or nil. version is
// empty before it is chosen: then rules with versions allow the package.
func (p Packages) Allows(name, version string) error {
	for _, w := range p.waiting {
		if w.Allows(name, version) != nil {
			return p.waits(name, version)
		}
	}
	if err := p.Denies(name, version); err != nil || len(p.allow) == 0 {
		return err
	}
	names := make([]string, 0, len(p.allow))
	for _, r := range p.allow {
		if matches(r, name, version, true) {
			return nil
		}
		names = append(names, r.Name)
	}
	return fmt.Errorf("packages.allow in %s doesn't have the package %s%s", p.path,
		strings.TrimSpace(name+" "+version), text.DidYouMean(name, names))
}

// Denies returns an error where packages.deny has a package; see Allows.
func (p Packages) Denies(name, version string) error {
	for _, w := range p.waiting {
		if w.Denies(name, version) != nil {
			return p.waits(name, version)
		}
	}
	for _, r := range p.deny {
		if matches(r, name, version, false) {
			return fmt.Errorf("packages.deny in %s has the package %s", p.path, strings.TrimSpace(r.Text))
		}
	}
	return nil
}

// waits returns the error of a package that isn't allowed by what waits for the user's yes.
func (p Packages) waits(name, version string) error {
	return fmt.Errorf("%s to %s doesn't allow the package %s", unapproved, p.path,
		strings.TrimSpace(name+" "+version))
}

var bareName = regexp.MustCompile(`^\s*[A-Za-z0-9._-]+\s*$`)

// matches reports whether r means a package. It returns unsure if that depends on a version that
// isn't known.
func matches(r wheels.Requirement, name, version string, unsure bool) bool {
	switch {
	case r.Name != name || bareName.MatchString(r.Text):
		return r.Name == name
	case version == "":
		return unsure
	}
	b := wheels.Block{Dependencies: []wheels.Requirement{r}}
	missing, err := b.Missing(anyPython, []wheels.Distribution{{Name: name, Version: version}})
	return err == nil && len(missing) == 0
}

// anyPython evaluates markers, which make little sense in a policy.
var anyPython = wheels.Interpreter{Version: "3.13.0", Machine: "x86_64", Glibc: "2.36"}

var agePattern = regexp.MustCompile(`^(\d{1,4})([dh])$`)

// packages reads the table [packages].
func (t *table) packages() Packages {
	p := Packages{path: t.reader.path}
	p.OnDemand, _ = value[bool](t, "on_demand", "true or false")
	p.allow, p.deny = t.requirements("allow"), t.requirements("deny")
	if index, ok := value[string](t, "index", "a URL, in quotes"); ok {
		u, err := url.Parse(index)
		if err != nil || u.Host == "" || !slices.Contains([]string{"https", "http"}, u.Scheme) {
			t.fail("index", "it is no URL such as https://HOST/simple")
		}
		p.Index = index
	}
	if age, ok := value[string](t, "min_age", `an age such as "7d", in quotes`); ok {
		m := agePattern.FindStringSubmatch(age)
		if m == nil {
			t.fail("min_age", `%q is no age such as "7d" or "12h"`, age)
			return p
		}
		n, _ := strconv.Atoi(m[1]) // digits, by the pattern
		p.MinAge = time.Duration(n) * map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour}[m[2]]
	}
	return p
}

func (t *table) requirements(key string) (out []wheels.Requirement) {
	for _, text := range list[string](t, key, `a list of strings such as ["numpy", "pandas>=2"]`) {
		r, err := wheels.ParseRequirement(text)
		if t.reader.patterns++; t.reader.patterns > maxPatterns {
			t.fail(key, "there are more than %d patterns in the file", maxPatterns)
			return nil
		}
		if err != nil {
			t.fail(key, "%v", err)
		}
		out = append(out, r)
	}
	return out
}
