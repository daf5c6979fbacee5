package policy

import (
	"errors"
	"fmt"
	"strings"
)

// Local is the principal of who may use the bridge's machine: over stdio there is no other.
const Local = "local"

// tables are the rules and limits of a file, for all principals.
type tables struct {
	rules  []rule
	limits []limit
}

// principals are whom a table is about: those that one of the patterns fits, or all without one.
type principals []half

func (w principals) has(principal string) bool {
	for _, pattern := range w {
		if pattern.match(principal) {
			return true
		}
	}
	return len(w) == 0
}

// For returns the policy that holds for a principal, and a key that is the same for all who have
// the same rules and limits.
func (p *Policy) For(principal string) (theirs *Policy, key string) {
	if p.file == nil {
		return p, ""
	}
	out, has := *p, strings.Builder{}
	out.rules, out.limits = nil, nil
	note := func(is bool) bool {
		has.WriteByte(map[bool]byte{true: '1', false: '0'}[is])
		return is
	}
	for _, r := range p.file.rules {
		if note(r.who.has(principal)) {
			out.rules = append(out.rules, r)
		}
	}
	for _, l := range p.file.limits {
		if note(l.who.has(principal)) {
			out.limits = append(out.limits, l)
		}
	}
	out.waiting, out.packages.waiting = nil, nil
	theirs = &out
	for _, w := range p.waiting {
		w, key := w.For(principal)
		theirs = theirs.Tightened(w)
		has.WriteString("/" + key)
	}
	return theirs, has.String()
}

// parsePrincipal reads a pattern of names.
func parsePrincipal(text string) (half, error) {
	if text == "" {
		return half{}, errors.New("a principal's name is not empty; leave the key out for all")
	}
	if err := checkPattern(text); err != nil {
		return half{}, err
	}
	h, _, _, err := readHalf(text, false)
	if err != nil {
		return half{}, fmt.Errorf("pattern %q %w", text, err)
	}
	return h, nil
}
