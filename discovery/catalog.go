package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// A Catalog is what one Scan found. It shares nothing with another one.
type Catalog struct {
	Servers  []Server  // by name
	Problems []Problem // as they were found: of hosts' rules and of ConfigPaths first
	Sources  []Source  // the files that could be read and parsed, the hosts' rules included, each once

	Looked  []string // what config.Reader.Looked returns
	Denying []string // of Looked, the files by which a host now denies servers of any host
}

// helpers is the name under which code reaches the bridge's own helpers, and no server:
// entrypoint.RuntimeProvider.
const helpers = "runtime"

// add makes a server of the catalog, folds it into one that is identical, or reports which one
// hides it. What another host calls by another name is one server too; within a host, two names are
// two servers, as its user wanted it.
func (s *scan) add(srv Server) {
	shown, rename := config.Display(srv.Name), "give it another name to use both"
	shadowed := func(why string) { s.Refuse(srv.Source, shown, Shadowed, config.Refuse(why, rename)) }
	if srv.Name == helpers {
		s.Problem(srv.Source, shown, "the bridge's own helpers have this name in code",
			"give it another name")
		return
	}
	if i, ok := s.byName[srv.Name]; ok {
		switch first := &s.servers[i]; {
		case first.Same(srv):
			first.Join(srv)
		case srv.OfProject && !first.OfProject:
			shadowed("a project's server doesn't take the place of the user's own of that name, in " +
				first.Source.String())
		default:
			shadowed("shadowed by the server of the same name in " + first.Source.String())
		}
		return
	}
	if by, ok := s.held[[2]string{srv.Source.Host, srv.Name}]; ok {
		shadowed(fmt.Sprintf("shadowed by the server of the same name in %s, which %s uses and the bridge can't",
			by, by.Host))
		return
	}
	identity := srv.Identity()
	if i, ok := s.twin(srv, identity); ok {
		first := &s.servers[i]
		first.Join(srv)
		s.Refuse(srv.Source, shown, Duplicate, config.Refuse(fmt.Sprintf("it is the same server as %s of %s, "+
			"and is used under that name", config.Display(first.Name), first.Source), ""))
		return
	}
	s.byName[srv.Name] = len(s.servers)
	if _, ok := s.byDefinition[identity]; !ok {
		s.byDefinition[identity] = len(s.servers)
	}
	s.servers = append(s.servers, srv)
}

// twin returns the index of the server that is this one too: one of another host that is the Same,
// or, for one of a plugin's, any of Claude Code's with its command line or URL, as Claude Code
// itself has it.
func (s *scan) twin(srv Server, identity string) (int, bool) {
	if srv.Source.Scope == config.PluginScope {
		i := slices.IndexFunc(s.servers, func(o Server) bool {
			return o.Source.Host == srv.Source.Host && o.Transport == srv.Transport && o.URL == srv.URL &&
				o.Command == srv.Command && slices.Equal(o.Args, srv.Args)
		})
		if i >= 0 {
			return i, true
		}
	}
	i, ok := s.byDefinition[identity]
	return i, ok && s.servers[i].Source.Host != srv.Source.Host
}

// usedElsewhere reports whether an entry that its own file or host keeps back is used all the same,
// under its name, since another file has it too, perhaps with secrets in the place of some texts.
// Then nothing is said of it.
func (s *scan) usedElsewhere(problem int) bool {
	refused, ok := s.refused[problem]
	if !ok || !slices.Contains([]State{Disabled, Denied, Unapproved}, s.Problems[problem].State) {
		return false
	}
	i, ok := s.byName[refused.Name]
	return ok && (s.servers[i].Same(refused.Server) || s.servers[i].MovedFrom(refused))
}

func (s *scan) finish() Catalog {
	var problems []Problem
	for i, p := range s.Problems {
		if !s.usedElsewhere(i) {
			problems = append(problems, p)
		}
	}
	slices.SortFunc(s.servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.servers {
		srv := &s.servers[i]
		srv.Files = append(srv.Files, s.RuleFiles(srv.Source.Host)...)
	}
	c := Catalog{Servers: s.servers, Problems: problems, Sources: s.Read, Looked: s.Looked()}
	for _, rules := range s.rules {
		c.Denying = append(c.Denying, rules.Denying...)
	}
	return c
}
