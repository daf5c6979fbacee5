package discovery

import (
	"path"
	"slices"
	"strings"
)

// isSelf says whether a server's command line starts the bridge: by path, through a link, by a name on PATH, or by the name
// of its package, image or program behind the wrappers that such entries use. It looks at what would be run, not at every
// word: a server that is given the path of a directory called mcp-bridge is not the bridge.
func (s *scan) isSelf(srv Server) bool {
	pathList := srv.Env["PATH"]
	for _, w := range append([]string{srv.Command}, srv.Args...) {
		// The bridge's own file is meant wherever it stands, behind wrappers that aren't known too.
		if strings.ContainsAny(w, `/\`) && s.isExecutable(w, pathList) {
			return true
		}
	}
	for _, c := range programs(append([]string{srv.Command}, srv.Args...), 0) {
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

// maxWrappers bounds how deep wrappers are followed.
const maxWrappers = 16

// programs is every word of a command line that names something to be run, wrappers included, as far as the wrappers are
// known.
func programs(words []string, depth int) []string {
	if len(words) == 0 || depth > maxWrappers {
		return nil
	}
	found := []string{words[0]}
	name := strings.ToLower(programName(words[0]))
	if isShell(name) {
		return append(found, ofShell(name, words[1:], depth)...)
	}
	w, known := wrappers[name]
	if !known {
		if i := slices.Index(words, "--"); i >= 0 { // as every program that runs another one can take it
			return append(found, programs(words[i+1:], depth+1)...)
		}
		return found
	}
	return append(found, w.programs(words[1:], depth)...)
}

// wrapper is how a program that runs another one takes its arguments.
type wrapper struct {
	verbs    []string            // subcommands after which something is run; nil: it takes none
	values   []string            // options that take the next word as their value
	flags    string              // short options without a value; if set, every other option takes one
	switches []string            // long options without a value, where flags is set
	names    []string            // of values: those that name a package or program
	scripts  []string            // of values: those that hold a command line for a shell
	skip     int                 // words before the program that are something else
	next     bool                // what comes after the program is a command line too
	nested   map[string]*wrapper // verbs whose arguments are those of another wrapper
}

// programs is what a wrapper with these arguments runs.
func (w *wrapper) programs(words []string, depth int) (found []string) {
	verb := w.verbs == nil
	skip := w.skip
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			return append(found, programs(words[i+1:], depth+1)...)
		case strings.HasPrefix(word, "-") && len(word) > 1:
			option, value, attached := strings.Cut(word, "=")
			if !attached && w.takesValue(option) && i+1 < len(words) {
				i++
				value = words[i]
			}
			if slices.Contains(w.scripts, option) {
				found = append(found, ofScript(value, depth+1)...)
			} else if slices.Contains(w.names, option) {
				found = append(found, value)
			}
		case !verb:
			if nested := w.nested[word]; nested != nil {
				return append(found, nested.programs(words[i+1:], depth+1)...)
			}
			if !slices.Contains(w.verbs, word) {
				return found // what it does otherwise runs nothing of ours
			}
			verb = true
		case isAssignment(word):
		case skip > 0:
			skip--
		case w.next:
			return append(append(found, word), programs(words[i+1:], depth+1)...)
		default:
			return append(found, programs(words[i:], depth+1)...)
		}
	}
	return found
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
