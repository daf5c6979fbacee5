package sandboxes

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// model is a Registry without timers or guests: what is due is found out by looking.
type model struct {
	most   int
	boxes  []*modelBox          // in the order in which they were begun, the ended ones too
	shared map[string]*modelBox // by session, the ended ones too
}

type modelBox struct {
	owner, id     string
	settings      Settings
	created, used time.Time
	paused        bool
	since         time.Time
	active        time.Duration
	making        *modelCall // the first call, while the guest is made
	replaces      bool
	running       *modelCall
	line          []*modelCall
	calls         int
	guest         *fakeGuest
	ended         bool
	reason        string // empty also if it has ended as if it had never been
}

// busy reports whether a call is under way.
func (b *modelBox) busy() bool { return b.making != nil || b.running != nil }

// end ends it, if it hasn't ended.
func (b *modelBox) end(reason string) {
	if !b.ended {
		b.ended, b.reason = true, reason
	}
}

// leave is the end of a call at this moment.
func (b *modelBox) leave() {
	b.making, b.running, b.used = nil, nil, time.Now()
	b.due()
}

func (b *modelBox) resume() {
	if b.paused {
		b.paused, b.since, b.used = false, time.Now(), time.Now()
	}
}

// due ends it if that was due until now.
func (b *modelBox) due() {
	type end struct {
		at  time.Time
		why string
	}
	ends := []end{{b.created.Add(8 * time.Hour), "it was 8 h old, which is the most"}}
	if b.paused && b.settings.AutoDelete > 0 {
		ends = append(ends, end{b.since.Add(b.settings.AutoDelete), "it was paused for " +
			age(b.settings.AutoDelete) + ", its auto_delete_seconds"})
	}
	if !b.paused {
		if b.settings.Timeout > 0 {
			ends = append(ends, end{b.since.Add(b.settings.Timeout - b.active), "it was active for " +
				age(b.settings.Timeout) + ", its timeout_seconds"})
		}
		ends = append(ends, end{b.used.Add(30 * time.Minute), "it was not used for 30 min"})
	}
	first := slices.MinFunc(ends, func(x, y end) int { return x.at.Compare(y.at) })
	if !b.busy() && !first.at.After(time.Now()) {
		b.end(first.why)
	}
}

// live returns those that haven't ended, the longest unused first.
func (m *model) live(owner string) (all []*modelBox) {
	for _, b := range m.boxes {
		if !b.ended && (owner == "" || b.owner == owner) {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b *modelBox) int { return a.used.Compare(b.used) })
	return all
}

// list is what the registry's list must say.
func (m *model) list(owner string) string {
	var all []string
	for _, b := range slices.Backward(m.live(owner)) {
		if b.making == nil {
			all = append(all, fmt.Sprintf("%s %d %v %v", b.id, b.calls, b.paused, b.running != nil))
		}
	}
	return strings.Join(all, "\n")
}

// full returns why an owner can't have one more beside those that don't replace others.
func (m *model) full(owner string) string {
	own, all := 0, 0
	for _, b := range m.live("") {
		if !b.replaces {
			all++
			if b.owner == owner {
				own++
			}
		}
	}
	switch {
	case own >= PerOwner:
		return "another one was begun, and no more than 8 sandboxes of a caller are kept"
	case all >= m.most:
		return "another one was begun, and no more than 12 sandboxes in all are kept"
	}
	return ""
}

// begin returns nil if there is no room.
func (m *model) begin(owner string, s Settings) *modelBox {
	replaces, idle := m.full(owner) != "", 0
	for _, b := range m.live(owner) {
		switch {
		case b.replaces:
			idle--
		case !b.busy():
			idle++
		}
	}
	if replaces && idle <= 0 && m.displaced(len(m.live(owner))) == nil {
		return nil
	}
	now := time.Now()
	b := &modelBox{owner: owner, settings: s, created: now, used: now, since: now, replaces: replaces,
		making: &modelCall{}}
	m.boxes = append(m.boxes, b)
	return b
}

// made is the moment in which there is a guest for b. It reports whether that has a place.
func (m *model) made(b *modelBox) bool {
	if !b.replaces || b.ended {
		return !b.ended
	}
	why, own := m.full(b.owner), m.live(b.owner)
	if why != "" {
		at := slices.IndexFunc(own, func(b *modelBox) bool { return !b.busy() && !b.paused })
		if at < 0 {
			at = slices.IndexFunc(own, func(b *modelBox) bool { return !b.busy() })
		}
		settled := slices.DeleteFunc(slices.Clone(own), func(b *modelBox) bool { return b.replaces })
		switch other := m.displaced(len(settled)); {
		case at >= 0:
			own[at].end(why)
		case other == nil:
			return false
		default:
			other.end("another caller, who has fewer, has begun one, and no more than 12 sandboxes in all are kept")
		}
	}
	b.replaces = false
	return true
}

// displaced returns the one that ends for an owner that has own, all in use, where all callers
// together have as many as they may have.
func (m *model) displaced(own int) *modelBox {
	settled := slices.DeleteFunc(m.live(""), func(b *modelBox) bool { return b.replaces })
	for has := len(settled); has >= own+2; has-- {
		for _, b := range settled {
			all := 0
			for _, other := range settled {
				if other.owner == b.owner {
					all++
				}
			}
			if all == has && !b.busy() {
				return b
			}
		}
	}
	return nil
}
