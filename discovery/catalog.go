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
}

// catalog is a Catalog that is being made.
type catalog struct {
	*config.Reader
	servers      []Server
	byName       map[string]int       // index in servers
	byDefinition map[string]int       // by identity: index in servers of the first
	held         map[[2]string]Source // host and name → the entry that this host uses and we can't
	refused      map[int]Server       // index in Problems → the entry that isn't used there
}

func newCatalog(r *config.Reader) catalog {
	return catalog{Reader: r, byName: map[string]int{}, byDefinition: map[string]int{},
		held: map[[2]string]Source{}, refused: map[int]Server{}}
}

// helpers is the name under which code reaches the bridge's own helpers, and no server:
// entrypoint.RuntimeProvider.
const helpers = "runtime"

// add makes a server of the catalog, folds it into one that is identical, or reports which one
// hides it. What another host calls by another name is one server too; within a host, two names are
// two servers, as its user wanted it.
func (c *catalog) add(srv Server) {
	shown, rename := config.Display(srv.Name), "give it another name to use both"
	shadowed := func(why string) { c.Refuse(srv.Source, shown, Shadowed, config.Refuse(why, rename)) }
	if srv.Name == helpers {
		c.Problem(srv.Source, shown, "the bridge's own helpers have this name in code",
			"give it another name")
		return
	}
	if i, ok := c.byName[srv.Name]; ok {
		switch first := &c.servers[i]; {
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
	if by, ok := c.held[[2]string{srv.Source.Host, srv.Name}]; ok {
		shadowed(fmt.Sprintf("shadowed by the server of the same name in %s, which %s uses and the bridge "+
			"can't", by, by.Host))
		return
	}
	identity := srv.Identity()
	if i, ok := c.twin(srv, identity); ok {
		first := &c.servers[i]
		first.Join(srv)
		c.Refuse(srv.Source, shown, Duplicate, config.Refuse(fmt.Sprintf("it is the same server as %s of "+
			"%s, and is used under that name",
			config.Display(first.Name), first.Source), ""))
		return
	}
	c.byName[srv.Name] = len(c.servers)
	if _, ok := c.byDefinition[identity]; !ok {
		c.byDefinition[identity] = len(c.servers)
	}
	c.servers = append(c.servers, srv)
}

// twin returns the index of the server that is this one too: one of another host that is the Same,
// or, for one of a plugin's, any of Claude Code's with its command line or URL, as Claude Code
// itself has it.
func (c *catalog) twin(srv Server, identity string) (int, bool) {
	if srv.Source.Scope == config.PluginScope {
		i := slices.IndexFunc(c.servers, func(s Server) bool {
			return s.Source.Host == srv.Source.Host && s.Transport == srv.Transport &&
				s.Command == srv.Command &&
				slices.Equal(s.Args, srv.Args) && s.URL == srv.URL
		})
		if i >= 0 {
			return i, true
		}
	}
	i, ok := c.byDefinition[identity]
	return i, ok && c.servers[i].Source.Host != srv.Source.Host
}

// usedElsewhere reports whether an entry that its own file or host keeps back is used all the same,
// under its name, since another file has it too. Then nothing is said of it.
func (c *catalog) usedElsewhere(problem int) bool {
	refused, ok := c.refused[problem]
	if !ok || !slices.Contains([]State{Disabled, Denied, Unapproved}, c.Problems[problem].State) {
		return false
	}
	i, ok := c.byName[refused.Name]
	return ok && c.servers[i].Same(refused)
}

func (c *catalog) finish() Catalog {
	var problems []Problem
	for i, p := range c.Problems {
		if !c.usedElsewhere(i) {
			problems = append(problems, p)
		}
	}
	slices.SortFunc(c.servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range c.servers {
		srv := &c.servers[i]
		srv.Files = append(srv.Files, c.RuleFiles(srv.Source.Host)...)
	}
	return Catalog{Servers: c.servers, Problems: problems, Sources: c.Read}
}
