package bridge

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/schemas"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// heldNote is what is said of a server that is held, before its own description.
const heldNote = "New since the bridge started, or changed: it is not started before the user says yes."

// entry is one configured server as code and callers know it.
type entry struct {
	name, alias, description string
	held                     bool // it is not started before the user says yes
}

// catalog holds the configured servers by their names. Only its shelf changes.
type catalog struct {
	servers   []entry   // by name
	announced announced // of all of them
	byName    map[string]entry
	byAlias   map[string]entry
	problems  []discovery.Problem
	shelf     *shelf // of those whose tools are known

	definitions map[string]discovery.Server // by name
	policy      *policy.Policy
}

// announced is what the guest is told of servers. It is shared between runs: nothing changes it.
type announced struct {
	providers  []entrypoint.Provider
	discovered []entrypoint.Discovered
}

func announcing(entries []entry) (o announced) {
	for _, e := range entries {
		o.providers = append(o.providers, provider(e))
		o.discovered = append(o.discovered, entrypoint.Discovered{Name: e.name, Description: e.description})
	}
	return o
}

// newCatalog gives aliases over all configured servers, so that a server's alias doesn't depend on which ones a call asks for.
// Tools that the policy denies are in no listing; nil allows all. What saved has of the servers' tools is known from the beginning.
// Held says which servers are.
func newCatalog(servers []discovery.Server, problems []discovery.Problem, p *policy.Policy, saved *schemas.Store, held func(discovery.Server) bool) *catalog {
	c := &catalog{byName: map[string]entry{}, byAlias: map[string]entry{}, problems: problems,
		definitions: map[string]discovery.Server{}, policy: cmp.Or(p, new(policy.Policy))}
	c.shelf = newShelf(saved, c.definitions, c.judge)
	names := make([]string, 0, len(servers))
	for _, s := range servers {
		names = append(names, s.Name)
	}
	aliases := entrypoint.ServerAliases(names)
	for _, s := range servers {
		e := entry{name: s.Name, alias: aliases[s.Name], description: s.Description, held: held(s)}
		if e.held {
			e.description = strings.TrimSpace(heldNote + " " + s.Description)
		}
		c.servers = append(c.servers, e)
		c.byName[e.name] = e
		c.definitions[e.name] = s
		c.byAlias[e.alias] = e
	}
	slices.SortFunc(c.servers, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	c.announced = announcing(c.servers)
	return c
}

// open returns the servers that are not held: the others' names are not for the tool's definition, where code would write them.
func (c *catalog) open() []entry {
	return slices.DeleteFunc(slices.Clone(c.servers), func(e entry) bool { return e.held })
}

// find takes a real name, an alias or mcp_<alias>, in that order.
func (c *catalog) find(name string) (entry, bool) {
	if e, ok := c.byName[name]; ok {
		return e, true
	}
	if e, ok := c.byAlias[name]; ok {
		return e, true
	}
	e, ok := c.byAlias[strings.TrimPrefix(name, "mcp_")]
	return e, ok
}

// unknown says what to do about a name that find doesn't know, when only the servers of among may be used.
func (c *catalog) unknown(name string, among []entry) string {
	for _, p := range c.problems {
		if p.Server == name && name != "" {
			return fmt.Sprintf("server %q is configured in %s but can't be used: %s", name, p.Source.Path, text.Sentence(p.Reason, p.Next))
		}
	}
	name = text.Brief(name, args.MaxEcho)
	names := namesOf(among)
	if len(names) == 0 {
		return fmt.Sprintf("there is no server %q, and none that can be used%s; `mcp-bridge servers` shows what was found where", name, c.lost())
	}
	return fmt.Sprintf("there is no server %q%s; there are: %s%s", name, text.DidYouMean(name, names), text.List(names), c.lost())
}

// lost is a clause about the first file that can't be read, or nothing: it may define any server.
func (c *catalog) lost() string {
	for _, p := range c.problems {
		if p.Server == "" && p.State == discovery.Broken {
			return fmt.Sprintf("; what %s defines isn't known: %s", text.Line(p.Source.Path), text.Line(p.Reason))
		}
	}
	return ""
}

// undefinedName is what Python says of a name that isn't there.
var undefinedName = regexp.MustCompile(`^name 'mcp_(\w+)' is not defined`)

// missing says of an exception that it came of a server which is configured and can't be used, or nothing.
func (c *catalog) missing(kind, message string) string {
	m := undefinedName.FindStringSubmatch(message)
	if c == nil || kind != "NameError" || m == nil {
		return ""
	}
	for _, p := range c.problems {
		if p.Server != "" && entrypoint.ServerAliases([]string{p.Server})[p.Server] == m[1] {
			return c.unknown(p.Server, nil)
		}
	}
	return ""
}

func namesOf(entries []entry) []string {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.name)
	}
	return names
}
