package install

import (
	"os"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// before returns what a file held before a note; nothing for a file that was missing.
func (n note) before() (text []byte, known bool) {
	if n.Before == "" {
		return nil, true
	}
	text, err := os.ReadFile(n.Backup)
	return text, err == nil && hash(text) == n.Before
}

// replay makes changes of a note's file one after the other, and returns the text before the first
// and after each.
func (n note) replay(text []byte, changes []noteChange) (steps [][]byte, ok bool) {
	steps = [][]byte{text}
	for _, c := range changes {
		made, err := edit.Apply(n.Path, text, c.change().Change)
		if err != nil {
			return nil, false
		}
		steps, text = append(steps, made), made
	}
	return steps, true
}

// history returns what its file held before a note, and what it held after each of the note's
// changes and of those of the note that follows. ok reports that these are the bytes that were
// written.
func (n note) history(next *note) (steps [][]byte, ok bool) {
	text, known := n.before()
	if !known || !n.Exact {
		return nil, false
	}
	steps, ok = n.replay(text, n.Changes)
	if !ok || hash(steps[len(steps)-1]) != n.After {
		return nil, false
	}
	if next == nil {
		return steps, true
	}
	more, ok := n.replay(steps[len(steps)-1], next.Changes)
	if !ok || !next.Exact || hash(more[len(more)-1]) != next.After {
		return nil, false
	}
	return append(steps, more[1:]...), true
}

// following returns the note of another command that found a file as n left it, or nil.
func (n note) following(all []note) *note {
	for i := range all {
		if all[i].Path == n.Path && all[i].Verb != n.Verb && all[i].Before == n.After {
			return &all[i]
		}
	}
	return nil
}

// withOnly has the file hold what it would if only some changes had been made of those of a note
// and of the next one, with what somebody else has changed since in other places. It does so if
// that comes to the same as the root that the file is to hold. Else an entry that is put back
// stands where new ones do.
func (n note) withOnly(f *File, kept []noteChange, root config.Object) {
	changes := kept
	if n.next != nil {
		changes = slices.Concat(kept, n.next.Changes)
	}
	steps, ok := n.history(n.next)
	if !ok {
		return
	}
	theirs := patches(steps[len(steps)-1], f.old)
	for i := len(steps) - 1; i > 0; i-- { // where they would have stood before each change
		for k := range theirs {
			if !theirs[k].shift(steps[i], steps[i-1]) {
				return
			}
		}
	}
	without, ok := n.replay(patched(steps[0], theirs), changes)
	if !ok {
		return
	}
	made := without[len(without)-1]
	if is, err := edit.Parse(n.Path, made); err == nil && is.Value().Equal(root.Value()) {
		f.New = made
	}
}

// keep notes that only some changes of a note are left in its file, which was written with f; f may
// be nil. Where the rest can be replayed, the file still counts as ours alone.
func (n *note) keep(left []noteChange, f *File) {
	if len(left) == len(n.Changes) {
		return
	}
	text, known := n.before()
	_, replayed := n.history(nil)
	steps, ok := n.replay(text, left)
	switch {
	case known && replayed && ok:
		n.After = hash(steps[len(steps)-1])
	case n.Exact && f != nil && hash(f.old) == n.After:
		n.After = hash(f.New)
	default:
		n.Exact = false
	}
	n.Changes = left
}

// succeed has the note that follows n begin where n did, since n is taken back: its file then held
// the same, but for what n changed. It returns the backup that nothing leads to any more, and
// whether it could.
func (n note) succeed(next *note) (unused string, ok bool) {
	text, _ := n.before()
	if _, ok = n.history(next); !ok {
		return "", false
	}
	steps, ok := n.replay(text, next.Changes)
	if !ok {
		return "", false
	}
	unused = next.Backup
	next.Before, next.Backup, next.Made = n.Before, n.Backup, append(slices.Clone(n.Made), next.Made...)
	next.After = hash(steps[len(steps)-1])
	return unused, true
}
