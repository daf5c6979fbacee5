// Package catalog holds the configured servers and their tools: by which names code and callers
// know them, what the servers last said of their tools, and what models and guests are told of
// them. That is the tool's definition and the instructions, the manual, search_tools, the search
// and the documentation that code asks for, and the typed declarations.
//
// It starts no server and calls no tool. A View is handed what lists a server's tools, and decides
// only whom to ask. Everything that a server says is foreign: each answer here is bounded.
package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// heldNote is what is said of a server that is held, before its own description.
const heldNote = "New since the bridge started, or changed: it is not started before the user says yes."

// Config is what stays while the configured servers change.
type Config struct {
	Policy *policy.Policy // which tools code may call; nil allows all
	Store  *Store         // what servers have said to earlier processes; nil: nothing
	Log    *slog.Logger   // required

	// Held reports whether a server may not be started before the user says yes; nil: none is held.
	Held func(discovery.Server) bool
}

// A Server is one configured server as code and callers know it.
type Server struct {
	Name, Alias, Description string

	Held bool // it is not started before the user says yes
}

// A Catalog holds the configured servers by their names. Of these only what is known of their tools
// changes. It is safe for concurrent use.
type Catalog struct {
	cfg         Config
	servers     []Server // by name
	byName      map[string]Server
	byAlias     map[string]Server
	definitions map[string]discovery.Server // by name
	identities  map[string]func() string    // of the definitions: each looks at the file system once
	problems    []discovery.Problem
	tools       *toolCache
	seen        *seen // shared with the catalogs before and after this one

	mu     sync.Mutex
	theirs map[string]*Catalog // those of principals, by the keys of their policies
}

// maxTheirs bounds the catalogs for principals: one for each set of rules that some of them have.
const maxTheirs = 64

// New returns the catalog of some servers; problems are why others are not among them.
func New(cfg Config, servers []discovery.Server, problems []discovery.Problem) *Catalog {
	cfg.Policy = cmp.Or(cfg.Policy, new(policy.Policy))
	seen := &seen{store: cfg.Store, log: cfg.Log, servers: map[string]*seenServer{}}
	return build(cfg, seen, servers, problems)
}

// With returns the catalog of other servers, which shares what results were seen to be.
func (c *Catalog) With(servers []discovery.Server, problems []discovery.Problem) *Catalog {
	return build(c.cfg, c.seen, servers, problems)
}

// WithPolicy returns the catalog of the same servers with another policy.
func (c *Catalog) WithPolicy(p *policy.Policy) *Catalog {
	cfg := c.cfg
	cfg.Policy = cmp.Or(p, new(policy.Policy))
	return &Catalog{
		cfg: cfg, servers: c.servers, byName: c.byName, byAlias: c.byAlias, definitions: c.definitions,
		identities: c.identities, problems: c.problems, tools: newToolCache(), seen: c.seen,
		theirs: map[string]*Catalog{},
	}
}

// For returns the catalog as it is for a principal, by the rules of the policy that are about that
// one. It is the same for all that have the same rules.
func (c *Catalog) For(principal string) *Catalog {
	p, key := c.cfg.Policy.For(principal)
	if _, own := c.cfg.Policy.For(policy.Local); key == own {
		return c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.theirs[key]
	if found == nil {
		if len(c.theirs) >= maxTheirs {
			clear(c.theirs)
		}
		found = c.WithPolicy(p)
		c.theirs[key] = found
	}
	return found
}

// build makes aliases over all configured servers, so that a server's alias doesn't depend on which
// ones a call asks for.
func build(cfg Config, seen *seen, servers []discovery.Server, problems []discovery.Problem) *Catalog {
	c := &Catalog{cfg: cfg, seen: seen, problems: problems, tools: newToolCache(), byName: map[string]Server{},
		byAlias: map[string]Server{}, definitions: map[string]discovery.Server{},
		identities: map[string]func() string{}, theirs: map[string]*Catalog{}}
	names := make([]string, 0, len(servers))
	for _, s := range servers {
		names = append(names, s.Name)
	}
	aliases := entrypoint.ServerAliases(names)
	for _, d := range servers {
		s := Server{Name: d.Name, Alias: aliases[d.Name], Description: d.Description}
		s.Held = cfg.Held != nil && cfg.Held(d)
		if s.Held {
			s.Description = strings.TrimSpace(heldNote + " " + d.Description)
		}
		c.servers = append(c.servers, s)
		c.byName[s.Name], c.byAlias[s.Alias], c.definitions[s.Name] = s, s, d
		c.identities[s.Name] = sync.OnceValue(d.Identity)
	}
	slices.SortFunc(c.servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// Servers returns all configured servers by name. The caller doesn't change the list.
func (c *Catalog) Servers() []Server { return c.servers }

// Announced returns what a guest is told of servers before it asks: those of some, without tools,
// so that no server has to be started for it, and the names of all.
func (c *Catalog) Announced(some []Server) (may []entrypoint.Provider, all []entrypoint.Discovered) {
	for _, s := range some {
		may = append(may, provider(s))
	}
	for _, s := range c.servers {
		all = append(all, entrypoint.Discovered{Name: s.Name, Description: s.Description})
	}
	return may, all
}

func provider(s Server) entrypoint.Provider {
	return entrypoint.Provider{Name: s.Name, Alias: s.Alias, Description: s.Description}
}

// Definitions returns how all servers are configured, by name. The caller doesn't change them.
func (c *Catalog) Definitions() map[string]discovery.Server { return c.definitions }

// Policy returns which tools code may call. It is never nil.
func (c *Catalog) Policy() *policy.Policy { return c.cfg.Policy }

// open returns the servers that are not held. The others' names stay out of the tool's definition,
// since code may have written them.
func open(servers []Server) []Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return s.Held })
}

// Find takes a real name, an alias or mcp_<alias>, in that order.
func (c *Catalog) Find(name string) (Server, bool) {
	if s, ok := c.byName[name]; ok {
		return s, true
	}
	if s, ok := c.byAlias[name]; ok {
		return s, true
	}
	s, ok := c.byAlias[strings.TrimPrefix(name, "mcp_")]
	return s, ok
}

// Unknown returns what to do about a name that Find doesn't know, when only the servers of among
// may be used.
func (c *Catalog) Unknown(name string, among []Server) string {
	for _, p := range c.problems {
		if p.Server == name && name != "" {
			return fmt.Sprintf("server %q is configured in %s but can't be used: %s",
				name, p.Source.Path, text.Sentence(p.Reason, p.Next))
		}
	}
	name = text.Brief(name, args.MaxEcho)
	names := Names(among)
	if len(names) == 0 {
		return fmt.Sprintf("there is no server %q, and none that can be used%s; "+
			"`mcp-bridge servers` shows what was found where", name, unread(c.problems))
	}
	return fmt.Sprintf("there is no server %q%s; there are: %s%s",
		name, text.DidYouMean(name, names), text.List(names), unread(c.problems))
}

// unread returns a clause about the first file that can't be read, which may define any server, or
// nothing.
func unread(problems []discovery.Problem) string {
	for _, p := range problems {
		if p.Server == "" && p.State == discovery.Broken {
			return fmt.Sprintf("; what %s defines isn't known: %s", text.Line(p.Source.Path), text.Line(p.Reason))
		}
	}
	return ""
}

// undefinedName matches what Python says of a name that isn't there.
var undefinedName = regexp.MustCompile(`^name 'mcp_(\w+)' is not defined`)

// Undefined explains an exception that came of a server which is configured and can't be used. It
// returns nothing for any other exception.
func (c *Catalog) Undefined(kind, message string) string {
	m := undefinedName.FindStringSubmatch(message)
	if c == nil || kind != "NameError" || m == nil {
		return ""
	}
	for _, p := range c.problems {
		if p.Server != "" && entrypoint.ServerAliases([]string{p.Server})[p.Server] == m[1] {
			return c.Unknown(p.Server, nil)
		}
	}
	return ""
}

// DecodeServers returns the servers that run_python's argument servers names, by real name or
// alias. What is named twice counts once. The empty list is valid: no servers. Errors are
// args.Errors.
func (c *Catalog) DecodeServers(v json.RawMessage) ([]Server, error) {
	var items []json.RawMessage
	if json.Unmarshal(v, &items) != nil {
		return nil, args.Errorf(`argument "servers" must be a list of server names such as ["github"], not %s; `+
			`leave it out for all servers`, args.Kind(v))
	}
	chosen := []Server{}
	for _, item := range items {
		var name string
		if args.Kind(item) != "a string" || json.Unmarshal(item, &name) != nil {
			return nil, args.Errorf(`argument "servers" must be a list of server names, but holds %s; `+
				`leave it out for all servers`, args.Kind(item))
		}
		s, ok := c.Find(name)
		if !ok {
			return nil, args.Error(c.Unknown(name, c.servers))
		}
		if !slices.Contains(chosen, s) {
			chosen = append(chosen, s)
		}
	}
	slices.SortFunc(chosen, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return chosen, nil
}

// Names returns the names of some servers.
func Names(servers []Server) []string {
	names := make([]string, 0, len(servers))
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// ended returns the error of a context for the code that asked.
func ended(err error) error {
	code := entrypoint.CodeCancelled
	if errors.Is(err, context.DeadlineExceeded) {
		code = entrypoint.CodeTimeout
	}
	err = fmt.Errorf("looking through the tools was given up: %w", err)
	return &entrypoint.CallError{Code: code, Message: err.Error()}
}

func invalid(format string, a ...any) error {
	return &entrypoint.CallError{Code: entrypoint.CodeValidation, Message: fmt.Sprintf(format, a...)}
}
