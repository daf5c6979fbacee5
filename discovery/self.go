package discovery

import (
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// demoServers are the arguments with which the bridge serves made-up data, and calls no server.
var demoServers = []string{"demo-server", "demo-server github"}

// isSelf reports whether an entry's command line starts the bridge: by its path, through a link, by a
// name on PATH, or by the name of its program or package, behind launchers too. It looks at what would
// be run, not at every word: a server that is given the path of a directory called mcp-bridge is not
// the bridge. What it misses is refused once it is started: a bridge below a bridge uses no servers,
// and says in its handshake what it is.
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
		if s.isOurName(program) || s.isExecutable(program, pathList) {
			return true
		}
	}
	return false
}

func (s *scan) isExecutable(command, pathList string) bool {
	exe := s.Env.Self.Executable
	if exe == "" || command == "" || strings.HasPrefix(command, `\\`) || strings.HasPrefix(command, "//") || strings.Contains(command, "://") {
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

func (s *scan) isOurName(word string) bool {
	name := programName(word)
	return slices.ContainsFunc(s.Env.Self.Names, func(own string) bool { return strings.EqualFold(name, own) })
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

// A launcher is a program that starts another one, which its arguments name.
type launcher struct {
	verbs   []string // one of which comes first; none where it takes none
	flags   []string // options without a value; all others take the next word
	names   []string // options whose value names a program or package
	scripts []string // options whose value is a command line
	slash   bool     // options begin with a slash
}

var (
	packages = launcher{
		flags: []string{"-y", "--yes", "-q", "--quiet", "--silent", "-A"}, names: []string{"-p", "--package"},
		scripts: []string{"-c", "--call"},
	}
	python = launcher{
		flags: []string{"-q", "--quiet", "--isolated", "--offline", "--no-cache", "-n"}, names: []string{"--from", "--spec", "-m"},
	}
	container  = launcher{flags: []string{"-i", "-t", "-it", "-d", "-q", "--interactive", "--tty", "--detach", "--rm", "--init", "--read-only"}}
	shell      = launcher{flags: []string{"-l", "-e", "-i", "-x"}, scripts: []string{"-c", "-lc", "-ic"}}
	prefix     = launcher{flags: []string{"-i", "-E", "-H", "-b"}, scripts: []string{"-S"}}
	powershell = launcher{
		flags: []string{"-NoProfile", "-NoLogo", "-NonInteractive"}, names: []string{"-File"}, scripts: []string{"-Command", "-c"},
	}
)

func (l launcher) with(verbs ...string) launcher {
	l.verbs = verbs
	return l
}

// launchers are those that entries commonly begin with.
var launchers = map[string]launcher{
	"npx": packages, "bunx": packages, "pnpx": packages, "npm": packages.with("exec", "x"), "pnpm": packages.with("dlx", "exec"),
	"yarn": packages.with("dlx", "exec"), "bun": packages.with("x", "run"), "deno": packages.with("run"),
	"uvx": python, "pipx": python.with("run"), "uv": python.with("run", "tool"), "go": packages.with("run"),
	"python": python, "node": packages, "docker": container.with("run", "exec"), "podman": container.with("run", "exec"),
	"sh": shell, "bash": shell, "zsh": shell, "powershell": powershell, "pwsh": powershell,
	"cmd": {flags: []string{"/c", "/d", "/s", "/k"}, slash: true},
	"env": prefix, "sudo": prefix, "nice": prefix, "nohup": prefix, "exec": prefix, "mise": prefix.with("exec", "x"),
}

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
	l, ok := launchers[strings.TrimRight(strings.ToLower(programName(words[0])), "0123456789.")]
	if i := slices.Index(words, "--"); i > 0 { // any program that runs another one may take it after --
		return append(found, programs(words[i+1:], left-1)...)
	}
	if !ok {
		return found
	}
	words = words[1:]
	if l.verbs != nil {
		if len(words) == 0 || !slices.Contains(l.verbs, words[0]) {
			return found // what it does otherwise runs nothing of ours
		}
		if words = words[1:]; len(words) > 0 && words[0] == "run" {
			words = words[1:] // uv tool run
		}
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		option, value, attached := strings.Cut(word, "=")
		switch {
		case slices.Contains(l.flags, word):
		case strings.HasPrefix(word, "-"), l.slash && strings.HasPrefix(word, "/"):
			if i++; !attached && i < len(words) {
				value = words[i]
			} else if attached {
				i--
			}
			if slices.Contains(l.scripts, option) {
				for _, command := range separators.Split(value, -1) {
					found = append(found, programs(strings.Fields(quotes.Replace(command)), left-1)...)
				}
			} else if slices.Contains(l.names, option) {
				found = append(found, value)
			}
		case isAssignment(word):
		default:
			return append(found, programs(words[i:], left-1)...)
		}
	}
	return found
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, `/\-.@:`)
}

var (
	separators = regexp.MustCompile(`[;&|\n]+`)
	quotes     = strings.NewReplacer(`"`, "", `'`, "")
)

// isOwnURL reports whether a URL is of the bridge's own listener, by any name of this machine.
func (s *scan) isOwnURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, listen := range s.Env.Self.Listen {
		own, port, err := net.SplitHostPort(listen)
		if err == nil && port == effectivePort(u) && (strings.EqualFold(host, own) || isLocal(host) ||
			slices.ContainsFunc(s.Env.Self.Hosts, func(h string) bool { return strings.EqualFold(h, host) })) {
			return true
		}
	}
	return false
}
