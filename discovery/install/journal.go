package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// A Journal remembers which files were written and how to undo it. It holds what was put in, and
// nothing of what the files held before: that is in the backups beside them.
type Journal struct {
	Dir  string // its directory, which need not exist
	Verb string // which command's writes it is about, such as install
}

// A note is of one file.
type note struct {
	Verb    string       `json:"verb"`
	Host    string       `json:"host"`
	Scope   string       `json:"scope"`
	Path    string       `json:"path"`
	Before  string       `json:"before"` // hash of what the file held; empty: it was missing
	After   string       `json:"after"`
	Exact   bool         `json:"exact"`            // no other program wrote between Before and After
	Backup  string       `json:"backup,omitempty"` // what the file held before
	Made    []string     `json:"made,omitempty"`   // directories, innermost first
	Changes []noteChange `json:"changes,omitempty"`

	next *note // that of another command that found the file as this one left it
}

// noteChange is an edit.Change. Depth is how many names of its path were there before.
type noteChange struct {
	Path    []string        `json:"path"`
	Value   json.RawMessage `json:"value,omitempty"` // {"v": …}
	Add     bool            `json:"add,omitempty"`
	Depth   int             `json:"depth"`
	Server  string          `json:"server,omitempty"`  // that has moved; empty: it is of the bridge's own entry
	Secrets []string        `json:"secrets,omitempty"` // names of those that were set for Server
}

func (c noteChange) change() fileChange {
	made := fileChange{Change: edit.Change{Path: c.Path, Value: unmarshal(c.Value), Add: c.Add}}
	if c.Server != "" {
		made.move = &Move{Name: c.Server}
	}
	return made
}

func (j *Journal) file() string { return filepath.Join(j.Dir, "written.json") }

// lock takes the journal for this process, and reads it.
func (j *Journal) lock(ctx context.Context) (notes []note, release func(), err error) {
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	release, err = filelock.Acquire(ctx, j.file()+".lock")
	if err != nil {
		return nil, nil, err
	}
	if notes, err = j.read(); err != nil {
		release()
		return nil, nil, err
	}
	return notes, release, nil
}

func (j *Journal) read() (notes []note, err error) {
	data, err := os.ReadFile(j.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &notes)
	}
	if err != nil {
		return nil, &FileError{j.file(), "can't be read: " + err.Error(),
			"move it away; the backups beside the hosts' files end in " + backupEnding}
	}
	return notes, nil
}

func (j *Journal) write(notes []note) error {
	if len(notes) == 0 {
		if err := os.Remove(j.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.MarshalIndent(notes, "", "  ")
	if err != nil {
		return err
	}
	return filelock.Replace(j.file(), "written-*", data)
}

// Write writes a file, with a backup beside it and a note of it. When it returns an error, or is
// killed, the file is as it was or as it was to be.
func (j *Journal) Write(ctx context.Context, f *File) error { return j.note(ctx, f, f.replace, false) }

// WriteBy has do make the first change of a file, with the host's own command. What that leaves out
// of the entry, it writes itself.
func (j *Journal) WriteBy(ctx context.Context, f *File, do func() error) error {
	if err := j.note(ctx, f, do, true); err != nil {
		return err
	}
	whole, path := f.changes[0].Value, f.changes[0].Path
	now, err := Open(f.Path)
	if err != nil {
		return err
	}
	now.host, now.scope = f.host, f.scope
	root, err := edit.Parse(now.Path, now.old)
	if err != nil {
		return err
	}
	there, _ := edit.At(root, path)
	is, _ := there.Object()
	wanted, _ := whole.Object()
	for _, m := range wanted {
		if is.Get(m.Name).Is("nothing") {
			c := edit.Change{Path: append(slices.Clone(path), m.Name), Value: m.Value}
			if err := now.Change(c); err != nil {
				return err
			}
		}
	}
	for _, c := range f.changes[1:] {
		if err := now.apply(c); err != nil {
			return err
		}
	}
	if !now.Changed() {
		return nil
	}
	return j.Write(ctx, now)
}

// note keeps a note of what do makes of a file. The note is there before, for do may be killed.
// byHost means that do is the host's command, whose way of writing counts.
func (j *Journal) note(ctx context.Context, f *File, do func() error, byHost bool) error {
	notes, release, err := j.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := f.refresh(); err != nil {
		return err
	}
	i := slices.IndexFunc(notes, func(n note) bool { return n.Verb == j.Verb && n.Path == f.Path })
	earlier := slices.Clone(notes)
	n := note{Verb: j.Verb, Host: f.host, Scope: f.scope, Path: f.Path, Exact: true}
	switch {
	case i < 0:
		i, notes = len(notes), append(notes, n)
	case f.info == nil: // it was removed, and so begins again
		n.Made = notes[i].Made
	case hash(f.old) == notes[i].Before:
		n = notes[i]
		n.Changes, n.Exact = nil, true
	default:
		n = notes[i]
		n.Changes, n.Exact = slices.Clone(n.Changes), n.Exact && hash(f.old) == n.After
	}
	if err := n.begin(f); err != nil {
		n.discard(earlier)
		return err
	}
	n.After = hash(f.New)
	notes[i] = n
	if err := j.write(notes); err != nil {
		n.discard(earlier)
		return err
	}
	err = do()
	now, _ := os.ReadFile(f.Path)
	switch {
	case byHost && !bytes.Equal(now, f.old):
		if bad := n.took(f, now); bad == nil {
			notes[i] = n
			return errors.Join(err, j.write(notes))
		} else if err == nil {
			err = bad
		}
	case byHost && err == nil:
		err = &FileError{f.Path, "was not changed by the host's own command", "leave out --host-command"}
	case err == nil, bytes.Equal(now, f.New):
		return err
	}
	n.discard(earlier)
	return errors.Join(err, j.write(earlier))
}

// discard removes what was made for a note that isn't kept: its directories, and its backup unless
// earlier notes have it.
func (n note) discard(earlier []note) {
	known := slices.ContainsFunc(earlier, func(e note) bool { return e.Backup == n.Backup })
	if n.Backup != "" && !known {
		_ = os.Remove(n.Backup)
	}
	n.removeDirectories()
}

// took notes what a host's command has made of a file.
func (n *note) took(f *File, now []byte) error {
	root, err := edit.Parse(f.Path, now)
	if err != nil {
		return err
	}
	entry := f.changes[0]
	value, depth := edit.At(root, entry.Path)
	if depth < len(entry.Path) {
		return &FileError{f.Path, "has no entry " + edit.Dotted(entry.Path) + " after the host's own command",
			"leave out --host-command"}
	}
	n.After = hash(now)
	for i := range n.Changes {
		if slices.Equal(n.Changes[i].Path, entry.Path) {
			n.Changes[i].Value = marshal(value)
		}
	}
	return nil
}

// removeDirectories removes the directories that were made, as far as they are empty.
func (n note) removeDirectories() {
	for _, dir := range n.Made {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// begin notes the changes of a file, and makes its backup and directories.
func (n *note) begin(f *File) (err error) {
	if f.info != nil && n.After == "" {
		n.Before = hash(f.old)
		if n.Backup, err = backUp(f); err != nil {
			return fmt.Errorf("making a backup of %s: %w", config.Show(f.Path), err)
		}
	}
	if f.info == nil {
		made, err := makeDirectories(f.Path)
		if n.Made = append(n.Made, made...); err != nil {
			return err
		}
	}
	if len(f.changes) == 0 {
		return nil
	}
	root, err := edit.Parse(f.Path, f.old)
	if err != nil {
		return err
	}
	made, err := edit.Parse(f.Path, f.New)
	if err != nil {
		return err
	}
	for _, c := range f.changes {
		i := slices.IndexFunc(n.Changes, func(e noteChange) bool {
			return !e.Add && len(e.Path) <= len(c.Path) && slices.Equal(e.Path, c.Path[:len(e.Path)])
		})
		if i >= 0 { // a part of what was put in before
			whole, _ := edit.At(made, n.Changes[i].Path)
			n.Changes[i].Value = marshal(whole)
			continue
		}
		made := noteChange{Path: c.Path, Value: marshal(c.Value), Add: c.Add}
		_, made.Depth = edit.At(root, c.Path)
		if c.move != nil {
			made.Server = c.move.Name
		}
		if c.move != nil && f.host == config.Own {
			made.Secrets = c.move.Set
		}
		n.Changes = append(n.Changes, made)
	}
	return nil
}

const backupEnding = ".before-mcp-bridge"

// backUp writes a copy of a file beside it, and returns its path. The copy may hold secrets that
// the file has no longer, so only its user may read it.
func backUp(f *File) (string, error) {
	for i := 1; ; i++ {
		path := f.Path + backupEnding
		if i > 1 {
			path = fmt.Sprintf("%s-%d", path, i)
		}
		err := writeNew(path, f.old, f.info.Mode().Perm()&0o700, f.info)
		if !errors.Is(err, fs.ErrExist) {
			return path, err
		}
		if same, err := os.ReadFile(path); err == nil && bytes.Equal(same, f.old) {
			return path, nil // of a command that was killed
		}
	}
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
