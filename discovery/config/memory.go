package config

import (
	"io/fs"
	"slices"
	"strings"
)

// A Memory is what scans keep for those that follow: what files held when they could be read, and
// a project as it was at the first scan. Code may write to the project while the bridge runs. A nil
// Memory remembers nothing.
type Memory struct {
	scanned   bool                 // a scan has ended
	project   []string             // files, and directories of files, that are the project's
	workspace []string             // as Workspace returns it
	documents map[string]*Document // by path
	names     map[string][]string  // by directory of the project
}

// ofProject reports whether a file, or its directory, is the project's.
func (m *Memory) ofProject(native string) bool {
	dir := native[:max(0, strings.LastIndexAny(native, `/\`))]
	return slices.Contains(m.project, native) || slices.Contains(m.project, dir)
}

// atStart returns a file of the project as it was at the first scan; false for other files, and in
// the first scan.
func (m *Memory) atStart(native string) (*Document, bool) {
	if m == nil || !m.scanned || !m.ofProject(native) {
		return nil, false
	}
	if d := m.documents[native]; d != nil {
		return d, true
	}
	return &Document{}, true
}

// last returns a file as it last could be read, or nil.
func (m *Memory) last(native string) *Document {
	if m == nil || m.documents[native] == nil || !m.documents[native].There {
		return nil
	}
	return m.documents[native]
}

// StartWith has the first scan note which files, and directories of files, are the project's.
func (m *Memory) StartWith(project []string) {
	if !m.scanned {
		m.project = project
	}
}

// Keep notes what a scan has found.
func (m *Memory) Keep(r *Reader) {
	if !m.scanned {
		m.workspace, m.names = r.Workspace(), r.names
	}
	before := m.documents
	m.scanned, m.documents = true, r.documents
	for p, d := range before { // this scan may not have asked for it
		if m.documents[p] == nil && m.ofProject(p) {
			m.documents[p] = d
		}
	}
}

// namesIn returns what a directory of the project held at the first scan, as atStart does.
func (m *Memory) namesIn(dir string) (names []string, kept bool, err error) {
	if m == nil || !m.scanned || !slices.Contains(m.project, dir) {
		return nil, false, nil
	}
	names, ok := m.names[dir]
	if !ok {
		err = fs.ErrNotExist
	}
	return names, true, err
}
