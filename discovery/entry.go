package discovery

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// definition is one entry as its file has it.
type definition struct {
	Server
	disabled bool
	cannot   refusal
}

// entry makes a Server or a Problem of one entry.
func (s *scan) entry(r row, src Source, name string, v hujson.Value, description string) {
	shown := display(name)
	if why := badName(name); why != "" {
		s.problem(src, shown, why, "give it a plain name")
		return
	}
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		s.problem(src, shown, "it is "+kind(&v)+", not an object", `write {"command": "…", "args": […]}`)
		return
	}
	d, bad := r.form.define(o)
	if bad == (refusal{}) {
		d.Name, d.Source = name, src
		if d.Description == "" {
			d.Description = description
		}
		bad = s.unwanted(r, d)
	}
	if bad != (refusal{}) {
		s.problem(src, shown, bad.reason, bad.next)
		return
	}
	if bad = d.unusable(); bad != (refusal{}) {
		if _, taken := s.held[[2]string{src.Host, name}]; !taken {
			s.held[[2]string{src.Host, name}] = src
		}
		s.problem(src, shown, bad.reason, bad.next)
		return
	}
	if d.Dir != "" && s.places.clean(d.Dir) == "" {
		base := s.env.Dir // as VS Code's, which is its workspace
		if r.host == own {
			base = path.Dir(s.places.clean(src.Path))
		}
		d.Dir = s.places.native(path.Join(s.places.clean(base), strings.ReplaceAll(d.Dir, `\`, "/")))
	}
	s.add(d.Server)
}

// unwanted says why an entry is not to be used, whether it could be or not.
func (s *scan) unwanted(r row, d definition) refusal {
	switch {
	case d.Transport == Stdio && s.isSelf(d.Server):
		return refusal{"this is mcp-bridge itself", ""}
	case d.disabled:
		return refusal{"it is disabled there", "enable it in " + r.host + " to use it"}
	}
	if bad := s.forbidden(r, d.Server); bad != (refusal{}) {
		return bad
	}
	if r.form.gate == unknown {
		return refusal{r.host + " asks before it starts what a project brings along, and its answer can't be read from outside",
			"list the file in MCP_BRIDGE_CONFIG if you trust it"}
	}
	return refusal{}
}

// unusable says why an entry that its host uses can't be started by the bridge.
func (d definition) unusable() refusal {
	if d.Transport != Stdio {
		return refusal{"remote servers (" + string(d.Transport) + ") are not supported yet", "use a program that relays to it over stdio, if there is one"}
	}
	if d.cannot != (refusal{}) {
		return d.cannot
	}
	for _, f := range d.texts() {
		i := strings.Index(f.text, "${")
		if i < 0 || !strings.Contains(f.text[i:], "}") {
			continue
		}
		if strings.HasPrefix(f.text[i:], "${input:") {
			return refusal{"its " + f.name + " asks for an input of VS Code, which nobody else can read", "write the value itself into a file of MCP_BRIDGE_CONFIG"}
		}
		return refusal{"its " + f.name + " has a ${…} in it, and these are not filled in yet", "write the value itself"}
	}
	return refusal{}
}

// text is one string of an entry, under a name that may be shown.
type text struct{ name, text string }

// texts is every string that a program would be started with.
func (d definition) texts() []text {
	t := []text{{"command", d.Command}}
	for i, a := range d.Args {
		t = append(t, text{fmt.Sprintf("args[%d]", i), a})
	}
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		t = append(t, text{"env." + display(k), d.Env[k]})
	}
	return append(t, text{"cwd", d.Dir})
}

// transports are the words that hosts use for them, and what they mean.
var transports = map[string]Transport{
	"": Stdio, "stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamableHttp": HTTP, "streamable_http": HTTP, "remote": HTTP,
	"sse": SSE, "ws": webSocket, "websocket": webSocket,
}

// webSocket is a transport of some hosts that isn't one of the protocol.
const webSocket Transport = "ws"

// define reads an entry in a host's form. What it refuses is malformed.
func (f form) define(o *hujson.Object) (d definition, bad refusal) {
	typ, ok := optional(o, "type")
	if !ok {
		return d, wrongType(o, "type", "a string")
	}
	if d.Transport, ok = transports[typ]; !ok {
		return d, refusal{"its type is none that is known", `write "type": "stdio" for a program`}
	}
	remote := get(o, "url") != nil || get(o, "serverUrl") != nil || get(o, "httpUrl") != nil
	switch {
	case typ == "" && get(o, "command") == nil && remote && f.typedURL:
		return d, refusal{"it has a url and no type, and is skipped by Claude Code as invalid", `add "type": "http" to it`}
	case typ == "" && get(o, "command") == nil && remote:
		d.Transport = HTTP
	}
	if d.Transport != Stdio {
		d.URL, _ = optional(o, "url")
	} else if bad = f.program(o, &d); bad != (refusal{}) {
		return d, bad
	}
	d.Description, _ = stringOf(get(o, "description"))
	if f.switches {
		for _, sw := range []struct {
			key string
			off bool
		}{{"disabled", true}, {"enabled", false}} {
			switch v := get(o, sw.key); kind(v) {
			case "true", "false":
				d.disabled = d.disabled || (kind(v) == "true") == sw.off
			case "nothing", "null":
			default:
				return d, wrongType(o, sw.key, "true or false")
			}
		}
	}
	for _, c := range f.cannot {
		if k := kind(get(o, c.key)); k != "nothing" && k != "null" && k != "false" {
			d.cannot = c.refusal
		}
	}
	return d, refusal{}
}

// program reads what a program is started with.
func (f form) program(o *hujson.Object, d *definition) (bad refusal) {
	var ok bool
	if d.Command, ok = optional(o, "command"); !ok {
		return wrongType(o, "command", "a string")
	}
	if strings.TrimSpace(d.Command) == "" {
		return refusal{"it has no command", `write "command": "…"`}
	}
	if d.Args, bad = args(o); bad != (refusal{}) {
		return bad
	}
	if d.Env, bad = f.variables(o); bad != (refusal{}) {
		return bad
	}
	if f.cwd {
		if d.Dir, ok = optional(o, "cwd"); !ok {
			return wrongType(o, "cwd", "a string")
		}
	}
	for _, t := range d.texts() {
		if strings.ContainsRune(t.text, 0) {
			return refusal{"its " + t.name + " has a NUL character, with which no program can be started", "take it out"}
		}
	}
	return refusal{}
}

func args(o *hujson.Object) (list []string, bad refusal) {
	v := get(o, "args")
	if k := kind(v); k == "nothing" || k == "null" {
		return nil, refusal{}
	}
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, wrongType(o, "args", "an array")
	}
	for i := range a.Elements {
		s, ok := stringOf(&a.Elements[i])
		if !ok {
			return nil, refusal{fmt.Sprintf("its args[%d] is %s, not a string", i, kind(&a.Elements[i])), "put it in quotes"}
		}
		list = append(list, s)
	}
	return list, refusal{}
}

// variables reads env. Numbers, true and false are taken as they are written: VS Code's schema allows numbers, and hosts
// that check nothing hand them to Node.js, which makes strings of them. A null takes a variable away where the host says so.
func (f form) variables(o *hujson.Object) (env map[string]string, bad refusal) {
	v := get(o, "env")
	if k := kind(v); k == "nothing" || k == "null" {
		return nil, refusal{}
	}
	vars, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, wrongType(o, "env", "an object")
	}
	for i := range vars.Members {
		m := &vars.Members[i]
		key := nameOf(*m)
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return nil, refusal{"its env has a variable whose name is empty or has a = or a NUL in it", "correct the name"}
		}
		lit, isLiteral := m.Value.Value.(hujson.Literal)
		switch k := kind(&m.Value); {
		case k == "null" && f.nullEnv:
			delete(env, key)
			continue
		case !isLiteral || k == "null":
			return nil, refusal{"its env." + display(key) + " is " + k + ", not a string", "put the value in quotes"}
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

func wrongType(o *hujson.Object, key, want string) refusal {
	return refusal{"its " + key + " is " + kind(get(o, key)) + ", not " + want, "correct it"}
}

// Same says whether two servers are the same program started, or the same server reached, in the same way, whatever their
// names, sources and filters are.
func (s Server) Same(t Server) bool {
	return s.Transport == t.Transport && s.Command == t.Command && s.Dir == t.Dir && slices.Equal(s.Args, t.Args) && maps.Equal(s.Env, t.Env) &&
		s.URL == t.URL && maps.Equal(s.Headers, t.Headers) && s.HeadersHelper == t.HeadersHelper && s.BearerTokenEnv == t.BearerTokenEnv &&
		s.OAuth.equal(t.OAuth)
}

func (o OAuth) equal(p OAuth) bool {
	scopes := slices.Equal(o.Scopes, p.Scopes)
	o.Scopes, p.Scopes = nil, nil
	return scopes && reflect.DeepEqual(o, p)
}
