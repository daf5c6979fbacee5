package sandboxes

import (
	"slices"
	"time"
)

const (
	maxTombstones = 1000 // ended sandboxes whose reason is known
	tombstoneAge  = 24 * time.Hour
)

// tombstone is what is known of a sandbox that has ended.
type tombstone struct {
	owner, reason string
	at            time.Time
}

// tombstones are of the sandboxes that have ended last. They are guarded by Registry.mu.
type tombstones struct {
	of  map[string]tombstone // by id
	ids []string             // in the order in which they ended
}

// add notes why a sandbox has ended, and returns the ids of those of which no more is known. Where
// there would be too many notes, the oldest one goes of the owner that has the most.
func (t *tombstones) add(id, owner, reason string) (gone []string) {
	forget := func(at int) {
		gone = append(gone, t.ids[at])
		delete(t.of, t.ids[at])
		t.ids = slices.Delete(t.ids, at, at+1)
	}
	for len(t.ids) > 0 && time.Since(t.of[t.ids[0]].at) >= tombstoneAge {
		forget(0)
	}
	if len(t.ids) >= maxTombstones {
		has := map[string]int{owner: 1}
		for _, other := range t.of {
			has[other.owner]++
		}
		oldest := 0
		for i, id := range t.ids {
			if has[t.of[id].owner] > has[t.of[t.ids[oldest]].owner] {
				oldest = i
			}
		}
		forget(oldest)
	}
	t.of[id] = tombstone{owner, reason, time.Now()}
	t.ids = append(t.ids, id)
	return gone
}
