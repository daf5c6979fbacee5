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
	unseen       bool         // the file is gone, or can't be read
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
	all := slices.Clone(notes)
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
			n.next = n.following(all)
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
		r.Conflict, r.failed, r.unseen = err, chosen, true
		return r
	}
	before, restorable := n.before()
	exact := len(r.rest) == 0 && hash(f.old) == n.After && n.Exact
	switch {
	case f.info == nil && n.Before == "", f.info != nil && hash(f.old) == n.Before:
		r.rest = nil // it is gone, or was never written
		return r
	case f.info == nil:
		r.Conflict, r.failed = &FileError{n.Path, "is gone", "its backup is " + config.Show(n.Backup)}, chosen
		r.unseen = true
		return r
	case exact && n.Before == "":
		f.Remove = true
	case exact && restorable:
		f.New = before
		n.show(f)
	default:
		chosen, r.failed, r.Conflict = n.inverse(f, chosen, r.rest)
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
		f.hunks = []hunk{{text: said, shown: said}}
	}
}

// inverse takes changes of a note back in a file that somebody else has changed since, or of which
// not all are to be taken back: those of a server all or none. The rest stays.
func (n note) inverse(f *File, chosen, rest []noteChange) (done, failed []noteChange, conflict error) {
	if len(n.Changes) == 0 {
		return nil, chosen, &FileError{n.Path, "was changed since it was made, and is left",
			"remove it if you don't need it"}
	}
	text, known := n.before()
	before, err := edit.Parse(n.Path, text)
	known = known && err == nil
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
	ours := n.Before == "" && holdsNothing(f.New)
	if root, err := edit.Parse(n.Path, f.New); err == nil && len(root) == 0 && ours {
		f.Remove = len(failed) == 0
	} else if err == nil && len(failed) == 0 {
		n.withOnly(f, rest, root)
	}
	return done, failed, conflict
}

// holdsNothing reports whether a file has neither values nor comments.
func holdsNothing(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || bytes.HasPrefix(text, []byte("{")) && bytes.HasSuffix(text, []byte("}")) &&
		len(bytes.Trim(text, "{} \t\r\n")) == 0
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
		if bad, ok := errors.AsType[*edit.Error](err); ok {
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
	if r.Host == config.Own && !r.unseen {
		r.Conflict = nil
	} else {
		left = slices.Concat(left, r.failed)
	}
	i := slices.IndexFunc(notes, same)
	if i >= 0 && len(left) > 0 {
		notes[i].keep(left, r.File)
		return errors.Join(j.write(notes), r.Conflict)
	}
	unused, succeeded := r.note.Backup, false
	if i >= 0 {
		if next := notes[i].following(notes); next != nil {
			if b, ok := notes[i].succeed(next); ok {
				unused, succeeded = b, true
			}
		}
	}
	if err := j.write(slices.DeleteFunc(notes, same)); err != nil {
		return err
	}
	others := func(n note) bool { return n.Backup == unused && !same(n) } // of equal content
	if b := unused; b != "" && !slices.ContainsFunc(notes, others) {
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !succeeded {
		r.note.removeDirectories()
	}
	return nil
}

// Moved returns the names of the servers that have moved from a host, by its ID. None have from the
// bridge's own files.
func (j *Journal) Moved(id string) (names []string, err error) {
	notes, err := j.read()
	for _, n := range notes {
		for _, c := range n.Changes {
			if n.Verb == j.Verb && n.Host == id && id != config.Own && c.Server != "" {
				names = append(names, c.Server)
			}
		}
	}
	return names, err
}
