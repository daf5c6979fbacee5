package discovery

import (
	"cmp"
	"path"
	"strings"
)

// places are the directories that patterns are about. Paths in it are with slashes, on windows too.
type places struct {
	windows bool
	by      map[string][]string // name of the placeholder → directories, nearest first
	where   string              // the key of row.where to use
}

func newPlaces(s *scan) places {
	p := places{windows: s.env.GOOS == "windows", where: s.env.GOOS, by: map[string][]string{}}
	home, dir := p.clean(s.env.Home), p.clean(s.env.Dir)
	p.set("home", home)
	p.below("config", s.env.ConfigHome, home, ".config")
	p.below("appdata", s.env.AppData, home, "AppData/Roaming")
	p.below("localappdata", s.env.LocalAppData, home, "AppData/Local")
	p.below("claude", s.env.Getenv("CLAUDE_CONFIG_DIR"), home, ".claude")
	p.below("claude.json", joined(p.clean(s.env.Getenv("CLAUDE_CONFIG_DIR")), ".claude.json"), home, ".claude.json")
	p.below("codex", s.env.Getenv("CODEX_HOME"), home, ".codex")
	p.below("copilot", s.env.Getenv("COPILOT_HOME"), home, ".copilot")
	p.below("cline", s.env.Getenv("CLINE_DIR"), home, ".cline")
	p.set("cline.json", p.clean(s.env.Getenv("CLINE_MCP_SETTINGS_PATH")))
	p.set("opencode.json", p.clean(s.env.Getenv("OPENCODE_CONFIG")))
	p.set("opencode dir", p.clean(s.env.Getenv("OPENCODE_CONFIG_DIR")))
	p.gemini(home, s.env.Getenv)
	p.system("qwen", "QWEN_CODE", map[string]string{"": "/etc/qwen-code", "darwin": "/Library/Application Support/QwenCode", "windows": "C:/ProgramData/qwen-code"}, s.env.Getenv)
	if dir != "" {
		p.by["up"] = ancestors(dir)
		p.set("workspace", dir)
		for _, d := range p.by["up"] {
			git := path.Join(d, ".git")
			if _, err := s.stat(git); err == nil && !s.owners.Foreign(git) { // one of another user's says nothing of what is the user's project
				if d != dir {
					p.by["workspace"] = append(p.by["workspace"], d)
				}
				break
			}
		}
	}
	return p
}

// gemini sets where Gemini CLI keeps its files: all of them can be elsewhere.
func (p places) gemini(home string, getenv func(string) string) {
	dir := joined(cmp.Or(p.clean(getenv("GEMINI_CLI_HOME")), home), ".gemini")
	p.set("gemini", dir)
	p.set("gemini trust", cmp.Or(p.clean(getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH")), joined(dir, "trustedFolders.json")))
	p.system("gemini", "GEMINI_CLI", map[string]string{"": "/etc/gemini-cli", "darwin": "/Library/Application Support/GeminiCli", "windows": "C:/ProgramData/gemini-cli"}, getenv)
}

// system sets where Gemini CLI, or what was made from it, has its system settings and defaults; dirs is by system, "" for all others.
func (p places) system(name, variables string, dirs map[string]string, getenv func(string) string) {
	settings := cmp.Or(p.clean(getenv(variables+"_SYSTEM_SETTINGS_PATH")), cmp.Or(dirs[p.where], dirs[""])+"/settings.json")
	p.set(name+" system", settings)
	p.set(name+" defaults", cmp.Or(p.clean(getenv(variables+"_SYSTEM_DEFAULTS_PATH")), path.Dir(settings)+"/system-defaults.json"))
}

func (p places) set(name, dir string) {
	if dir != "" {
		p.by[name] = []string{dir}
	}
}

// below sets a place to where a variable says, or else to a path below the home directory.
func (p places) below(name, said, home, rest string) {
	dir := p.clean(said)
	if dir == "" {
		dir = joined(home, rest)
	}
	p.set(name, dir)
}

// joined is a path below a directory; empty where that isn't known.
func joined(dir, rest string) string {
	if dir == "" {
		return ""
	}
	return path.Join(dir, rest)
}

// clean makes a path one with slashes, cleaned; empty if it isn't absolute.
func (p places) clean(native string) string {
	if p.windows {
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

// native is a path as the system writes it.
func (p places) native(slashed string) string {
	if p.windows {
		return strings.ReplaceAll(slashed, "/", `\`)
	}
	return slashed
}

// ancestors is dir and every directory above it, nearest first, without the root: what lies there is nobody's project.
func ancestors(dir string) []string {
	var up []string
	for d := dir; ; d = path.Dir(d) {
		if d == "/" || d == "." || strings.HasSuffix(d, ":") || strings.HasSuffix(d, ":/") {
			return up
		}
		up = append(up, d)
	}
}

// expand is the paths that a row's patterns stand for, as the system writes them. A pattern about a place that isn't known
// stands for none.
func (p places) expand(where map[string][]string) []string {
	patterns, ok := where[p.where]
	if !ok {
		patterns = where["linux"]
	}
	var out []string
	for _, pattern := range patterns {
		rest, placed := strings.CutPrefix(pattern, "{")
		if !placed {
			out = append(out, p.native(pattern))
			continue
		}
		name, tail, _ := strings.Cut(rest, "}")
		for _, dir := range p.by[name] {
			out = append(out, p.native(dir+tail))
		}
	}
	return out
}

// projectOf returns the directory of the project that a project's file belongs to: the nearest above it that the working directory
// is in; empty for a file of no project.
func (p places) projectOf(native string) string {
	file := p.clean(native)
	for _, dir := range p.by["up"] {
		if p.holds(dir, file) {
			return dir
		}
	}
	return ""
}

// holds reports whether a path is a folder or lies in it.
func (p places) holds(folder, file string) bool {
	if p.windows {
		folder, file = strings.ToLower(folder), strings.ToLower(file)
	}
	return folder != "" && (file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/"))
}

// row reads the files of one row.
func (s *scan) row(r row) {
	if read := readers[[2]string{r.host, r.scope}]; read != nil {
		read(s, r)
		return
	}
	for _, p := range s.places.expand(r.where) {
		if r.form.gate != open && r.form.gate != asked && s.usersOwn(r.host, p) {
			continue // in the home directory, a project's file is the user's
		}
		if dir, ending := s.directoryOf(p); ending != "" {
			s.directory(r, dir, ending, false)
			continue
		}
		if !s.listing[p] || r.scope == localScope { // what the user has listed needs no host's word, and is read already
			s.file(r, p, false)
		}
	}
}

// directoryOf splits the pattern of a directory; ending is empty for a file.
func (s *scan) directoryOf(p string) (dir, ending string) {
	for _, ending := range []string{".json", ".yaml"} {
		if dir, ok := strings.CutSuffix(p, s.places.native("/*"+ending)); ok {
			return dir, ending
		}
	}
	return p, ""
}

// usersOwn says whether a file is one that the user wrote for all projects.
func (s *scan) usersOwn(host, p string) bool {
	if s.own == nil {
		s.own = map[[2]string]bool{}
		for i := range sources {
			if r := &sources[i]; r.form.gate == open {
				for _, file := range s.places.expand(r.where) {
					s.own[[2]string{r.host, file}] = true
				}
			}
		}
	}
	return s.own[[2]string{host, p}]
}
