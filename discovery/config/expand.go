package config

import (
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Fill fills in what an entry leaves open, in its host's way, and notes what it was before. What
// can't be filled in stays as it is, and makes the entry Unusable.
func (r *Reader) Fill(e *Entry) {
	written := e.Clone()
	bad := r.fill(e)
	if !bad.Refused() {
		bad = r.socket(e)
	}
	if !e.Unusable.Refused() {
		e.Unusable = bad
	}
	e.OfProject = e.File.InProject()
	e.Files = append([]string{e.Source.Path}, e.Files...)
	if slices.ContainsFunc(e.Secrets, func(s Secret) bool { return s.In == "url" }) {
		e.OAuth = OAuth{Off: true} // a login goes by the URL
	}
	e.FilledIn = filledIn(&written, e)
	e.Written = r.written(&written, e)
}

func (r *Reader) fill(e *Entry) (bad Refusal) {
	first := func(why Refusal) {
		if !bad.Refused() {
			bad = why
		}
	}
	for _, t := range e.texts() {
		f := filling{reader: r, entry: e, name: t.name, env: e.Env}
		if strings.HasPrefix(t.name, "env.") {
			f.env = nil
		}
		value, why := f.whole(t.text)
		first(why)
		if !why.Refused() && value != t.text {
			t.set(value)
			e.take(e.File.Format.References.pattern.String()) // the same text means something else elsewhere
		}
	}
	if !bad.Refused() {
		bad = e.envFile(r)
	}
	if e.Plugin != nil {
		first(e.Plugin.helper(e, r.Windows))
		for name, value := range e.Plugin.Variables {
			if _, said := e.Env[name]; e.Transport == Stdio && !said {
				e.SetEnv(name, value)
			}
		}
	}
	first(e.fillVariables(r.Env.Getenv))
	return bad
}

// fillVariables fills in what is named by variables of ours.
func (e *Entry) fillVariables(getenv func(string) string) (bad Refusal) {
	for _, name := range e.Forward {
		if v := getenv(name); v != "" {
			e.SetEnv(name, v)
		}
	}
	for _, name := range e.Keyring {
		v := getenv(name)
		if v != "" {
			e.SetEnv(name, v)
		} else if !bad.Refused() && e.Env[name] == "" {
			bad = Refusal{"its variable " + Display(name) + " is in the keyring of " + e.Source.Host +
				", which nothing else can read",
				"set " + Display(name) + " in the environment that mcp-bridge is started with"}
		}
	}
	for header, name := range e.HeaderEnv { // one that isn't set is left out, as Codex does
		if v := getenv(name); v != "" {
			e.SetHeader(header, v)
		}
	}
	if name := e.BearerTokenEnv; name != "" && getenv(name) == "" && !bad.Refused() {
		bad = Refusal{"it needs the variable " + Display(name) + " for its token, which is not set here",
			setIt}
	}
	return bad
}

// helper sees to the plugin's directories in the command that makes headers, which is a shell's: it
// finds them in its environment, where nothing in them is a word of the command. The shell of
// Windows knows no such references, so they are filled in there. Options would be read by the shell
// too, and Claude Code doesn't take them there.
func (p *Plugin) helper(e *Entry, windows bool) Refusal {
	if e.HeadersHelper == "" {
		return Refusal{}
	}
	if strings.Contains(e.HeadersHelper, "${user_config.") {
		return Refusal{"its headersHelper has an option of the plugin in it, which Claude Code doesn't " +
			"take there",
			"tell who made the plugin"}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		value, reference := p.Variables[name], "${"+name+"}"
		switch {
		case !windows:
			e.SetEnv(name, value)
		case !strings.Contains(e.HeadersHelper, reference):
		case hidden(value) || strings.ContainsAny(value, "&|<>^()%!\""):
			return Refusal{"its headersHelper has " + name +
				" in it, and in that is a character that cmd acts on",
				"move that directory to a path without it"}
		default:
			e.HeadersHelper = strings.ReplaceAll(e.HeadersHelper, reference, value)
		}
	}
	return Refusal{}
}

// ProjectDir is the variable with which Claude Code tells a plugin's programs their project.
const ProjectDir = "CLAUDE_PROJECT_DIR"

// socket takes a URL apart that names a Unix socket. There is no login on one: the socket's
// permissions say who may connect, and all sockets share one URL.
func (r *Reader) socket(e *Entry) Refusal {
	u, err := url.Parse(e.URL)
	if !e.File.Format.Remote.Sockets || e.Transport == Stdio || err != nil || u.Scheme != "unix" {
		return Refusal{}
	}
	if u.Host != "" || r.Windows || r.Clean(u.Path) == "" {
		return Refusal{"its url names a Unix socket that can't be connected to here",
			`write "unix:///path/to/server.sock"`}
	}
	if err := r.owners.Path(u.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		why := r.Others(err)
		return Refusal{"its url names a socket, and " + why.Reason, why.Next}
	}
	e.Socket, e.URL, e.OAuth = u.Path, "http://localhost/"+strings.TrimPrefix(u.Fragment,
		"/"), OAuth{Off: true}
	return Refusal{}
}

// CanStart refuses an entry that its host uses and the bridge can't start or reach.
func (e *Entry) CanStart() Refusal {
	switch {
	case e.Transport == webSocket:
		return Refusal{"it is reached by WebSocket, which the protocol doesn't have",
			"use its http address, if it has one"}
	case e.Unusable.Refused():
		return e.Unusable
	case e.Transport != Stdio:
		return e.reachable()
	}
	for _, t := range e.texts() {
		if strings.ContainsRune(t.text, 0) {
			return Refusal{"its " + t.name + " has a NUL character, with which no program can be started",
				"take it out"}
		}
	}
	if strings.TrimSpace(e.Command) == "" {
		return Refusal{"its command is empty when it is filled in", "correct it"}
	}
	return Refusal{}
}

func (e *Entry) reachable() Refusal {
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Scheme == "":
		return Refusal{"its url is not one", `write "https://…"`}
	case u.Scheme != "http" && u.Scheme != "https":
		return Refusal{"its url is of the kind " + Display(u.Scheme) + ":, which isn't HTTP",
			"use its http or https address, if it has one"}
	case u.Hostname() == "":
		return Refusal{"its url names no host", `write "https://…"`}
	}
	for name, value := range e.Headers {
		isToken := name != "" && !strings.ContainsFunc(name, func(r rune) bool { // RFC 9110
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
		})
		if !isToken {
			return Refusal{"it has a header whose name can't be sent", "correct the name"}
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return Refusal{"the value of its header " + Display(name) + " has a line break or a NUL in it",
				"take it out"}
		}
	}
	return Refusal{}
}

// StartDir returns the directory that an entry names, absolute; empty where it names none. A
// relative one counts from the working directory, as in VS Code, or from the file if that is the
// bridge's own.
func (r *Reader) StartDir(e *Entry) string {
	if e.Dir == "" || r.Clean(e.Dir) != "" {
		return e.Dir
	}
	base := r.Clean(r.Env.Dir)
	if e.Source.Host == Own {
		base = path.Dir(r.Clean(e.Source.Path))
	}
	return r.Native(path.Join(base, strings.ReplaceAll(e.Dir, `\`, "/")))
}
