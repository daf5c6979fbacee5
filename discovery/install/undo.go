package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// A Return is the way back of one file. Without File there is nothing to write. What a Conflict is
// about is left as it is.
type Return struct {
	Host, Path string
	File       *File
	Conflict   error
	Secrets    []string // that were set for servers whose entries go, and that nothing else asks for

	note         note
	rest, failed []noteChange // of the note: those that aren't asked for, and those with a conflict
}

// PlanUndo returns the way back of what was written for some hosts, by their IDs, and of some moved
// servers; nil stands for all. An empty list of hosts is about our own files alone. The last note
// of a file comes first. Our own files come last. A server stays in them, and a policy too, while a
// host's file still counts on it.
func (j *Journal) PlanUndo(ids, servers []string) (back []Return, err error) {
	notes, err := j.read()
	if err != nil {
		return nil, err
	}
	notes = slices.DeleteFunc(notes, func(n note) bool { return n.Verb != j.Verb })
	needed := map[string]bool{} // by server
	wanted := func(server string) bool {
		same := func(s string) bool { return strings.EqualFold(s, server) }
		return servers == nil || slices.ContainsFunc(servers, same)
	}
	for _, own := range []bool{false, true} {
		for _, n := range slices.Backward(notes) {
			if own != (n.Host == config.Own) {
				continue
			}
			r := n.back(func(server string) bool {
				if own {
					return wanted(server) && !needed[server]
				}
				return wanted(server) && (ids == nil || slices.Contains(ids, n.Host))
			})
			for _, c := range slices.Concat(r.rest, r.failed) {
				needed[c.Server] = true
			}
			if len(r.rest) < max(1, len(n.Changes)) {
				back = append(back, r)
			}
		}
	}
	return back, nil
}

// back plans the way back of the changes of some servers.
func (n note) back(pick func(server string) bool) Return {
	r := Return{Host: n.Host, Path: n.Path, note: n}
	var chosen []noteChange
	changes := n.Changes
	if len(changes) == 0 {
		changes = []noteChange{{}} // the whole file
	}
	for _, c := range changes {
		if pick(c.Server) {
			chosen = append(chosen, c)
		} else {
			r.rest = append(r.rest, c)
		}
	}
	if len(chosen) == 0 {
		return r
	}
	f, err := Open(n.Path)
	if err != nil {
		r.Conflict, r.failed = err, chosen
		return r
	}
	exact := len(r.rest) == 0 && hash(f.old) == n.After && n.Exact
	switch {
	case f.info == nil && n.Before == "", f.info != nil && hash(f.old) == n.Before:
		r.rest = nil // it is gone, or was never written
		return r
	case f.info == nil:
		r.Conflict, r.failed = &FileError{n.Path, "is gone", "its backup is " + config.Show(n.Backup)}, chosen
		return r
	case exact && n.Before == "":
		f.Remove = true
	case exact && n.restorable():
		f.New, r.Conflict = os.ReadFile(n.Backup)
		n.show(f)
	default:
		chosen, r.failed, r.Conflict = n.inverse(f, chosen)
	}
	for _, c := range chosen {
		r.Secrets = append(r.Secrets, c.Secrets...)
	}
	for _, left := range [][]noteChange{r.rest, r.failed} {
		for i := range left {
			r.Secrets = slices.DeleteFunc(r.Secrets, left[i].takeOver)
		}
	}
	if f.Changed() {
		r.File = f
	}
	return r
}

// takeOver notes a secret with a change that asks for it, so that it goes with that one later. It
// reports whether the change asks for it.
func (c *noteChange) takeOver(secret string) bool {
	asks := bytes.Contains(c.Value, []byte("${secret:"+secret+"}"))
	if asks && !slices.Contains(c.Secrets, secret) {
		c.Secrets = append(slices.Clone(c.Secrets), secret)
	}
	return asks
}

// show notes how the changes of a note show when its backup is put back. What a host's own command
// has written in its own way isn't shown: it may be all of the file.
func (n note) show(f *File) {
	at := f.New
	for _, c := range n.Changes {
		next, err := edit.Apply(n.Path, at, c.change().Change)
		if err != nil {
			break
		}
		back := c.change()
		if before, err := edit.Parse(n.Path, at); err == nil {
			back.Value, _ = edit.At(before, c.Path)
		}
		f.hunks, at = slices.Insert(f.hunks, 0, f.hunkOf(back, next, at)), next
	}
	if !bytes.Equal(at, f.old) {
		said := "(what it held before is put back, from " + config.Show(n.Backup) + ")\n"
		f.hunks = []hunk{{said, said}}
	}
}

// restorable reports whether the backup holds what the file held before.
func (n note) restorable() bool {
	content, err := os.ReadFile(n.Backup)
	return err == nil && hash(content) == n.Before
}

// inverse takes changes of a note back in a file that somebody else has changed since, or of which
// not all are to be taken back: those of a server all or none.
func (n note) inverse(f *File, chosen []noteChange) (done, failed []noteChange, conflict error) {
	if len(n.Changes) == 0 {
		return nil, chosen, &FileError{n.Path, "was changed since it was made, and is left",
			"remove it if you don't need it"}
	}
	before, known := config.Object(nil), n.Before == ""
	if content, err := os.ReadFile(n.Backup); err == nil && hash(content) == n.Before {
		before, err = edit.Parse(n.Path, content)
		known = err == nil
	}
	for len(chosen) > 0 {
		server, was := chosen[len(chosen)-1].Server, *f
		var its []noteChange
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(c noteChange) bool {
			if c.Server == server {
				its = append(its, c)
			}
			return c.Server == server
		})
		err := error(nil)
		for _, c := range slices.Backward(its) {
			if err == nil {
				err = n.takeBack(f, c, before, known)
			}
		}
		if err != nil {
			*f, failed, conflict = was, append(failed, its...), err
		} else {
			done = append(done, its...)
		}
	}
	if root, err := edit.Parse(n.Path, f.New); err == nil && len(root) == 0 && n.Before == "" {
		f.Remove = len(failed) == 0
	} else if err == nil && len(done) == len(n.Changes) {
		n.asItWas(f, root)
	}
	return done, failed, conflict
}

// takeBack takes one change back. known means that before is what the file held before.
func (n note) takeBack(f *File, c noteChange, before config.Object, known bool) error {
	change := c.change()
	if !known {
		if c.Depth < 0 || c.Depth >= len(c.Path) || change.Value.Is("nothing") {
			return &FileError{n.Path, "was changed since, and the backup " + config.Show(n.Backup) +
				" with what it held before is gone", "change it back by hand"}
		}
		before = around(c.Path[:c.Depth])
	}
	now, err := edit.Parse(n.Path, f.New)
	if err != nil {
		var bad *edit.Error
		if errors.As(err, &bad) {
			return &FileError{n.Path, "can't be changed: " + bad.Reason, bad.Next}
		}
		return err
	}
	back, err := edit.Inverse(before, now, change.Change)
	if err != nil {
		return &FileError{n.Path, "has another entry under " + edit.Dotted(c.Path) +
			" than was written there, and is left", "take it out by hand"}
	}
	for _, b := range back {
		if err := f.apply(fileChange{Change: b, move: change.move}); err != nil {
			return err
		}
	}
	return nil
}

// asItWas has the file hold the bytes of its backup, and what somebody else has changed since in
// one place, if that comes to the same as the root that it is to hold. Else an entry that is put
// back stands where new ones do.
func (n note) asItWas(f *File, root config.Object) {
	text, err := os.ReadFile(n.Backup)
	if err != nil || !n.Exact || hash(text) != n.Before {
		return
	}
	steps := [][]byte{text}
	for _, c := range n.Changes {
		if text, err = edit.Apply(n.Path, text, c.change().Change); err != nil {
			return
		}
		steps = append(steps, text)
	}
	if hash(text) != n.After {
		return
	}
	start, end := common(text, f.old) // of theirs, in each step from the last to the first
	theirs := f.old[start : len(f.old)-(len(text)-end)]
	for i := len(steps) - 1; i > 0; i-- {
		from, to := common(steps[i], steps[i-1])
		grown := len(steps[i-1]) - len(steps[i])
		switch {
		case to <= start:
			start, end = start+grown, end+grown
		case from < end:
			return // it is the same place
		}
	}
	made := slices.Concat(steps[0][:start], theirs, steps[0][end:])
	if is, err := edit.Parse(n.Path, made); err == nil && is.Value().Equal(root.Value()) {
		f.New = made
	}
}

// common returns where in a the part begins and ends that differs from b.
func common(a, b []byte) (start, end int) {
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	same := 0
	for same < len(a)-start && same < len(b)-start && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	return start, len(a) - same
}

// around returns empty objects within each other.
func around(path []string) (o config.Object) {
	for _, name := range slices.Backward(path) {
		o = config.Object{{Name: name, Value: o.Value()}}
	}
	return o
}

// Undo goes the way back of one file, and forgets it. It returns a conflict, and remembers what
// that is about; an entry of one of our own files that was changed is the user's from then on.
func (j *Journal) Undo(ctx context.Context, r Return) error {
	notes, release, err := j.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if r.File != nil {
		if err := r.File.refresh(); err != nil {
			return err
		}
		if err := r.File.replace(); err != nil {
			return err
		}
	}
	same := func(n note) bool { return n.Verb == r.note.Verb && n.Path == r.note.Path }
	left := r.rest
	if r.Host == config.Own {
		r.Conflict = nil
	} else {
		left = slices.Concat(left, r.failed)
	}
	if i := slices.IndexFunc(notes, same); i >= 0 && len(left) > 0 {
		if len(left) < len(notes[i].Changes) {
			notes[i].Changes, notes[i].Exact = left, false
		}
		return errors.Join(j.write(notes), r.Conflict)
	}
	if err := j.write(slices.DeleteFunc(notes, same)); err != nil {
		return err
	}
	if b := r.note.Backup; b != "" {
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	r.note.removeDirectories()
	return nil
}

// Moved returns the names of the servers that have moved from a host, by its ID.
func (j *Journal) Moved(id string) (names []string, err error) {
	notes, err := j.read()
	for _, n := range notes {
		for _, c := range n.Changes {
			if n.Verb == j.Verb && n.Host == id && c.Server != "" {
				names = append(names, c.Server)
			}
		}
	}
	return names, err
}
