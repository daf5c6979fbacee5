package discovery

import (
	"path"
	"slices"
	"strings"
)

// demoServers are the arguments with which the bridge serves made-up data to try the bridge with, and calls no server.
var demoServers = []string{"demo-server", "demo-server github"}

// isSelf says whether a server's command line starts the bridge: by path, through a link, by a name on PATH, or by the name
// of its package, image or program behind the wrappers that such entries use. It looks at what would be run, not at every
// word: a server that is given the path of a directory called mcp-bridge is not the bridge.
func (s *scan) isSelf(srv Server) bool {
	if slices.Contains(demoServers, strings.Join(srv.Args, " ")) {
		return false
	}
	pathList := srv.Env["PATH"]
	words := append([]string{srv.Command}, srv.Args...)
	for _, w := range words[:min(len(words), maxLooked)] {
		// The bridge's own file is meant wherever it stands, behind wrappers that aren't known too.
		if strings.ContainsAny(w, `/\`) && s.isExecutable(w, pathList) {
			return true
		}
	}
	for _, c := range programs(words) {
		if s.isOurName(c) || s.isExecutable(c, pathList) {
			return true
		}
	}
	return false
}

func (s *scan) isExecutable(command, pathList string) bool {
	exe := s.env.Self.Executable
	if exe == "" || command == "" || strings.HasPrefix(command, `\\`) || strings.HasPrefix(command, "//") || strings.Contains(command, "://") {
		return false // looking at a file on another machine would reach for it
	}
	if s.samePath(command, exe) {
		return true
	}
	if s.env.Resolve == nil {
		return false
	}
	resolved := s.env.Resolve(command, pathList)
	return resolved != "" && s.samePath(resolved, exe)
}

func (s *scan) samePath(a, b string) bool {
	if s.env.GOOS == "windows" || s.env.GOOS == "darwin" { // their file systems mostly take either case
		return strings.EqualFold(strings.ReplaceAll(a, `\`, "/"), strings.ReplaceAll(b, `\`, "/"))
	}
	return a == b
}

func (s *scan) isOurName(word string) bool {
	name := programName(word)
	return slices.ContainsFunc(s.env.Self.Names, func(own string) bool { return strings.EqualFold(name, own) })
}

// programName is the plain name of a program, a package or an image: without directory, scope, registry, version, tag,
// extras and the endings of programs and scripts.
func programName(word string) string {
	name := strings.TrimRight(strings.ReplaceAll(word, `\`, "/"), "/")
	if i := strings.LastIndex(name, "#"); i > 0 { // a fragment of a git URL
		name = name[:i]
	}
	if i := strings.Index(name, "@sha256:"); i > 0 {
		name = name[:i]
	}
	name = path.Base(name)
	for _, registry := range []string{"npm:", "jsr:", "github:", "docker:"} {
		if i := strings.LastIndex(name, registry); i >= 0 {
			name = name[i+len(registry):]
		}
	}
	if i := strings.IndexAny(name, "@:[=<>~! "); i > 0 {
		name = name[:i]
	}
	for _, ext := range []string{".exe", ".cmd", ".bat", ".com", ".ps1", ".sh", ".js", ".mjs", ".cjs", ".py", ".pyz", ".git"} {
		if n := len(name) - len(ext); n > 0 && strings.EqualFold(name[n:], ext) {
			return name[:n]
		}
	}
	return name
}

const (
	maxLooked   = 256  // words of one command line that are looked up as files
	maxWrappers = 16   // how deep wrappers are followed
	maxCommands = 1000 // how many command lines within one are followed
)

// programs is every word of a command line that names something to be run, wrappers included, as far as the wrappers are
// known.
func programs(words []string) []string {
	f := finder{left: maxCommands}
	f.command(words, 0)
	return f.found
}

// finder collects the programs of one command line.
type finder struct {
	found []string
	left  int // command lines that may still be followed
}

func (f *finder) command(words []string, depth int) {
	if f.left--; len(words) == 0 || depth > maxWrappers || f.left < 0 {
		return
	}
	f.found = append(f.found, words[0])
	name := strings.ToLower(programName(words[0]))
	w, known := wrappers[name]
	switch {
	case isShell(name):
		f.shell(name, words[1:], depth)
	case known:
		f.wrapped(w, words[1:], depth)
	default: // any program that runs another one may take it after --
		if i := slices.Index(words, "--"); i >= 0 {
			f.command(words[i+1:], depth+1)
		}
	}
}

// wrapper is how a program that runs another one takes its arguments.
type wrapper struct {
	verbs    []string            // subcommands after which something is run; nil: it takes none
	nested   map[string]*wrapper // subcommands whose arguments are those of another wrapper
	values   []string            // options that take the next word as their value
	names    []string            // options whose value names a package or a program
	scripts  []string            // options whose value is a command line for a shell
	flags    string              // short options without a value; if set, every other option takes one
	switches []string            // long options without a value, where flags is set
	skip     int                 // words before the program that are something else
	next     bool                // what comes after the program is a command line too
}

// wrapped finds what a wrapper with these arguments runs.
func (f *finder) wrapped(w *wrapper, words []string, depth int) {
	verb := w.verbs == nil
	skip := w.skip
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			f.command(words[i+1:], depth+1)
			return
		case strings.HasPrefix(word, "-") && len(word) > 1:
			option, value, attached := strings.Cut(word, "=")
			if !attached && w.takesValue(option) && i+1 < len(words) {
				i++
				value = words[i]
			}
			if slices.Contains(w.scripts, option) {
				f.script(value, depth+1)
			} else if slices.Contains(w.names, option) {
				f.found = append(f.found, value)
			}
		case !verb:
			if nested := w.nested[word]; nested != nil {
				f.wrapped(nested, words[i+1:], depth)
				return
			}
			if !slices.Contains(w.verbs, word) {
				return // what it does otherwise runs nothing of ours
			}
			verb = true
		case isAssignment(word):
		case skip > 0:
			skip--
		case w.next:
			f.found = append(f.found, word)
			f.command(words[i+1:], depth+1)
			return
		default:
			f.command(words[i:], depth+1)
			return
		}
	}
}

func (w *wrapper) takesValue(option string) bool {
	if slices.Contains(w.values, option) || slices.Contains(w.names, option) || slices.Contains(w.scripts, option) {
		return true
	}
	if w.flags == "" {
		return false
	}
	if strings.HasPrefix(option, "--") {
		return !slices.Contains(w.switches, option)
	}
	if !strings.ContainsRune(w.flags, rune(option[1])) {
		return len(option) == 2 // else the value is attached: -v/a:/b
	}
	last := option[len(option)-1]
	return !strings.ContainsRune(w.flags, rune(last)) // -itv /a:/b
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, `/\-.@:`)
}
