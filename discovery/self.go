package discovery

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// demoServers are the arguments with which the bridge serves made-up data, and calls no server.
var demoServers = []string{"demo-server", "demo-server github"}

// isSelf reports whether an entry's command line starts the bridge: by its path, through a link, by
// a name on PATH, or by the name of its program or package, behind launchers too. It looks at what
// would be run, not at every word: a server that is given the path of a directory called mcp-bridge
// is not the bridge. What it misses is refused once it is started: a bridge below a bridge uses no
// servers, and says in its handshake what it is.
func (s *scan) isSelf(e *config.Entry) bool {
	if slices.Contains(demoServers, strings.Join(e.Args, " ")) {
		return false
	}
	pathList := e.Env["PATH"]
	words := append([]string{e.Command}, e.Args...)
	for _, w := range words[:min(len(words), maxWords)] {
		if strings.ContainsAny(w, `/\`) && s.isExecutable(w, pathList) {
			return true
		}
	}
	started := programs(words, maxLaunchers)
	for _, program := range started[:min(len(started), maxWords)] {
		if strings.EqualFold(programName(program), config.Own) || s.isExecutable(program, pathList) {
			return true
		}
	}
	return false
}

func (s *scan) isExecutable(command, pathList string) bool {
	exe := s.Env.Executable
	if exe == "" || command == "" || strings.HasPrefix(command, `\\`) || strings.HasPrefix(command, "//") ||
		strings.Contains(command, "://") {
		return false // looking at a file on another machine would reach for it
	}
	if s.samePath(command, exe) {
		return true
	}
	if s.Env.Resolve == nil {
		return false
	}
	resolved := s.Env.Resolve(command, pathList)
	return resolved != "" && s.samePath(resolved, exe)
}

func (s *scan) samePath(a, b string) bool {
	if s.Windows || s.Darwin { // their file systems mostly take either case
		return strings.EqualFold(strings.ReplaceAll(a, `\`, "/"), strings.ReplaceAll(b, `\`, "/"))
	}
	return a == b
}

var (
	registries = regexp.MustCompile(`^(npm|jsr|github):`)
	versions   = regexp.MustCompile(`(.)[@:\[=<>~! ].*`)
	endings    = regexp.MustCompile(`(?i)(.)\.(exe|cmd|bat|com|ps1|sh|js|mjs|cjs|py|pyz|git)$`)
)

// programName returns the plain name of a program or a package: without directory, scope, registry,
// version, extras and the endings of programs and scripts.
func programName(word string) string {
	name := path.Base(strings.TrimRight(strings.ReplaceAll(word, `\`, "/"), "/"))
	name = registries.ReplaceAllString(name, "")
	return endings.ReplaceAllString(versions.ReplaceAllString(name, "$1"), "$1")
}

const (
	maxWords     = 256 // of one command line that are looked up as files
	maxLaunchers = 16  // that start one another
)

// launchers are the programs that entries commonly begin with and that start another one, with the
// words of which one comes before it, if any.
var launchers = map[string][]string{
	"npx": nil, "bunx": nil, "pnpx": nil, "npm": {"exec", "x"}, "pnpm": {"dlx", "exec"},
	"yarn": {"dlx", "exec"}, "bun": {"x", "run"}, "deno": {"run"}, "node": nil,
	"uvx": nil, "uv": {"run", "tool"}, "pipx": {"run"},
	"python": nil, "go": {"run"}, "docker": {"run"}, "podman": {"run"}, "mise": {"exec", "x"},
	"sh": nil, "bash": nil, "zsh": nil, "powershell": nil, "pwsh": nil, "cmd": nil,
	"env": nil, "sudo": nil, "nice": nil, "nohup": nil, "exec": nil,
}

// Options of launchers. All others take the next word as a value that names no program.
var (
	flags = strings.Fields("-y --yes -q --quiet -A -i -t -it -d -l -x -E -H --rm --init --interactive " +
		"--tty --isolated --no-cache -NoProfile -NoLogo -NonInteractive /c /d /s /k")
	nameOptions   = []string{"-p", "--package", "--from", "--spec", "-m", "-File"}
	scriptOptions = []string{"-c", "-lc", "--call", "-S", "-Command"}
)

// programs returns every word of a command line that names something to be run, launchers included,
// as far as they are known.
func programs(words []string, left int) (found []string) {
	for len(words) > 0 && isAssignment(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || left == 0 {
		return nil
	}
	found = append(found, words[0])
	if i := slices.Index(words, "--"); i > 0 { // any program that runs another one may take it after --
		return append(found, programs(words[i+1:], left-1)...)
	}
	verbs, ok := launchers[strings.TrimRight(strings.ToLower(programName(words[0])), "0123456789.")]
	words = words[1:]
	if verbs != nil {
		if len(words) == 0 || !slices.Contains(verbs, words[0]) {
			return found // what it does otherwise runs nothing of ours
		}
		if words = words[1:]; len(words) > 0 && words[0] == "run" {
			words = words[1:] // uv tool run
		}
	}
	for i := 0; ok && i < len(words); i++ {
		option, value, attached := strings.Cut(words[i], "=")
		switch {
		case slices.Contains(flags, option), isAssignment(words[i]):
			continue
		case !strings.HasPrefix(option, "-"):
			return append(found, programs(words[i:], left-1)...)
		case !attached && i+1 < len(words):
			i++
			value = words[i]
		}
		if slices.Contains(nameOptions, option) {
			found = append(found, value)
		} else if slices.Contains(scriptOptions, option) {
			for _, command := range commands(value) {
				found = append(found, programs(command, left-1)...)
			}
		}
	}
	return found
}

// commands returns the words of each command of a shell's script. A backslash before a letter is
// one of a path of Windows.
func commands(script string) (list [][]string) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		inWord = false
		word.Reset()
	}
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == quote:
			quote = 0
			continue
		case quote == 0 && (c == '"' || c == '\''):
			quote, inWord = c, true
			continue
		case quote == 0 && strings.IndexByte(";&|\n", c) >= 0:
			endWord()
			list, words = append(list, words), nil
			continue
		case quote == 0 && (c == ' ' || c == '\t'):
			endWord()
			continue
		case c == '\\' && quote != '\'' && i+1 < len(script) &&
			strings.IndexByte("\"'\\;&| ", script[i+1]) >= 0:
			i++
		}
		word.WriteByte(script[i])
		inWord = true
	}
	endWord()
	return append(list, words)
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, `/\-.@:`)
}
