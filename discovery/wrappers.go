package discovery

import (
	"slices"
	"strings"
)

// Options of wrappers that take a value, as their manuals list them. One that is missing here costs a wrong guess at the
// program: a bridge that isn't recognised by its name is still recognised by its file, and by the bridge it starts.
var (
	npx = &wrapper{
		values:  []string{"--registry", "--cache", "--prefix", "--userconfig", "--node-options", "-n", "--workspace", "-w", "--loglevel"},
		names:   []string{"-p", "--package"},
		scripts: []string{"-c", "--call"},
	}
	uvx = &wrapper{
		values: []string{"--with", "--with-editable", "--with-requirements", "-w", "--python", "-p", "--index", "--index-url", "-i", "--extra-index-url",
			"--default-index", "--directory", "--project", "--cache-dir", "--refresh-package", "--env-file", "--config-file", "-c", "--constraints",
			"--overrides", "--find-links", "-f", "--prerelease", "--resolution", "--color", "--link-mode", "--exclude-newer", "--extra", "--group"},
		names: []string{"--from", "--spec", "-m", "--module"},
	}
	script = &wrapper{ // an interpreter: the first word is a file
		values: []string{"-r", "--require", "--import", "--loader", "-X", "-W", "--env-file", "--cwd", "-C", "--conditions"},
		names:  []string{"-m"},
	}
	container = containers(map[string]*wrapper{"container": containers(nil)})
	prefix    = &wrapper{}
	subsystem = &wrapper{values: []string{"-d", "--distribution", "-u", "--user", "--cd"}}
)

// containers is docker and its likes: the image or container, then a command in it.
func containers(nested map[string]*wrapper) *wrapper {
	return &wrapper{
		verbs: []string{"run", "exec", "create"}, flags: "itdPq", switches: containerSwitches, names: []string{"--entrypoint"}, next: true, nested: nested,
	}
}

// containerSwitches are the long options of docker run, podman run and their exec that take no value.
var containerSwitches = []string{
	"--interactive", "--tty", "--detach", "--rm", "--init", "--privileged", "--read-only", "--publish-all", "--quiet", "--no-healthcheck",
	"--sig-proxy", "--oom-kill-disable", "--disable-content-trust", "--replace", "--rmi", "--tls-verify", "--no-hosts", "--no-hostname",
	"--env-host", "--http-proxy", "--read-only-tmpfs", "--passwd", "--latest", "--use-api-socket", "--debug", "--tls", "--tlsverify",
}

// wrappers are the programs that run another one, by their plain name.
var wrappers = map[string]*wrapper{
	"npx": npx, "bunx": npx, "pnpx": npx,
	"npm":   {verbs: []string{"exec", "x"}, values: npx.values, names: npx.names, scripts: npx.scripts},
	"pnpm":  {verbs: []string{"dlx", "exec", "run"}, values: []string{"-C", "--dir", "--filter", "-F"}, names: []string{"--package"}},
	"yarn":  {verbs: []string{"dlx", "exec", "run"}, values: []string{"--cwd"}, names: []string{"-p", "--package"}},
	"bun":   {verbs: []string{"x", "run"}, values: []string{"--cwd", "-r", "--preload"}, names: []string{"-p", "--package"}},
	"uvx":   uvx,
	"pipx":  {verbs: []string{"run"}, values: uvx.values, names: uvx.names},
	"uv":    {verbs: []string{"run"}, values: uvx.values, names: uvx.names, nested: map[string]*wrapper{"tool": {verbs: []string{"run"}, values: uvx.values, names: uvx.names}}},
	"go":    {verbs: []string{"run", "tool"}, values: []string{"-C", "-tags", "-ldflags", "-mod", "-modfile"}},
	"node":  script,
	"deno":  {verbs: []string{"run"}, values: []string{"-c", "--config", "--import-map"}},
	"tsx":   script,
	"mise":  {verbs: []string{"exec", "x"}, values: []string{"-C", "--cd", "-j"}, scripts: []string{"-c", "--command"}},
	"asdf":  {verbs: []string{"exec"}},
	"op":    {verbs: []string{"run"}, values: []string{"--env-file", "--account"}},
	"nix":   {verbs: []string{"run", "shell", "develop"}, names: []string{"-c", "--command"}},
	"cargo": {verbs: []string{"run"}, names: []string{"--bin", "-p", "--package"}},

	"docker": container, "podman": container, "nerdctl": container, "finch": container,

	"env":   {values: []string{"-u", "--unset", "-C", "--chdir"}, scripts: []string{"-S", "--split-string"}},
	"sudo":  {values: []string{"-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-r", "-t", "-T", "-U", "-D"}},
	"doas":  {values: []string{"-u", "-C"}},
	"nice":  {values: []string{"-n", "--adjustment"}},
	"exec":  {values: []string{"-a"}},
	"time":  {values: []string{"-f", "--format", "-o", "--output"}},
	"nohup": prefix, "setsid": prefix, "command": prefix, "builtin": prefix, "caffeinate": {values: []string{"-t", "-w"}},
	"timeout":          {values: []string{"-k", "--kill-after", "-s", "--signal"}, skip: 1},
	"stdbuf":           {values: []string{"-i", "-o", "-e", "--input", "--output", "--error"}},
	"ionice":           {values: []string{"-c", "-n", "--class", "--classdata"}},
	"taskset":          {skip: 1},
	"xvfb-run":         {values: []string{"-n", "-s", "-e", "-f", "-p", "-w", "--server-num", "--server-args"}},
	"dbus-run-session": {values: []string{"--config-file"}},
	"start":            {values: []string{}}, // of cmd
	"call":             prefix,
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "busybox", "cmd", "powershell", "pwsh", "wsl":
		return true
	}
	return strings.HasPrefix(name, "python") || name == "py"
}

// shell finds what a shell or an interpreter with these arguments runs: a script in an argument, or a file.
func (f *finder) shell(name string, words []string, depth int) {
	switch {
	case strings.HasPrefix(name, "python"), name == "py":
		f.wrapped(script, words, depth)
	case name == "busybox", name == "wsl":
		f.wrapped(subsystem, trimWords(words, "-e", "--exec"), depth)
	case name == "cmd":
		f.cmd(words, depth)
	case name == "powershell", name == "pwsh":
		f.powershell(words, depth)
	default:
		f.posixShell(words, depth)
	}
}

func (f *finder) posixShell(words []string, depth int) {
	for i, w := range words {
		switch {
		case i > 0 && slices.Contains([]string{"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}, words[i-1]):
		case strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "c"):
			if i+1 < len(words) {
				f.script(words[i+1], depth+1)
			}
			return
		case strings.HasPrefix(w, "-"), strings.HasPrefix(w, "+"):
		default:
			f.found = append(f.found, w) // a script file
			return
		}
	}
}

func (f *finder) cmd(words []string, depth int) {
	for i, w := range words {
		low := strings.ToLower(w)
		switch {
		case strings.HasPrefix(low, "/c"), strings.HasPrefix(low, "/k"):
			rest := trimWords(append([]string{w[2:]}, words[i+1:]...), "")
			f.command(rest, depth+1)
			f.script(strings.Join(rest, " "), depth+1)
			return
		case !strings.HasPrefix(w, "/"):
			return
		}
	}
}

func (f *finder) powershell(words []string, depth int) {
	for i, w := range words {
		low := strings.ToLower(w)
		switch {
		case len(low) > 1 && strings.HasPrefix("-command", low):
			f.script(strings.Join(words[i+1:], " "), depth+1)
			return
		case low == "-file", low == "-f":
			f.found = append(f.found, words[i+1:min(i+2, len(words))]...)
			return
		case !strings.HasPrefix(w, "-"):
			f.script(strings.Join(words[i:], " "), depth+1)
			return
		}
	}
}

// trimWords leaves out the words that are one of drop.
func trimWords(words []string, drop ...string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(drop, w) })
}

// script finds what the simple commands of a shell script run. It knows quotes and separators, and takes a word with a
// variable in it as it stands.
func (f *finder) script(text string, depth int) {
	if depth > maxWrappers || f.left < 0 {
		return
	}
	commands := simpleCommands(text)
	if strings.Contains(text, "`") || strings.Contains(text, "$(") { // what is substituted within quotes is run too
		commands = append(commands, simpleCommands(strings.ReplaceAll(text, `"`, ";"))...)
	}
	for _, words := range commands {
		for len(words) > 0 && (isAssignment(words[0]) || slices.Contains(leadIns, words[0])) {
			words = words[1:]
		}
		f.command(words, depth)
	}
}

// leadIns are words of a shell that may stand before a command.
var leadIns = []string{"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "&"}

// simpleCommands splits a script at its separators, and each command into its words.
func simpleCommands(script string) (commands [][]string) {
	var command []string
	var word strings.Builder
	inWord := false
	var quote rune
	endWord := func() {
		if inWord {
			command = append(command, word.String())
			word.Reset()
			inWord = false
		}
	}
	endCommand := func() {
		endWord()
		if len(command) > 0 {
			commands = append(commands, command)
			command = nil
		}
	}
	for _, r := range script {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t", r):
			endWord()
		case strings.ContainsRune("\r\n;|&()`", r):
			endCommand()
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	endCommand()
	return commands
}
