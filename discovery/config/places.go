package config

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Places are the directories that patterns name. Paths in it are with slashes, on windows too.
type Places struct {
	Windows bool
	Darwin  bool
	by      map[string][]string // name → directories, nearest first
}

// newPlaces returns the places of env and of dirs. foreign reports whether a path isn't there, or
// is another user's.
func newPlaces(env Env, dirs []Dir, foreign func(string) bool) Places {
	p := Places{Windows: env.GOOS == "windows", Darwin: env.GOOS == "darwin", by: map[string][]string{}}
	p.set("home", p.Clean(env.Home))
	below := func(name, dir, tail string) {
		p.set(name, p.Clean(dir))
		if home := p.Clean(env.Home); p.by[name] == nil && home != "" {
			p.set(name, path.Join(home, tail))
		}
	}
	below("config", env.ConfigHome, ".config")
	below("appdata", env.AppData, "AppData/Roaming")
	below("localappdata", env.LocalAppData, "AppData/Local")
	for _, d := range dirs {
		if said := p.Clean(env.Getenv(d.Var)); said != "" {
			p.set(d.Name, path.Join(said, d.Then))
			continue
		}
		for _, found := range p.Expand(d.Else) {
			p.set(d.Name, p.Clean(found))
		}
	}
	if dir := p.Clean(env.Dir); dir != "" {
		p.by["up"] = ancestors(dir)
		p.set("workspace", dir)
		i := slices.IndexFunc(p.by["up"], func(d string) bool { return !foreign(path.Join(d, ".git")) })
		if i > 0 {
			p.by["workspace"] = append(p.by["workspace"], p.by["up"][i])
		}
	}
	return p
}

func (p Places) set(name, dir string) {
	if dir != "" {
		p.by[name] = []string{dir}
	}
}

// Clean returns a path with slashes, cleaned; empty if it isn't absolute.
func (p Places) Clean(native string) string {
	if p.Windows {
		native = strings.ReplaceAll(native, `\`, "/")
		if len(native) < 3 || native[1] != ':' || native[2] != '/' {
			return "" // a UNC path among them: no home of a host is there
		}
		return path.Clean(native)
	}
	if !path.IsAbs(native) {
		return ""
	}
	return path.Clean(native)
}

// Native returns a path as the system writes it.
func (p Places) Native(slashed string) string {
	if p.Windows {
		return strings.ReplaceAll(slashed, "/", `\`)
	}
	return slashed
}

// ancestors returns dir and every directory above it, nearest first, without the root: no project
// is there.
func ancestors(dir string) []string {
	var up []string
	for d := dir; ; d = path.Dir(d) {
		if d == "/" || d == "." || strings.HasSuffix(d, ":") || strings.HasSuffix(d, ":/") {
			return up
		}
		up = append(up, d)
	}
}

// Expand returns the paths that patterns stand for, as the system writes them. A pattern about a
// place that isn't known stands for none.
func (p Places) Expand(where Paths) []string {
	patterns := where.Linux
	switch {
	case p.Darwin && where.Darwin != nil:
		patterns = where.Darwin
	case p.Windows && where.Windows != nil:
		patterns = where.Windows
	}
	var out []string
	for _, pattern := range bothEndings(patterns) {
		rest, placed := strings.CutPrefix(pattern, "{")
		if !placed {
			out = append(out, p.Native(pattern))
			continue
		}
		name, tail, _ := strings.Cut(rest, "}")
		for _, dir := range p.by[name] {
			out = append(out, p.Native(dir+tail))
		}
	}
	return out
}

// bothEndings returns patterns with two in the place of one that ends in .json(c).
func bothEndings(patterns []string) (both []string) {
	for _, p := range patterns {
		base, ok := strings.CutSuffix(p, "(c)")
		if both = append(both, base); ok {
			both = append(both, base+"c")
		}
	}
	return both
}

// Workspace returns the working directory, and the root of its repository where that is another.
func (p Places) Workspace() []string { return p.by["workspace"] }

// Up returns the working directory and all above it, nearest first, without the root.
func (p Places) Up() []string { return p.by["up"] }

// ProjectOf returns the directory of the project that a project's file belongs to: the nearest
// above it that the working directory is in; empty for a file of no project.
func (p Places) ProjectOf(native string) string {
	file := p.Clean(native)
	for _, dir := range p.by["up"] {
		if p.Holds(dir, file) {
			return dir
		}
	}
	return ""
}

// Holds reports whether a path is a folder or lies in it.
func (p Places) Holds(folder, file string) bool {
	if p.Windows {
		folder, file = strings.ToLower(folder), strings.ToLower(file)
	}
	return folder != "" && (file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/"))
}

// MayHold reports whether a path may be a folder or lie in it, where the system usually tells no
// case apart. It is for what refuses; what allows takes Holds.
func (p Places) MayHold(folder, file string) bool {
	p.Windows = p.Windows || p.Darwin
	return p.Holds(folder, file)
}

// Within reports whether the working directory is a folder or in it.
func (p Places) Within(folder string) bool {
	return len(p.Workspace()) > 0 && p.Holds(folder, p.Workspace()[0])
}

// Folder returns what messages call a directory: here if it is the working directory.
func (p Places) Folder(dir, here string) string {
	if up := p.Up(); len(up) > 0 && up[0] == dir {
		return here
	}
	return Show(p.Native(dir))
}

// Under returns the object under a path; on windows by either kind of slash and in any case.
func (p Places) Under(o Object, dir string) (found Object, ok bool) {
	for _, m := range o {
		if m.Name == dir || p.Windows && strings.EqualFold(p.Clean(m.Name), dir) {
			found, ok = m.Value.Object()
		}
	}
	return found, ok
}

// fsName returns a path as an fs.FS wants it.
func (p Places) fsName(native string) string {
	if p.Windows {
		native = strings.ReplaceAll(native, `\`, "/")
	}
	name := strings.TrimPrefix(path.Clean("/"+native), "/")
	return cmp.Or(name, ".")
}

// Join returns the path of a name in a directory.
func (p Places) Join(dir, name string) string {
	return strings.TrimRight(dir, `/\`) + p.Native("/"+name)
}

// UsersOwn reports whether a path is of those of a host's files that a user has for all projects:
// in the home directory they are the user's own, also where that is the project.
func (p Places) UsersOwn(files []File, native string) bool {
	return slices.ContainsFunc(files, func(f File) bool {
		return f.Approval == None && slices.Contains(p.Expand(f.Paths), native)
	})
}

// Directory takes a pattern of a directory's files apart; ending is empty for a file's path.
func (p Places) Directory(pattern string) (dir, ending string) {
	for _, ending := range []string{".json", ".yaml"} {
		if dir, ok := strings.CutSuffix(pattern, p.Native("/*"+ending)); ok {
			return dir, ending
		}
	}
	return pattern, ""
}
