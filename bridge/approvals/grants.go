package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

const (
	maxGrants = 1 << 20         // bytes of them as JSON
	lockWait  = 5 * time.Second // for another command that changes the record
)

// Grants returns what the user has allowed for good, by server, tool and age.
func (a *Approvals) Grants() []policy.Grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(a.state.Grants), func(x, y policy.Grant) int {
		return cmp.Or(cmp.Compare(x.Server, y.Server), cmp.Compare(x.Tool, y.Tool), x.Since.Compare(y.Since))
	})
}

// Granted returns the grant of a tool for this definition of its server. A grant that doesn't say
// what the server said of the tool holds for what want says of it, and from then on for that only.
// Whether a grant still holds is for Seen.Changed to say.
func (a *Approvals) Granted(want policy.Grant) (policy.Grant, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.state.Grants, want.Same)
	if i < 0 {
		return policy.Grant{}, false
	}
	kept := a.state.Grants[i]
	if kept.Seen == (policy.Seen{}) && want.Seen != kept.Seen {
		kept.Seen = want.Seen
		a.state.allow(kept)
		a.keep()
	}
	return kept, true
}

// Grant notes that the user allows a tool for good, as of now where g has no time, in place of an
// earlier grant of the same, and tells other bridges. With an error the grant may count in this
// process only.
func (a *Approvals) Grant(g policy.Grant) error {
	if g.Since.IsZero() {
		g.Since = time.Now().UTC().Truncate(time.Second)
	}
	if text, err := json.Marshal(append(a.Grants(), g)); err != nil || len(text) > maxGrants {
		full := fmt.Errorf("more than %d bytes of grants: forget some, with mcp-bridge policy forget", maxGrants)
		return errors.Join(err, full)
	}
	_, err := a.change(message{Grant: []policy.Grant{g}})
	return err
}

// Forget forgets the grants that fit, here and in all other bridges with this record. It returns
// how many there were. With an error they may count on in another bridge.
func (a *Approvals) Forget(fits func(policy.Grant) bool) (forgot int, err error) {
	gone := slices.DeleteFunc(a.Grants(), func(g policy.Grant) bool { return !fits(g) })
	if len(gone) == 0 {
		return 0, nil
	}
	_, err = a.change(message{Forget: gone})
	return len(gone), err
}

// change does what m says in this process and all others, and has the record written at once.
func (a *Approvals) change(m message) (told int, err error) {
	heard := a.peers.send(m)
	a.mu.Lock()
	alone := !a.serves && len(heard.replies) == 0 && !heard.silent
	if !alone {
		a.obey(m)
	}
	a.mu.Unlock()
	if alone {
		err = a.changeRecord(m)
	}
	if heard.silent {
		err = errors.Join(err, errSilent)
	}
	return len(heard.replies), err
}

// changeRecord does what m says in the record, for a command that is alone with it.
func (a *Approvals) changeRecord(m message) error {
	if a.cfg.Record == "" {
		return nil
	}
	if err := a.Writable(); err != nil { // it also makes the directory
		return err
	}
	release, err := filelock.Within(context.Background(), lockWait, a.cfg.Record+".lock")
	if err != nil {
		return err
	}
	defer release()
	a.catchUp() // another command may have changed it
	a.mu.Lock()
	a.obey(m)
	a.mu.Unlock()
	return a.settle(m)
}

// obey does what a message says. A process that others can reach writes the record at once, or as
// it ends: what is forgotten must not come back after a power cut. The caller has a.mu.
func (a *Approvals) obey(m message) {
	if m.Approve != "" {
		a.yes[m.Approve] = true
		delete(a.now, m.Approve) // its earlier filters too
		a.state.know(m.Approve)
	}
	for _, g := range m.Grant {
		a.state.allow(g)
	}
	for _, g := range m.Forget {
		a.state.disallow(g)
	}
	if m.Policies != nil {
		a.state.trust(m.Policies)
	}
	a.state.learn(state{Known: m.Known, Deciding: m.Deciding})
	a.serving(m.Since)
	if a.state.dirty && a.serves && !a.blind && !a.over {
		if err := a.write(record{state: a.state, Serving: a.since}); err != nil {
			a.cfg.Log.Warn("what you have approved, allowed or forgotten can't be kept", "err", err)
		}
	}
	a.keep()
}

// grantsOf returns what other bridges know of, more than once where several do.
func grantsOf(replies []reply) (all []policy.Grant) {
	for _, r := range replies {
		all = append(all, r.Grants...)
	}
	return all
}
