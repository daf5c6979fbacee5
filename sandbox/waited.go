package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// maxWaited is how many calls the message of a run that was out of time names.
const maxWaited = 3

// longest returns the calls that have been under way for longest, at most limit of them, and how
// many there are in all.
func (u *underWay) longest(limit int) (calls []pendingCall, all int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	calls = slices.SortedFunc(maps.Values(u.calls), func(a, b pendingCall) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.provider, b.provider), cmp.Compare(a.tool, b.tool))
	})
	return calls[:min(limit, len(calls))], len(calls)
}

// waitedFor returns, to stand behind "its time limit", which calls had no result when the time was
// up, longest first.
func (u *underWay) waitedFor(providers []entrypoint.Provider) string {
	calls, all := u.longest(maxWaited)
	now := time.Now()
	if len(calls) == 0 {
		return ""
	}
	var named []string
	for _, c := range calls {
		named = append(named, fmt.Sprintf("%s (%.1fs)", c.name(providers), now.Sub(c.since).Seconds()))
	}
	if more := all - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return ", while it waited for " + strings.Join(named, ", ")
}

// name returns how the code writes the tool. What no provider and no tool can be called is not
// repeated: the code may have said anything.
func (c pendingCall) name(providers []entrypoint.Provider) string {
	object := ""
	if c.provider == entrypoint.RuntimeProvider {
		object = c.provider
	}
	for _, p := range providers {
		if p.Name == c.provider {
			object = "mcp_" + p.Alias
		}
	}
	switch {
	case object == "":
		return "a server that isn't there"
	case !isAlias(c.tool):
		return "a tool of " + object
	}
	return object + "." + c.tool
}

// maxAlias is bytes of a tool's name that is shown.
const maxAlias = 128

// isAlias reports whether s has the form of a name that entrypoint.Aliases gives.
func isAlias(s string) bool {
	return s != "" && len(s) <= maxAlias && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
