package approvals

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
)

// Trusts reports whether code can't have written what a policy file holds: the file held the same
// when it was trusted last, or it wasn't changed while code was run. From then on it is trusted.
func (a *Approvals) Trusts(path string, text []byte) bool {
	sum := sumOf(text)
	a.mu.Lock()
	known, served := a.state.Policies[path] == sum, a.served()
	a.mu.Unlock()
	if known {
		return true
	}
	if served.holds(changes([]string{path})) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trust(map[string]string{path: sum})
	a.keep()
	return true
}

// Trust takes the user's yes to what a policy file holds, for all bridges with this record that are
// started later. It returns how many of those that run were told.
func (a *Approvals) Trust(path string, text []byte) (told int, err error) {
	return a.change(message{Policies: map[string]string{path: sumOf(text)}})
}

// trust notes what policy files held when they were trusted. The map is a new one, since copies of
// the state share it. The caller has a.mu.
func (a *Approvals) trust(policies map[string]string) {
	all := maps.Clone(a.state.Policies)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, policies)
	a.state.Policies, a.dirty = all, true
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
