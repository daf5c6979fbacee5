package discovery

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

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
	r.form.host = r.host
	d, bad := r.form.define(o)
	state := Invalid
	if bad == (refusal{}) {
		d.Name, d.Source = name, src
		if d.Description == "" {
			d.Description = description
		}
		if r.form.rules != nil {
			d.Tools.Rules = r.form.rules(s, name)
		}
		gate := s.gated(r, src, name)
		if gate == (refusal{}) {
			gate = s.runsProject(r, d)
		}
		if gate == (refusal{}) { // what isn't approved has no file read for it, and no variable
			written := d.clone()
			s.taken = nil
			if bad = s.fill(r, &d); bad == (refusal{}) {
				bad = s.socket(r, &d)
			}
			if d.cannot == (refusal{}) {
				d.cannot = bad
			}
			d.OfProject, d.Files = r.ofProject(), append([]string{src.Path}, s.taken...)
			d.FilledIn = d.filledIn(written)
			d.Written = s.written(r, written)
		}
		state, bad = s.unwanted(r, d, gate)
	}
	if bad != (refusal{}) {
		s.refused[len(s.problems)] = d.Server
		s.refuse(src, shown, state, bad)
		return
	}
	if bad = d.unusable(); bad != (refusal{}) {
		if _, taken := s.held[[2]string{src.Host, name}]; !taken {
			s.held[[2]string{src.Host, name}] = src
		}
		s.refuse(src, shown, Unusable, bad)
		return
	}
	d.Dir = s.startedIn(r, d)
	s.add(d.Server)
}

// startedIn is the directory that an entry names, absolute; empty where it names none.
func (s *scan) startedIn(r row, d definition) string {
	if d.Dir == "" || s.places.clean(d.Dir) != "" {
		return d.Dir
	}
	base := s.env.Dir // as VS Code's, which is its workspace
	if r.host == own {
		base = path.Dir(s.places.clean(d.Source.Path))
	}
	return s.places.native(path.Join(s.places.clean(base), strings.ReplaceAll(d.Dir, `\`, "/")))
}

// fill fills in what the entry leaves open, in its host's way. What can't be filled in stays as it is.
func (s *scan) fill(r row, d *definition) (bad refusal) {
	for _, t := range d.texts() {
		f := filling{scan: s, row: r, src: d.Source, name: t.name, env: d.Env}
		if strings.HasPrefix(t.name, r.form.env+".") {
			f.env = nil
		}
		value, why := f.text(t.text)
		if why != (refusal{}) {
			if bad == (refusal{}) {
				bad = why
			}
			continue
		}
		if value != t.text {
			t.set(value)
		}
	}
	if bad == (refusal{}) {
		bad = s.envFile(d)
	}
	if bad == (refusal{}) {
		bad = r.form.pluginHelper(d, s.places.windows)
	}
	for name, value := range r.form.given {
		if _, said := d.Env[name]; d.Transport == Stdio && !said {
			d.variable(name, value)
		}
	}
	for _, name := range d.forward {
		if v := s.env.Getenv(name); v != "" {
			d.variable(name, v)
		}
	}
	for _, name := range d.keyring {
		v := s.env.Getenv(name)
		if v == "" && bad == (refusal{}) && d.Env[name] == "" {
			bad = refusal{"its variable " + display(name) + " is in the keyring of " + r.host + ", which nobody else can read", "set " + display(name) + " in the environment that mcp-bridge is started with"}
		} else if v != "" {
			d.variable(name, v)
		}
	}
	for _, h := range d.fromEnv {
		if v := s.env.Getenv(h[1]); v != "" {
			d.Headers[h[0]] = v
		} else {
			delete(d.Headers, h[0])
		}
	}
	if name := d.BearerTokenEnv; name != "" && s.env.Getenv(name) == "" && bad == (refusal{}) {
		bad = refusal{"it needs the variable " + display(name) + " for its token, which is not set here", "set it in the environment that mcp-bridge is started with"}
	}
	return bad
}

func (d *definition) variable(name, value string) {
	if d.Env == nil {
		d.Env = map[string]string{}
	}
	d.Env[name] = value
}

// unwanted says why an entry is not to be used, whether it could be or not; gate is what gated says of it.
func (s *scan) unwanted(r row, d definition, gate refusal) (State, refusal) {
	switch {
	case d.Transport == Stdio && s.isSelf(d.Server), d.Transport != Stdio && s.isOwnURL(d.URL):
		return Itself, s.ownEntry(r, d)
	case d.disabled:
		return Disabled, refusal{"it is disabled there", "enable it in " + r.host + " to use it"}
	}
	if bad := s.forbidden(r, d); bad != (refusal{}) {
		return Denied, bad
	}
	if bad := s.switchedOff(r, d); bad != (refusal{}) {
		return Disabled, bad
	}
	return Unapproved, gate
}

// ownEntry returns what is to be said of the bridge's own entry in a host: which files it names that
// this process doesn't, since the bridge then finds other servers there. The value is a list of files,
// and so no secret.
func (s *scan) ownEntry(r row, d definition) refusal {
	why := refusal{"this is mcp-bridge itself", ""}
	if files := d.Env[Listed]; files != "" && files != s.env.Getenv(Listed) {
		set := Listed + "=" + show(files)
		why = refusal{fmt.Sprintf("%s; your entry in %s sets %s, and this process doesn't have it", why.reason, r.host, set),
			"to see what the bridge finds there, run: " + set + " mcp-bridge servers"}
	}
	return why
}

// switchedOff says whether the user has switched a server off elsewhere than in its entry.
func (s *scan) switchedOff(r row, d definition) refusal {
	if r.form.off != (refusal{}) {
		return r.form.off
	}
	switch r.host {
	case claudeCode:
		if by, ok := s.claude.disabled[d.Name]; ok {
			return refusal{"it is disabled in Claude Code for this project, in " + by.String(), "enable it with /mcp in Claude Code"}
		}
	case openCode, kilo:
		if by, ok := s.openCode[r.host].off[d.Name]; ok {
			return refusal{"it is disabled by " + r.host + "'s administrator, in " + by.String(), "ask the administrator"}
		}
	case copilot:
		if by, off := s.copilotOff(d.Name); off {
			return refusal{"it is disabled in Copilot CLI, in " + by.String(), "enable it with /mcp in Copilot CLI"}
		}
	case gemini:
		if by, ok := s.gemini.disabled[geminiName(d.Name)]; ok {
			return refusal{"it is disabled in Gemini CLI, in " + by.String(), "enable it with `gemini mcp enable` and its name"}
		}
	}
	if slices.ContainsFunc(d.Tools.Rules, RuleList.hidesAll) {
		return refusal{r.host + " hides all of its tools", "take out the rule about them in its settings"}
	}
	if d.Tools.Allow != nil && len(d.Tools.Allow) == 0 {
		return refusal{"its " + r.form.allow + " is empty, so that " + r.host + " lets a model use none of its tools", "name some there to use it"}
	}
	return refusal{}
}

// unusable says why an entry that its host uses can't be started by the bridge.
func (d definition) unusable() refusal {
	switch {
	case d.Transport == webSocket:
		return refusal{"it is reached by WebSocket, which the protocol doesn't have", "use its http address, if it has one"}
	case d.cannot != (refusal{}):
		return d.cannot
	case d.Transport != Stdio:
		return d.reachable()
	}
	for _, t := range d.texts() {
		if strings.ContainsRune(t.text, 0) {
			return refusal{"its " + t.name + " has a NUL character, with which no program can be started", "take it out"}
		}
	}
	if strings.TrimSpace(d.Command) == "" {
		return refusal{"its command is empty when it is filled in", "correct it"}
	}
	return refusal{}
}

// text is one string of an entry, under a name that may be shown.
type text struct {
	name, text string
	set        func(string)
}

// texts is every string that a program would be started with, or a server be reached with.
func (d *definition) texts() []text {
	t := []text{{"command", d.Command, func(v string) { d.Command = v }}}
	for i, a := range d.Args {
		t = append(t, text{fmt.Sprintf("args[%d]", i), a, func(v string) { d.Args[i] = v }})
	}
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		t = append(t, text{"env." + display(k), d.Env[k], func(v string) { d.Env[k] = v }})
	}
	t = append(t, text{"cwd", d.Dir, func(v string) { d.Dir = v }}, text{"envFile", d.envFile, func(v string) { d.envFile = v }}, text{"url", d.URL, func(v string) { d.URL = v }})
	for _, k := range slices.Sorted(maps.Keys(d.Headers)) {
		t = append(t, text{"headers." + display(k), d.Headers[k], func(v string) { d.Headers[k] = v }})
	}
	return append(t, text{"client id", d.OAuth.ClientID, func(v string) { d.OAuth.ClientID = v }},
		text{"client secret", d.OAuth.ClientSecret, func(v string) { d.OAuth.ClientSecret = v }})
}
