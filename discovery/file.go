package discovery

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// listed reads a path of MCP_BRIDGE_CONFIG, which has to be there.
func (s *scan) listed(p string) {
	r := row{host: own, scope: Listed, form: ownForm}
	if rest, ok := strings.CutPrefix(p, "~"); ok && s.env.Home != "" && (rest == "" || rest[0] == '/' || s.places.windows && rest[0] == '\\') {
		p = s.env.Home + rest
	}
	abs := s.places.clean(p)
	if abs == "" && !strings.HasPrefix(p, "/") && s.env.Dir != "" {
		abs = s.places.clean(s.env.Dir + "/" + p)
	}
	src := Source{Host: r.host, Scope: r.scope, Path: p}
	if p == "" {
		return
	}
	if abs == "" {
		s.problem(src, "", "it is not an absolute path, and there is no working directory that it could count from", "write the whole path into MCP_BRIDGE_CONFIG")
		return
	}
	p = s.places.native(abs)
	s.listing[p] = true
	if info, err := s.stat(abs); err == nil && info.IsDir() {
		s.directory(r, p, ".json", true)
		return
	}
	r.form, r.pick = s.formOf(p)
	s.file(r, p, true)
}

// Listed is the scope of what ConfigPaths lists.
const Listed = "MCP_BRIDGE_CONFIG"

// formOf is how a listed file is read: as its host does, if it is one of a host's, and without asking for the host's word.
func (s *scan) formOf(p string) (form, func(*scan, Source, *hujson.Object) []servers) {
	for _, r := range sources {
		if r.form.gate != open && slices.Contains(s.places.expand(r.where), p) {
			return r.form.with(func(f *form) { f.gate = open }), r.pick
		}
	}
	return ownForm, nil
}

// A catalog is for people and models to read: beyond these a file isn't one that a host wrote.
const (
	maxFiles     = 1000    // of one directory
	maxDirectory = 2 << 20 // bytes of all files of one directory
	maxEntries   = 1000    // of one file
)

// directory reads the files of a directory that have the ending, by name.
func (s *scan) directory(r row, dir, ending string, required bool) {
	src := Source{Host: r.host, Scope: r.scope, Path: dir}
	names, err := s.list(dir, ending)
	if err != nil {
		if reason, next := unreadable(err, required); reason != "" {
			s.problem(src, "", reason, next)
		}
		return
	}
	if len(names) > maxFiles {
		s.problem(src, "", "it holds more files than are read from one directory; the ones that come last by name were left out", fmt.Sprintf("keep at most %d files in it", maxFiles))
		names = names[:maxFiles]
	}
	var total int64
	for _, name := range names {
		p := strings.TrimRight(dir, `/\`) + s.places.native("/"+name)
		if info, err := s.stat(p); err == nil {
			total += info.Size()
		}
		if total > maxDirectory {
			s.problem(src, "", fmt.Sprintf("its files have more than %d KiB together; the ones that come last by name were left out", maxDirectory>>10), "take out what isn't needed")
			return
		}
		if required {
			s.listing[p] = true
		} else if s.listing[p] {
			continue
		}
		s.file(r, p, required)
	}
}

// file reads one file of a row and all its entries.
func (s *scan) file(r row, p string, required bool) {
	src := Source{Host: r.host, Scope: r.scope, Path: p}
	s.readingRow = true
	f := s.load(src, r.form.strict, required)
	s.readingRow = false
	if f.root == nil {
		return
	}
	if r.pick != nil {
		for _, group := range r.pick(s, src, f.root) {
			s.entries(r, src, group)
		}
		return
	}
	description, _ := stringOf(get(f.root, "description"))
	found := false
	for _, key := range r.form.keys {
		found = s.group(r, src, f.root, key, description) || found
	}
	if found {
		return
	}
	if r.form.single && (get(f.root, "command") != nil || get(f.root, "url") != nil) {
		name := path.Base(strings.ReplaceAll(p, `\`, "/"))
		s.entry(r, src, strings.TrimSuffix(name, path.Ext(name)), hujson.Value{Value: f.root}, "")
		return
	}
	if r.form.single {
		s.problem(src, "", `it holds no servers: there is neither an object "mcpServers" nor a "command"`, `write {"mcpServers": {"name": {"command": "…"}}}`)
	} else if r.form.foreign != "" && get(f.root, r.form.foreign) != nil {
		s.problem(src, "", `it has "`+r.form.foreign+`" but no "`+r.form.keys[0]+`", which is the only one that `+r.host+" reads", `rename it to "`+r.form.keys[0]+`"`)
	}
}

// group reads the entries under a key. It says whether the key is there at all.
func (s *scan) group(r row, src Source, root *hujson.Object, key, description string) bool {
	if a, ok := arrayOf(get(root, key)); ok && r.form.listed {
		s.namedList(r, src, a)
		return true
	}
	group, ok := s.objectAt(src, root, key)
	if group != nil {
		s.entries(r, src, servers{group, description})
	}
	return ok
}

func arrayOf(v *hujson.Value) (*hujson.Array, bool) {
	if v == nil {
		return nil, false
	}
	a, ok := v.Value.(*hujson.Array)
	return a, ok
}

// namedList reads entries that have their names in them.
func (s *scan) namedList(r row, src Source, a *hujson.Array) {
	group := &hujson.Object{}
	for i, e := range a.Elements {
		o, ok := objectOf(&e)
		if !ok {
			s.problem(src, "", fmt.Sprintf("entry %d of its list of servers is %s, not an object", i+1, kind(&e)), "correct it")
			continue
		}
		name, ok := stringOf(get(o, "name"))
		if !ok {
			s.problem(src, "", fmt.Sprintf("entry %d of its list of servers has no name", i+1), "give it one")
			continue
		}
		group.Members = append(group.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: e})
	}
	s.entries(r, src, servers{entries: group})
}

// objectAt is the object under a key, nil if there is none to be read. It says whether the key is there at all.
func (s *scan) objectAt(src Source, o *hujson.Object, key string) (*hujson.Object, bool) {
	v := get(o, key)
	if v == nil {
		return nil, false
	}
	if n := count(o, key); n > 1 {
		s.problem(src, "", `it has "`+key+`" more than once; only the last one counts`, "merge them into one")
	}
	group, ok := v.Value.(*hujson.Object)
	if !ok && kind(v) != "null" {
		s.problem(src, "", `its "`+key+`" is `+kind(v)+", not an object", `write {"`+key+`": {"name": {"command": "…"}}}`)
	}
	return group, true
}

// entries reads every entry of an object. Of two with one name the last counts, as in every JSON reader of a host.
func (s *scan) entries(r row, src Source, group servers) {
	members := group.entries.Members
	if len(members) > maxEntries {
		s.problem(src, "", fmt.Sprintf("it has %d servers, more than are read from one file; those after the first %d were left out", len(members), maxEntries),
			"split it, and take out what isn't used")
		members = members[:maxEntries]
	}
	last := map[string]int{}
	for i, m := range members {
		last[nameOf(m)] = i
	}
	for i, m := range members {
		name := nameOf(m)
		if last[name] != i {
			s.problem(src, display(name), "the file has this name more than once; only the last one counts", "give them different names")
			continue
		}
		s.entry(r, src, name, m.Value, group.description)
	}
}
