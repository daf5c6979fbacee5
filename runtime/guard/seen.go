package guard

import "errors"

// Seen is a process that this one knows only by having seen it: another's child, or one that a
// dead bridge has left. It is told from every later process of its number, and signalled through a
// descriptor that stands for it and no other.
type Seen struct {
	PID    int
	Parent int    // its parent's PID when it was seen
	start  uint64 // clock ticks since boot
}

var errNotThere = errors.New("there is no such process any more")
