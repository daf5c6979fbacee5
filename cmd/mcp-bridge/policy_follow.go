package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// policyEvery is the time between two looks at the policy's file.
const policyEvery = time.Second

// followPolicy has the bridge go by what the file of the policy holds, as it changes, until ctx
// ends. What can't be used, or code may have written, is logged once; the policy of before holds
// on, until the file is right or the user has approved it. What is stricter in a file that code may
// have written counts at once.
func (p *parts) followPolicy(ctx context.Context) {
	path := p.cfg.Policy
	if path == "" {
		return
	}
	path = filepath.Clean(path)
	tick := time.NewTicker(policyEvery)
	defer tick.Stop()
	seen, settled, said := "", false, ""
	if p.broken != nil { // that was said
		said = p.broken.Error()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := fileState(path)
		if settled && now == seen {
			continue
		}
		seen = now
		found, err := policy.Read(path)
		if err == nil && !p.approvals.Trusts(path, found.Text()) {
			p.approvals.Reach() // for the command that approves it
			untrusted := approvals.Untrusted(path)
			err = untrusted
			if p.takePolicy(found, false) {
				p.log.Warn("the policy's file has changed while code was run, so code may have written it: what it "+
					"denies, asks about and limits counts, and what it allows waits for your yes",
					"file", path, "next", untrusted.Hint())
				said = err.Error()
			}
		}
		if settled = err == nil; !settled {
			if said != err.Error() {
				p.log.Error("the policy's file has changed and can't be used; what it held before counts",
					text.Next(err)...)
			}
			said = err.Error()
			continue
		}
		said = ""
		p.takePolicy(found, true)
	}
}

// maxWaiting is how many policies that aren't trusted count, the first ones: code that writes more
// doesn't drive out what the user has written.
const maxWaiting = 8

// takePolicy has the bridge go by a policy, or by what is stricter in one that isn't trusted, until
// the user approves another. It reports whether it didn't do so already.
func (p *parts) takePolicy(found *policy.Policy, trusted bool) (taken bool) {
	p.changes.Lock()
	defer p.changes.Unlock()
	same := func(p *policy.Policy) bool { return slices.Equal(p.Text(), found.Text()) }
	switch {
	case trusted && p.broken == nil && same(p.policy):
		if len(p.waiting) > 0 { // code may have put it back
			p.log.Warn("the policy's file is as it was before a change that you have not approved: what was stricter "+
				"in that counts until the bridge ends", "file", found.Path())
		}
		return false
	case !trusted && (p.broken != nil || slices.ContainsFunc(p.waiting, same) || len(p.waiting) == maxWaiting):
		return false
	case !trusted:
		p.waiting = append(p.waiting, found)
		tight := p.policy
		for _, w := range p.waiting {
			tight = tight.Tightened(w)
		}
		p.bridge.UpdatePolicy(tight)
		return true
	}
	p.policy, p.waiting, p.broken = found, nil, nil
	p.bridge.UpdatePolicy(found)
	rules, limits := found.Size()
	p.log.Info("the policy has changed", "file", found.Path(), "rules", rules, "limits", limits)
	p.warnOfPolicy()
	return true
}

// fileState returns what is another text once a file has changed; empty if it isn't there.
func fileState(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
}
