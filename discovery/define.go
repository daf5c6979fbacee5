package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// transports are the words that hosts use for them, and what they mean.
var transports = map[string]Transport{
	"stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamableHttp": HTTP, "streamable_http": HTTP, "remote": HTTP,
	"sse": SSE, "ws": webSocket, "websocket": webSocket,
}

// webSocket is a transport of some hosts that isn't one of the protocol.
const webSocket Transport = "ws"

// definition is one entry as its file has it.
type definition struct {
	Server
	disabled bool
	cannot   refusal     // why the bridge can't use what the host uses
	forward  []string    // variables of ours to hand on
	envFile  string      // a file of further variables
	keyring  []string    // variables whose values are ours, or the host's secret
	written  []string    // command and arguments before anything was filled in
	address  string      // the URL before that
	fromEnv  [][2]string // headers whose values are variables of ours
}

// define reads an entry in a host's form. What it refuses is malformed, or nothing that the host would use.
func (f *form) define(o *hujson.Object) (d definition, bad refusal) {
	typ, ok := optional(o, "type")
	if !ok {
		return d, wrongType(o, "type", "a string")
	}
	if bad, ok := f.kinds[typ]; ok {
		return d, bad
	}
	url := f.urlOf(o)
	if d.Transport, bad = f.transport(o, typ, url); bad != (refusal{}) {
		return d, bad
	}
	if d.Transport == Stdio {
		bad = f.program(o, &d)
	} else {
		bad = f.remote(o, url.name, &d)
	}
	if bad == (refusal{}) {
		bad = f.switches(o, &d)
	}
	if bad == (refusal{}) {
		d.Tools, bad = f.filter(o)
	}
	if bad != (refusal{}) {
		return d, bad
	}
	d.Description, _ = stringOf(get(o, "description"))
	for _, c := range f.cannot {
		if k := kind(get(o, c.key)); k != "nothing" && k != "null" && k != "false" {
			d.cannot = c.refusal
		}
	}
	return d, refusal{}
}

// urlOf is the first of the host's members for a URL that the entry has.
func (f *form) urlOf(o *hujson.Object) urlMember {
	for _, u := range f.urls {
		if k := kind(get(o, u.name)); k != "nothing" && k != "null" {
			return u
		}
	}
	return urlMember{}
}

func (f *form) transport(o *hujson.Object, typ string, url urlMember) (Transport, refusal) {
	hasCommand := f.command != "" && get(o, f.command) != nil
	switch {
	case typ != "":
		t, ok := transports[typ]
		if !ok {
			return "", refusal{"its type is none that is known", `write "type": "stdio" for a program`}
		}
		return t, refusal{}
	case hasCommand || url.name == "":
		if f.extensions && !hasCommand {
			return "", refusal{"it has no command: these are settings of an extension, which only " + f.host + " can start", ""}
		}
		return Stdio, refusal{}
	case f.typedURL:
		return "", refusal{"it has a url and no type, and is skipped by " + f.host + " as invalid", `add "type": "http" to it`}
	}
	return url.transport, refusal{}
}

// program reads what a program is started with.
func (f *form) program(o *hujson.Object, d *definition) (bad refusal) {
	if bad = f.commandLine(o, d); bad != (refusal{}) {
		return bad
	}
	if strings.TrimSpace(d.Command) == "" {
		return refusal{"it has no command", `write "` + f.command + `": "…"`}
	}
	if f.cwd != "" {
		var ok bool
		if d.Dir, ok = optional(o, f.cwd); !ok {
			return wrongType(o, f.cwd, "a string")
		}
	}
	if f.envFile != "" {
		var ok bool
		if d.envFile, ok = optional(o, f.envFile); !ok {
			return wrongType(o, f.envFile, "a string")
		}
	}
	if d.forward, bad = names(o, f.forward); bad != (refusal{}) {
		return bad
	}
	if d.keyring, bad = names(o, f.keyring); bad != (refusal{}) {
		return bad
	}
	d.written = append([]string{d.Command}, d.Args...)
	return refusal{}
}

// commandLine reads command, arguments and variables, in any of the shapes that the host allows.
func (f *form) commandLine(o *hujson.Object, d *definition) (bad refusal) {
	v := get(o, f.command)
	if inner, ok := objectOf(v); ok && f.nested {
		older := *f
		older.command, older.nested = "path", false
		return older.commandLine(inner, d)
	}
	if k := kind(v); k == "an array" && f.array {
		words, bad := stringList(o, f.command)
		if bad != (refusal{}) || len(words) == 0 {
			return bad
		}
		d.Command, d.Args = words[0], words[1:]
		if len(d.Args) == 0 {
			d.Args = nil
		}
	} else {
		var ok bool
		if d.Command, ok = optional(o, f.command); !ok {
			return wrongType(o, f.command, "a string")
		}
		if d.Args, bad = stringList(o, "args"); bad != (refusal{}) {
			return bad
		}
	}
	d.Env, bad = f.variables(o, f.env)
	return bad
}

func objectOf(v *hujson.Value) (*hujson.Object, bool) {
	if v == nil {
		return nil, false
	}
	o, ok := v.Value.(*hujson.Object)
	return o, ok
}

// stringList is an array of strings, nil for none.
func stringList(o *hujson.Object, key string) (list []string, bad refusal) {
	v := get(o, key)
	if k := kind(v); k == "nothing" || k == "null" {
		return nil, refusal{}
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, wrongType(o, key, "an array")
	}
	for i := range a.Elements {
		s, ok := stringOf(&a.Elements[i])
		if !ok {
			return nil, refusal{fmt.Sprintf("its %s[%d] is %s, not a string", key, i, kind(&a.Elements[i])), "put it in quotes"}
		}
		list = append(list, s)
	}
	return list, refusal{}
}

// names is a list of names of variables, in which Codex has objects with a name too.
func names(o *hujson.Object, key string) (list []string, bad refusal) {
	if key == "" {
		return nil, refusal{}
	}
	v := get(o, key)
	if k := kind(v); k == "nothing" || k == "null" {
		return nil, refusal{}
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, wrongType(o, key, "an array")
	}
	for i := range a.Elements {
		name, ok := stringOf(&a.Elements[i])
		if inner, isObject := objectOf(&a.Elements[i]); isObject {
			name, ok = stringOf(get(inner, "name"))
		}
		if !ok || badVariable(name) {
			return nil, refusal{fmt.Sprintf("its %s[%d] is no name of a variable", key, i), "correct it"}
		}
		list = append(list, name)
	}
	return list, refusal{}
}

func badVariable(name string) bool { return name == "" || strings.ContainsAny(name, "=\x00") }

// variables reads an object of strings. Numbers, true and false are taken as they are written: VS Code's schema allows numbers,
// and hosts that check nothing hand them to Node.js, which makes strings of them. A null takes a variable away where the host
// says so.
func (f *form) variables(o *hujson.Object, name string) (env map[string]string, bad refusal) {
	v := member(o, name)
	if k := kind(v); k == "nothing" || k == "null" {
		return nil, refusal{}
	}
	vars, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, refusal{"its " + name + " is " + kind(v) + ", not an object", "correct it"}
	}
	for i := range vars.Members {
		m := &vars.Members[i]
		key := nameOf(*m)
		if badVariable(key) {
			return nil, refusal{"its " + name + " has a variable whose name is empty or has a = or a NUL in it", "correct the name"}
		}
		lit, isLiteral := m.Value.Value.(hujson.Literal)
		switch k := kind(&m.Value); {
		case k == "null" && f.nullEnv:
			delete(env, key)
			continue
		case !isLiteral || k == "null":
			return nil, refusal{"its " + name + "." + display(key) + " is " + k + ", not a string", "put the value in quotes"}
		}
		if env == nil {
			env = map[string]string{}
		}
		env[key] = lit.String()
	}
	if len(env) == 0 {
		return nil, refusal{}
	}
	return env, refusal{}
}

// member is the member at a path with / between levels, nil if there is none.
func member(o *hujson.Object, path string) *hujson.Value {
	first, rest, deeper := strings.Cut(path, "/")
	v := get(o, first)
	if !deeper {
		return v
	}
	inner, ok := objectOf(v)
	if !ok {
		return nil
	}
	return member(inner, rest)
}

// switches reads whether the entry is switched off.
func (f *form) switches(o *hujson.Object, d *definition) refusal {
	for _, sw := range []struct {
		key string
		off bool
	}{{f.disabled, true}, {f.enabled, false}} {
		if sw.key == "" {
			continue
		}
		switch v := get(o, sw.key); kind(v) {
		case "true", "false":
			d.disabled = d.disabled || (kind(v) == "true") == sw.off
		case "nothing", "null":
		default:
			return wrongType(o, sw.key, "true or false")
		}
	}
	return refusal{}
}

// filter reads which tools the host lets a model use. One that can't be read is a refusal: without it there would be more.
func (f *form) filter(o *hujson.Object) (t Filter, bad refusal) {
	if f.allow != "" {
		if t.Allow, bad = stringList(o, f.allow); bad != (refusal{}) {
			return t, bad
		}
		isList := kind(get(o, f.allow)) == "an array"
		switch {
		case slices.Contains(t.Allow, "*"):
			t.Allow = nil
		case isList && len(t.Allow) == 0 && !f.noneAll:
			t.Allow = []string{}
		}
	}
	if f.deny != "" {
		if t.Deny, bad = stringList(o, f.deny); bad != (refusal{}) {
			return t, bad
		}
	}
	t.Globs = f.globs && (t.Allow != nil || t.Deny != nil)
	return t, refusal{}
}

func wrongType(o *hujson.Object, key, want string) refusal {
	return refusal{"its " + key + " is " + kind(get(o, key)) + ", not " + want, "correct it"}
}
