package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// entry makes a Server or a Problem of one entry.
func (s *scan) entry(f *config.File, g config.Group, m config.Member) {
	src, shown := g.Source, config.Display(m.Name)
	if why := config.BadName(m.Name); why != "" {
		s.Problem(src, shown, why, "give it a plain name")
		return
	}
	o, ok := m.Value.Object()
	if !ok {
		s.Problem(src, shown, "it is "+m.Value.Kind()+", not an object",
			`write {"command": "…", "args": […]}`)
		return
	}
	e, bad := f.ReadEntry(o)
	state := Invalid
	if !bad.Refused() {
		e.Name, e.Source, e.Plugin = m.Name, src, g.Plugin
		e.Description = cmp.Or(e.Description, g.Description)
		defer s.candidate(f, &e, shown)()
		if tools := s.rules[cmp.Or(f.Host, src.Host)].Tools; tools != nil {
			e.Tools.Rules = tools(&e)
		}
		unapproved := s.unapproved(&e)
		if !unapproved.Refused() { // what isn't approved has no file read for it, and no variable
			s.Fill(&e)
		}
		state, bad = s.unwanted(&e, unapproved)
	}
	if bad.Refused() {
		s.refused[len(s.Problems)] = e
		s.Refuse(src, shown, state, bad)
		return
	}
	if bad = e.CanStart(); bad.Refused() {
		if _, taken := s.held[[2]string{src.Host, m.Name}]; !taken {
			s.held[[2]string{src.Host, m.Name}] = src
		}
		s.Refuse(src, shown, Unusable, bad)
		return
	}
	e.Dir = s.StartDir(&e)
	s.add(e.Server)
}

// unapproved refuses an entry that lacks its user's yes.
func (s *scan) unapproved(e *config.Entry) config.Refusal {
	if approved := s.rules[e.Source.Host].Approved; approved != nil {
		if bad := approved(e); bad.Refused() {
			return bad
		}
	}
	switch e.File.Approval {
	case config.HostAsks:
		return config.AsksFirst(e.Source.Host)
	case config.NobodyAsks:
		return config.Unasked(e.Source.Host + " doesn't ask")
	}
	for _, t := range [][2]string{{"command", e.Command}, {"envFile", e.EnvFile}} {
		// What a project has may run only in a project that the user trusts.
		if e.Source.Host != config.Own && e.File.Format.References == config.Editor &&
			strings.Contains(t[1], "${workspaceFolder}") {
			return config.Refuse(fmt.Sprintf("its %s is of whatever project the bridge runs in, and whether %s "+
				"trusts that can't be read from outside", t[0], e.Source.Host),
				"name it by its whole path, or list the file in MCP_BRIDGE_CONFIG")
		}
	}
	return config.Refusal{}
}

// unwanted refuses an entry that is not to be used, whether it could be or not.
func (s *scan) unwanted(e *config.Entry, unapproved config.Refusal) (State, config.Refusal) {
	rules := s.rules[e.Source.Host]
	switch {
	case e.Transport == Stdio && s.isSelf(e):
		return Itself, s.ownEntry(e)
	case e.Disabled && e.Source.Host == config.Own:
		return Disabled, config.Refuse("it is disabled there",
			`take "disabled": true, or "enabled": false, out of the entry to use it`)
	case e.Disabled:
		return Disabled, config.Refuse("it is disabled there", "enable it in "+e.Source.Host+" to use it")
	}
	for host, others := range s.rules {
		if host != e.Source.Host && others.DeniedOthers != nil {
			if bad := others.DeniedOthers(e); bad.Refused() {
				return Denied, bad
			}
		}
	}
	if rules.Denied != nil {
		if bad := rules.Denied(e); bad.Refused() {
			return Denied, bad
		}
	}
	if e.Plugin != nil && e.Plugin.Off.Refused() {
		return Disabled, e.Plugin.Off
	}
	if rules.Off != nil {
		if by, off := rules.Off(e.Name); off {
			return Disabled, config.Refuse("it is disabled in "+by.String(),
				"enable it in "+by.Host+" to use it")
		}
	}
	switch {
	case slices.ContainsFunc(e.Tools.Rules, config.RuleList.HidesAll):
		return Disabled, config.Refuse(e.Source.Host+" hides all of its tools",
			"take out the rule about them in its settings")
	case e.Tools.Allow != nil && len(e.Tools.Allow) == 0:
		return Disabled, config.Refuse("its "+e.File.Format.Tools.Allow+" is empty, so that "+e.Source.Host+
			" lets a model use none of its tools", "name some there to use it")
	}
	return Unapproved, unapproved
}

// ownEntry returns what is said of the bridge's own entry in a host: which files it names that this
// process doesn't, since the bridge then finds other servers there. The value is a list of files,
// and so no secret.
func (s *scan) ownEntry(e *config.Entry) config.Refusal {
	why := config.Refuse("this is mcp-bridge itself", "")
	if files := e.Env[Listed]; files != "" && files != s.Env.Getenv(Listed) {
		set := Listed + "=" + config.Show(files)
		why = config.Refuse(fmt.Sprintf("%s; your entry in %s sets %s, and this process doesn't have it",
			why.Reason, e.Source.Host, set),
			"to see what the bridge finds there, run: "+set+" mcp-bridge servers")
	}
	return why
}
