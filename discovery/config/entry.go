package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Transport is how a server is spoken to.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // a program, over its standard input and output
	HTTP  Transport = "http"  // Streamable HTTP
	SSE   Transport = "sse"   // the older HTTP with server-sent events

	webSocket Transport = "ws" // of some hosts, and not of the protocol
)

// transports are the words that hosts use for them.
var transports = map[string]Transport{
	"stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamableHttp": HTTP, "streamable_http": HTTP, "remote": HTTP,
	"sse": SSE, "ws": webSocket, "websocket": webSocket,
}

// OAuth is what a file says of how to log in to a remote server. Its zero value says nothing: the
// server is asked.
type OAuth struct {
	Off          bool     // the file says not to log in
	ClientID     string   // registered beforehand; empty: registered when it is needed
	ClientSecret string   // of that client; a secret
	Scopes       []string // to ask for; nil: what the server says
	CallbackPort int      // of the redirect URI on this machine; 0: any
	MetadataURL  string   // of the authorization server's metadata; empty: found by asking the server
	Resource     string   // the resource indicator to send; empty: the server's URL
}

// An Entry is one server as its file has it, and what is filled in. Files are those that it takes
// values from, until Fill has added its own.
type Entry struct {
	Server
	File     *File
	Plugin   *Plugin // that brings it along, or nil
	Disabled bool
	Unusable Refusal // why the bridge can't use what the host uses

	EnvFile string   // a file of further variables
	Forward []string // variables of ours to hand on, if they are set
	Keyring []string // variables whose values are ours, or in the host's keyring
	Argv    []string // command and arguments before anything was filled in

	WrittenURL string            // before anything was filled in
	HeaderEnv  map[string]string // header → the variable of ours that holds its value

	taken []string // what other files say in it, and how it is filled in: a part of its ID
}

func (e *Entry) take(text string) { e.taken = append(e.taken, text) }

// SetEnv sets a variable.
func (e *Entry) SetEnv(name, value string) { set(&e.Env, name, value) }

// SetHeader sets a header.
func (e *Entry) SetHeader(name, value string) { set(&e.Headers, name, value) }

func set(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}

// ReadEntry reads an entry in the format of its file. What it refuses is malformed, or nothing that
// the host would use.
func (f *File) ReadEntry(o Object) (Entry, Refusal) {
	e, m, format := Entry{File: f}, &Members{Object: o}, f.Format
	typ := m.Text("type")
	if format.Prepare != nil && !m.bad.Refused() {
		m.Object, m.bad = format.Prepare(o)
		typ = m.Text("type")
	}
	url := URLKey{}
	for _, u := range slices.Backward(format.Remote.URLs) {
		if !m.Get(u.Key).Absent() {
			url = u // the first of them counts
		}
	}
	known := false
	switch e.Transport, known = transports[typ]; {
	case known:
	case typ != "":
		m.Refuse("its type isn't known", `write "type": "stdio" for a program`)
	case url.Key == "" || !m.Get(format.Program.Command).Is("nothing"):
		e.Transport = Stdio
		if url.Key != "" {
			e.Ignored = `its "` + url.Key + `", since it also has a "` + format.Program.Command + `"`
		}
	default:
		e.Transport = url.Transport
	}
	if e.Transport == Stdio {
		format.Program.read(&e, m)
	} else {
		format.Remote.read(&e, m, url.Key)
	}
	if format.Finish != nil {
		format.Finish(&e, m)
	}
	off, on := m.Flag(format.Disabled), m.Flag(format.Enabled)
	e.Disabled = off.Is("true") || on.Is("false")
	format.Tools.read(&e, m)
	e.Description = o.Text("description")
	return e, m.bad
}

// NeedsType is Format.Prepare of a host that skips an entry with a URL and without a type.
func NeedsType(host string) func(Object) (Object, Refusal) {
	return func(o Object) (Object, Refusal) {
		if o.Text("type") == "" && o.Get("command").Is("nothing") && !o.Get("url").Absent() {
			return o, Refusal{"it has a url and no type, and is skipped by " + host + " as invalid",
				`add "type": "http" to it`}
		}
		return o, Refusal{}
	}
}

// read reads what a program is started with.
func (p *Program) read(e *Entry, m *Members) {
	if p.Array && m.Get(p.Command).Is("an array") {
		if words := m.List(p.Command); len(words) > 0 {
			e.Command, e.Args = words[0], append(e.Args, words[1:]...)
		}
	} else {
		e.Command, e.Args = m.Text(p.Command), m.List("args")
	}
	e.Env = m.Variables(p.Env, p.NullEnv)
	if strings.TrimSpace(e.Command) == "" {
		m.RefuseNear(p.Command)
		m.Refuse("it has no command", `write "`+p.Command+`": "…"`)
	}
	e.Dir, e.EnvFile = m.Text(p.Dir), m.Text(p.EnvFile)
	e.Argv = append([]string{e.Command}, e.Args...)
}

// read reads how a server is reached, at the URL under a key.
func (r *Remote) read(e *Entry, m *Members, key string) {
	if key == "" {
		m.Refuse("it has no url", `write "url": "https://…"`)
	}
	e.URL = m.Text(key)
	e.WrittenURL, e.Headers = e.URL, m.Variables(r.Headers, false)
	r.OAuth.read(&e.OAuth, m)
}

// read reads what the entry says of a login.
func (k *OAuthKeys) read(to *OAuth, m *Members) {
	v := m.Get(k.Key)
	said, isObject := v.Object()
	switch {
	case v.Absent(), v.Is("true"):
		return
	case v.Is("false"):
		to.Off = true
		return
	case !isObject:
		m.wrongType(k.Key, "an object")
		return
	}
	within := &Members{Object: said, in: k.Key + "."}
	to.ClientID, to.ClientSecret = within.Text(k.ClientID), within.Text(k.ClientSecret)
	to.MetadataURL, to.Off = within.Text(k.Metadata), said.Get(k.Enabled).Is("false")
	m.Refuse(within.bad.Reason, within.bad.Next)
	if to.Scopes, _ = said.Get(k.Scopes).Strings(); said.Get(k.Scopes).Is("a string") {
		to.Scopes = strings.Fields(said.Text(k.Scopes))
	}
	text, _ := said.Get(k.Port).Literal()
	if n, err := strconv.Atoi(text); err == nil && said.Get(k.Port).Is("a number") && n > 0 && n < 1<<16 {
		to.CallbackPort = n
	}
}

// read reads which tools the host lets a model use. One that can't be read is refused: without it
// there would be more.
func (t *ToolLists) read(e *Entry, m *Members) {
	e.Tools.Allow, e.Tools.Deny = m.List(t.Allow), m.List(t.Deny)
	switch {
	case slices.Contains(e.Tools.Allow, "*"):
		e.Tools.Allow = nil
	case m.Get(t.Allow).Is("an array") && e.Tools.Allow == nil && !t.EmptyIsAll:
		e.Tools.Allow = []string{}
	}
	e.Tools.Globs = t.Patterns && (e.Tools.Allow != nil || e.Tools.Deny != nil)
}

// A part is one string of an entry, under a name that may be shown.
type part struct {
	name, text string
	set        func(string)
}

// texts returns every string that a program would be started with, or a server be reached with.
func (e *Entry) texts() (all []part) {
	add := func(name string, at *string) { all = append(all, part{name, *at, func(v string) { *at = v }}) }
	members := func(what string, values map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			all = append(all, part{what + "." + Display(k), values[k], func(v string) { values[k] = v }})
		}
	}
	add("command", &e.Command)
	for i := range e.Args {
		add(fmt.Sprintf("args[%d]", i), &e.Args[i])
	}
	members("env", e.Env)
	add("cwd", &e.Dir)
	add("envFile", &e.EnvFile)
	add("url", &e.URL)
	members("headers", e.Headers)
	add("client id", &e.OAuth.ClientID)
	add("client secret", &e.OAuth.ClientSecret)
	return all
}
