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
}

// SetEnv sets a variable.
func (e *Entry) SetEnv(name, value string) {
	if e.Env == nil {
		e.Env = map[string]string{}
	}
	e.Env[name] = value
}

// SetHeader sets a header.
func (e *Entry) SetHeader(name, value string) {
	if e.Headers == nil {
		e.Headers = map[string]string{}
	}
	e.Headers[name] = value
}

// ReadEntry reads an entry in the format of its file. What it refuses is malformed, or nothing that
// the host would use.
func (f *File) ReadEntry(o Object) (Entry, Refusal) {
	e := Entry{File: f}
	typ, bad := o.optional("type")
	if f.Format.Prepare != nil && !bad.Refused() {
		o, bad = f.Format.Prepare(o)
	}
	url := f.Format.urlOf(o)
	if !bad.Refused() {
		e.Transport, bad = f.Format.transport(o, typ, url)
	}
	for _, read := range []func(*Entry, Object) Refusal{
		func(e *Entry, o Object) Refusal {
			if e.Transport == Stdio {
				return f.Format.Program.read(e, o)
			}
			return f.Format.Remote.read(e, o, url.Key)
		},
		f.Format.Finish, f.Format.switches, f.Format.Tools.read,
	} {
		if read != nil && !bad.Refused() {
			bad = read(&e, o)
		}
	}
	e.Description = o.Text("description")
	return e, bad
}

// urlOf returns the first of the host's members for a URL that the entry has.
func (f *Format) urlOf(o Object) URLKey {
	for _, u := range f.Remote.URLs {
		if !o.Get(u.Key).Absent() {
			return u
		}
	}
	return URLKey{}
}

func (f *Format) transport(o Object, typ string, url URLKey) (Transport, Refusal) {
	switch {
	case typ != "":
		t, ok := transports[typ]
		if !ok {
			return "", Refusal{"its type is none that is known", `write "type": "stdio" for a program`}
		}
		return t, Refusal{}
	case url.Key == "" || !o.Get(f.Program.Command).Is("nothing"):
		return Stdio, Refusal{}
	}
	return url.Transport, Refusal{}
}

// optional returns a member that has to be a string if it is there.
func (o Object) optional(key string) (string, Refusal) {
	v := o.Get(key)
	text, ok := v.Text()
	if !ok && !v.Absent() {
		return "", o.wrongType(key, "a string")
	}
	return text, Refusal{}
}

// list returns an array of strings, nil for none.
func (o Object) list(key string) (list []string, bad Refusal) {
	elements, ok := o.Get(key).Array()
	if !ok && !o.Get(key).Absent() {
		return nil, o.wrongType(key, "an array")
	}
	for i, e := range elements {
		text, ok := e.Text()
		if !ok {
			return nil, Refusal{fmt.Sprintf("its %s[%d] is %s, not a string", key, i, e.Kind()),
				"put it in quotes"}
		}
		list = append(list, text)
	}
	return list, Refusal{}
}

func (o Object) wrongType(key, want string) Refusal {
	return Refusal{"its " + key + " is " + o.Get(key).Kind() + ", not " + want, "correct it"}
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
func (p *Program) read(e *Entry, o Object) (bad Refusal) {
	if bad = p.commandLine(e, o); bad.Refused() {
		return bad
	}
	if e.Env, bad = variables(o, p.Env, p.NullEnv); bad.Refused() {
		return bad
	}
	if strings.TrimSpace(e.Command) == "" {
		return Refusal{"it has no command", `write "` + p.Command + `": "…"`}
	}
	if e.Dir, bad = o.optional(p.Dir); bad.Refused() {
		return bad
	}
	e.EnvFile, bad = o.optional(p.EnvFile)
	e.Argv = append([]string{e.Command}, e.Args...)
	return bad
}

func (p *Program) commandLine(e *Entry, o Object) (bad Refusal) {
	if p.Array && o.Get(p.Command).Is("an array") {
		words, bad := o.list(p.Command)
		if len(words) > 0 {
			e.Command = words[0]
		}
		if len(words) > 1 {
			e.Args = words[1:]
		}
		return bad
	}
	if e.Command, bad = o.optional(p.Command); !bad.Refused() {
		e.Args, bad = o.list("args")
	}
	return bad
}

// variables reads an object of strings. Numbers, true and false are taken as they are written: VS
// Code's schema allows numbers, and hosts that check nothing have Node.js make strings of them.
func variables(o Object, path string, nulls bool) (env map[string]string, bad Refusal) {
	v := o.At(path)
	if path == "" || v.Absent() {
		return nil, Refusal{}
	}
	vars, ok := v.Object()
	if !ok {
		return nil, Refusal{"its " + path + " is " + v.Kind() + ", not an object", "correct it"}
	}
	for _, m := range vars {
		if badVariable(m.Name) {
			return nil, Refusal{"its " + path + " has a variable whose name is empty or has a = or a NUL " +
				"in it", "correct the name"}
		}
		text, isLiteral := m.Value.Literal()
		switch isNull := m.Value.Is("null"); {
		case isNull && nulls:
			delete(env, m.Name)
			continue
		case !isLiteral || isNull:
			return nil, Refusal{"its " + path + "." + Display(m.Name) + " is " + m.Value.Kind() +
				", not a string",
				"put the value in quotes"}
		}
		if env == nil {
			env = map[string]string{}
		}
		env[m.Name] = text
	}
	if len(env) == 0 {
		return nil, Refusal{}
	}
	return env, Refusal{}
}

func badVariable(name string) bool { return name == "" || strings.ContainsAny(name, "=\x00") }

// VariableNames reads a list of names of variables, which may be objects with a name too.
func VariableNames(o Object, key string) (list []string, bad Refusal) {
	v := o.Get(key)
	elements, ok := v.Array()
	if !ok && !v.Absent() {
		return nil, o.wrongType(key, "an array")
	}
	for i, e := range elements {
		name, ok := e.Text()
		if inner, isObject := e.Object(); isObject {
			name, ok = inner.Get("name").Text()
		}
		if !ok || badVariable(name) {
			return nil, Refusal{fmt.Sprintf("its %s[%d] is no name of a variable", key, i), "correct it"}
		}
		list = append(list, name)
	}
	return list, Refusal{}
}

// read reads how a server is reached, at the URL under a key.
func (r *Remote) read(e *Entry, o Object, key string) (bad Refusal) {
	if key == "" {
		return Refusal{"it has no url", `write "url": "https://…"`}
	}
	if e.URL, bad = o.optional(key); bad.Refused() {
		return bad
	}
	e.WrittenURL = e.URL
	if e.Headers, bad = variables(o, r.Headers, false); bad.Refused() {
		return bad
	}
	return r.OAuth.read(e, o)
}

// Texts reads members that have to be strings, if they are there.
func Texts(o Object, into map[string]*string) (bad Refusal) {
	for _, key := range slices.Sorted(maps.Keys(into)) {
		if *into[key], bad = o.optional(key); bad.Refused() {
			return bad
		}
	}
	return Refusal{}
}

// EnvHeaders reads headers whose values are variables of ours.
func (e *Entry) EnvHeaders(o Object, key string) (bad Refusal) {
	e.HeaderEnv, bad = variables(o, key, false)
	for name := range e.HeaderEnv {
		e.SetHeader(name, "")
	}
	return bad
}

// Scopes reads the scopes of a login that stand beside the object for it.
func (e *Entry) Scopes(o Object, key string) (bad Refusal) {
	e.OAuth.Scopes, bad = o.list(key)
	return bad
}

// read reads what the entry says of a login.
func (k *OAuthKeys) read(e *Entry, o Object) Refusal {
	v := o.Get(k.Key)
	said, isObject := v.Object()
	switch {
	case k.Key == "", v.Absent(), v.Is("true"):
		return Refusal{}
	case v.Is("false"):
		e.OAuth.Off = true
		return Refusal{}
	case !isObject:
		return o.wrongType(k.Key, "an object")
	}
	for _, m := range []struct {
		key string
		to  *string
	}{{k.ClientID, &e.OAuth.ClientID}, {k.ClientSecret, &e.OAuth.ClientSecret}, {k.Metadata,
		&e.OAuth.MetadataURL}} {
		var bad Refusal
		if *m.to, bad = said.optional(m.key); bad.Refused() {
			return Refusal{"its " + k.Key + "." + m.key + " is " + said.Get(m.key).Kind() + ", not a string",
				"correct it"}
		}
	}
	e.OAuth.Off = said.Get(k.Enabled).Is("false")
	if e.OAuth.Scopes, _ = said.Get(k.Scopes).Strings(); said.Get(k.Scopes).Is("a string") {
		e.OAuth.Scopes = strings.Fields(said.Text(k.Scopes))
	}
	e.OAuth.CallbackPort = port(said.Get(k.Port))
	return Refusal{}
}

// port returns a port, 0 if the value can't be one.
func port(v Value) int {
	text, _ := v.Literal()
	if n, err := strconv.Atoi(text); err == nil && v.Is("a number") && n > 0 && n < 1<<16 {
		return n
	}
	return 0
}

// switches reads whether the entry is switched off.
func (f *Format) switches(e *Entry, o Object) Refusal {
	for _, s := range [][2]string{{f.Disabled, "true"}, {f.Enabled, "false"}} {
		switch v := o.Get(s[0]); {
		case v.Absent():
		case v.Is("true"), v.Is("false"):
			e.Disabled = e.Disabled || v.Is(s[1])
		default:
			return o.wrongType(s[0], "true or false")
		}
	}
	return Refusal{}
}

// read reads which tools the host lets a model use. One that can't be read is refused: without it
// there would be more.
func (t *ToolLists) read(e *Entry, o Object) (bad Refusal) {
	if e.Tools.Allow, bad = o.list(t.Allow); bad.Refused() {
		return bad
	}
	switch {
	case slices.Contains(e.Tools.Allow, "*"):
		e.Tools.Allow = nil
	case t.Allow != "" && o.Get(t.Allow).Is("an array") && e.Tools.Allow == nil && !t.EmptyIsAll:
		e.Tools.Allow = []string{}
	}
	e.Tools.Deny, bad = o.list(t.Deny)
	e.Tools.Globs = t.Patterns && (e.Tools.Allow != nil || e.Tools.Deny != nil)
	return bad
}

// text is one string of an entry, under a name that may be shown.
type text struct {
	name, text string
	set        func(string)
}

// texts returns every string that a program would be started with, or a server be reached with.
func (e *Entry) texts() []text {
	t := []text{{"command", e.Command, func(v string) { e.Command = v }}}
	for i, a := range e.Args {
		t = append(t, text{fmt.Sprintf("args[%d]", i), a, func(v string) { e.Args[i] = v }})
	}
	members := func(what string, values map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			t = append(t, text{what + "." + Display(k), values[k], func(v string) { values[k] = v }})
		}
	}
	members("env", e.Env)
	t = append(t, text{"cwd", e.Dir, func(v string) { e.Dir = v }},
		text{"envFile", e.EnvFile, func(v string) { e.EnvFile = v }}, text{"url", e.URL,
			func(v string) { e.URL = v }})
	members("headers", e.Headers)
	return append(t, text{"client id", e.OAuth.ClientID, func(v string) { e.OAuth.ClientID = v }},
		text{"client secret", e.OAuth.ClientSecret, func(v string) { e.OAuth.ClientSecret = v }})
}
