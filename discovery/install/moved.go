package install

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// ownServers is the bridge's own file that servers move to.
var ownServers = config.Everywhere("{config}/mcp/servers/adopted.json")

// MoveFiles returns the bridge's own file with servers in it, and hosts' files without them. Write
// the first before the others: until then the hosts need their entries. It fails if an entry isn't
// what was planned for any more.
func (in *Installer) MoveFiles(moves []*Move) (own *File, others []*File, err error) {
	paths := in.reader.Expand(ownServers)
	if len(paths) == 0 {
		return nil, nil, errors.New("there is no place for the bridge's own files; set HOME")
	}
	if own, err = in.open(paths[0]); err != nil {
		return nil, nil, err
	}
	own.host, own.scope = config.Own, "user"
	for _, m := range moves {
		c := edit.Change{Path: []string{"mcpServers", m.Name}, Value: object(m.Entry).Value()}
		if m.There {
			continue
		}
		if err := own.apply(fileChange{Change: c, move: m}); err != nil {
			return nil, nil, err
		}
	}
	for _, m := range moves {
		for i, c := range m.From {
			if others, err = in.switchedOff(others, c, m.was[i], m); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Written.Source.Host, err)
			}
		}
	}
	return own, others, nil
}

// Arrived returns why a moved server can't be used from the bridge's own file; nil: it can.
func (in *Installer) Arrived(m *Move) error {
	for _, c := range discovery.Candidates(in.cfg.FS, in.cfg.Env) {
		src := c.Written.Source
		if src.Host != config.Own || c.Written.Name != m.Name {
			continue
		}
		switch stateOf(c) {
		case "", discovery.Duplicate, discovery.Shadowed: // by the entry that is to go
			return nil
		}
		return &FileError{src.Path, "has it, and it can't be used from there: " + c.Problem.Reason, c.Problem.Next}
	}
	return errors.New("the bridge doesn't find it in its own file")
}

// switchedOff switches a server off in one of some files, to which it adds the file where it isn't
// among them: by the host's own switch, or else its entry goes, which was the same before.
func (in *Installer) switchedOff(files []*File, c discovery.Candidate, was config.Value,
	m *Move) ([]*File, error) {
	src, h := c.Written.Source, hostNamed(c.Written.Source.Host)
	entry, is, err := entryPath(h, c.Written)
	if err != nil {
		return nil, err
	}
	if !is.Equal(was) {
		return nil, (&File{Path: src.Path}).errChanged()
	}
	path, off := src.Path, edit.Change{Path: entry}
	if h.Install.Off != nil {
		p := h.Install.Off(entry)
		off.Path, off.Value = p.Path, p.Value
		if paths := in.reader.Expand(p.Paths); len(paths) > 0 {
			path = paths[0]
		}
	}
	i := slices.IndexFunc(files, func(f *File) bool { return f.Path == path })
	if i < 0 {
		f, err := in.open(path)
		if err != nil {
			return nil, err
		}
		f.host, f.scope = h.Install.ID, src.Scope
		i, files = len(files), append(files, f)
	}
	change := fileChange{Change: off, move: m}
	if path == src.Path {
		change.entry, change.was = entry, was
	}
	return files, files[i].apply(change)
}

// entryPath returns where a server's entry stands in a host's file, and the entry.
func entryPath(h *config.Host, e config.Entry) (path []string, is config.Value, err error) {
	f, err := look(e.Source.Path)
	if err != nil {
		return nil, is, err
	}
	root, err := edit.Parse(f.Path, f.old)
	if err != nil {
		return nil, is, err
	}
	keys := [][]string{{e.File.Format.Key}}
	if h.Install.Key != nil {
		keys = append([][]string{h.Install.Key(root)}, keys...)
	}
	for _, key := range keys {
		path := append(slices.Clone(key), e.Name)
		if is, depth := edit.At(root, path); depth == len(path) {
			return path, is, nil
		}
	}
	return nil, is, &FileError{f.Path, "has no entry " + config.Display(e.Name) + " any more",
		"run the command again"}
}
