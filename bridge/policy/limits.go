package policy

import (
	"fmt"
	"sync"
)

// per says what calls are counted together for.
type per int

const (
	perRun per = iota
	perServer
	perTool
)

// limit bounds the calls of one run.
type limit struct {
	who   principals
	tools selection
	per   per
	calls int64 // -1 for no limit
	bytes int64 // of the arguments of one call, as JSON; -1 for no limit
	line  int

	waiting bool // for the user's yes: see Tightened
}

// counted is what calls of a limit are counted by.
type counted struct {
	limit        int
	server, tool string
}

// Run counts the calls of one run. It is safe for concurrent use. It keeps what it has counted by
// the tools that were called, of which a run can't invent any: its caller counts only tools that
// are there.
type Run struct {
	policy *Policy

	mu    sync.Mutex
	calls map[counted]int64
}

// Run begins to count the calls of a run.
func (p *Policy) Run() *Run { return &Run{policy: p, calls: map[counted]int64{}} }

// Count counts one call, with arguments of that many bytes, unless it is beyond a limit: then it is
// not counted at all, and the error names the limit.
func (r *Run) Count(t Tool, argumentBytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []counted
	for i, l := range r.policy.limits {
		if _, ok := l.tools.match(t); !ok {
			continue
		}
		source := r.policy.at("limit of "+unapproved, l.line)
		if !l.waiting {
			source = r.policy.at(fmt.Sprintf("limit on %q", l.tools.String()), l.line)
		}
		if l.bytes >= 0 && int64(argumentBytes) > l.bytes {
			return fmt.Errorf("the arguments are %d bytes of JSON, and %d are allowed, by the %s", argumentBytes,
				l.bytes, source)
		}
		if l.calls < 0 {
			continue
		}
		key := counted{limit: i}
		if l.per >= perServer {
			key.server = t.Server
		}
		if l.per == perTool {
			key.tool = t.Name
		}
		if r.calls[key] >= l.calls {
			return fmt.Errorf("this run has made all of the %d calls that it may make, by the %s", l.calls, source)
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		r.calls[key]++
	}
	return nil
}
