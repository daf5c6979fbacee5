package install

import (
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/hosts"
)

// A Wish is which servers are to move behind the bridge, and what is known of them.
type Wish struct {
	Hosts   []string // by name; nil for all
	Servers []string // likewise

	// Held reports whether a server may not be started before its user has approved it.
	Held func(discovery.Server) bool
	// Tokens returns what the definitions of a server's tools take of a host's context, and whether
	// that is known.
	Tokens func(discovery.Server, Sent) (n int, known bool)
	// Own returns what the bridge's own definitions take.
	Own func(Sent) int
}

// Sent is how a host changes definitions.
type Sent = config.Sent

// Moves are the servers that move from hosts' files to the bridge's own, so that the hosts no
// longer load their definitions, and what that changes.
type Moves struct {
	All   []*Move
	Stays []Stay // of the hosts and servers that were asked for
	Loads []Load // of the hosts from which something moves
}

// A Move is a server that moves.
type Move struct {
	Name    string                // of the first of From
	From    []discovery.Candidate // entries of the same server, by this name or another
	Entry   config.OwnEntry       // with the filters of all of them
	There   bool                  // the bridge's own file has it already
	Secrets []config.Asked        // must be set before
	Set     []string              // names of Secrets that were set for this move

	was []config.Value // the entries of From, as the plan has them
}

// A Stay is an entry that doesn't move, or a file that can't be read.
type Stay struct {
	Name   string // empty for a file
	Source discovery.Source
	config.Refusal
}

// A Load is what definitions take of a host's context, as far as it is known.
type Load struct {
	Host string
	Tokens
	Unknown   []string // servers that were never asked for their tools, which are not counted
	SearchOff string   // the setting that switches the host's tool search off; empty: it has none
	Whole     Tokens   // what definitions take then
}

// Tokens are those before and after servers have moved.
type Tokens struct{ Before, After int }

func (t *Tokens) add(n int, moves bool) {
	t.Before += n
	if !moves {
		t.After += n
	}
}

// SentBy returns how a host changes definitions, by its name.
func SentBy(host string) (sent Sent) {
	if h := hostNamed(host); h != nil && h.Install != nil {
		sent = h.Install.Sent
	}
	return sent
}

// planner plans moves. The slices was, why and to are about the candidates, by index.
type planner struct {
	in     *Installer
	wish   Wish
	all    []discovery.Candidate
	bridge map[[2]string]bool // host and scope → it has the bridge
	was    []config.Value     // their entries, as their files have them
	why    []config.Refusal   // what keeps it where it is; none for what isn't asked for
	to     []*Move            // nil: it stays
	moves  []*Move
}

// PlanMoves plans. The first entry of a name counts, as it does in discovery; one that is the same
// server in another host goes with it.
func (in *Installer) PlanMoves(w Wish) Moves {
	p := &planner{in: in, wish: w, bridge: map[[2]string]bool{}}
	p.all = discovery.Candidates(in.cfg.FS, in.cfg.Env)
	for _, c := range p.all {
		if c.Problem != nil && c.Problem.State == discovery.Itself && !c.Written.Disabled {
			p.bridge[[2]string{c.Written.Source.Host, c.Written.Source.Scope}] = true
		}
	}
	p.was, p.why = make([]config.Value, len(p.all)), make([]config.Refusal, len(p.all))
	p.to = make([]*Move, len(p.all))
	for i, c := range p.all {
		if p.wanted(c) {
			p.why[i] = p.move(i)
		}
	}
	for p.dropContested() {
	}
	plan := Moves{All: p.moves, Loads: p.loads()}
	for i, c := range p.all {
		if p.why[i].Refused() {
			plan.Stays = append(plan.Stays, Stay{c.Written.Name, c.Written.Source, p.why[i]})
		}
	}
	for _, b := range in.broken {
		h := hostNamed(b.Source.Host)
		read := slices.ContainsFunc(p.all, func(c discovery.Candidate) bool {
			return c.Written.Source.Path == b.Source.Path // all the same
		})
		if !read && h != nil && h.Install != nil && has(w.Hosts, h.Name) &&
			slices.Contains(h.Install.User, b.Source.Scope) {
			plan.Stays = append(plan.Stays, Stay{"", b.Source, config.Refuse(b.Reason, b.Next)})
		}
	}
	return plan
}

// has reports whether a list of names has one, in whatever case; nil has all.
func has(list []string, name string) bool {
	return list == nil || slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
}

// wanted reports whether an entry is asked for. What is disabled and in the bridge's own file has
// moved before.
func (p *planner) wanted(c discovery.Candidate) bool {
	if c.Written.Source.Host == config.Own || !has(p.wish.Hosts, c.Written.Source.Host) ||
		!has(p.wish.Servers, c.Written.Name) {
		return false
	}
	switch state := stateOf(c); state {
	case discovery.Itself:
		return false
	case discovery.Disabled:
		return len(p.own(c.Written.Name)) == 0
	}
	return true
}

func stateOf(c discovery.Candidate) discovery.State {
	if c.Problem == nil {
		return ""
	}
	return c.Problem.State
}

// own returns the entries of the bridge's own files with a name.
func (p *planner) own(name string) (all []discovery.Candidate) {
	for _, c := range p.all {
		if c.Written.Source.Host == config.Own && c.Written.Name == name {
			all = append(all, c)
		}
	}
	return all
}

// move plans for one entry, or says why it stays.
func (p *planner) move(i int) config.Refusal {
	c := p.all[i]
	name := c.Written.Name
	if why := p.belongs(i); why.Refused() {
		return why
	}
	if p.merge(i) {
		return config.Refusal{}
	}
	entry, secrets, why := c.Written.Move(p.in.cfg.Env, c.Inputs)
	if why.Refused() {
		return why
	}
	switch state := stateOf(c); {
	case state == discovery.Unusable && asks(secrets), state == discovery.Duplicate:
	case state != "":
		return config.Refuse(c.Problem.Reason, c.Problem.Next)
	}
	if state := stateOf(c); state != discovery.Unusable && p.wish.Held(c.Server) {
		return config.Refuse("it is new, or has changed, where code could have written it",
			"look at it and approve it: mcp-bridge servers approve "+text.ShellWord(name)+
				", or --all, which asks about each")
	}
	if entry.AllowedTools, entry.DisabledTools, why = c.Written.Tools.Own(); why.Refused() {
		return why
	}
	m := &Move{Name: name, From: []discovery.Candidate{c}, Entry: entry, Secrets: secrets, was: p.was[i : i+1]}
	for _, own := range p.own(name) {
		is := ownEntry(entry)
		m.There = sameEntry(own.Written, is) || own.Server.Same(c.Server) && !c.Written.Tools.Says()
		if !m.There {
			return config.Refuse("the bridge's own file "+own.Written.Source.File()+" has another server of this "+
				"name, or shows other tools of it", "give one of them another name")
		}
	}
	if j := slices.IndexFunc(p.moves, func(other *Move) bool { return other.Name == name }); j >= 0 {
		return config.Refuse("another server of this name moves from "+p.moves[j].From[0].Written.Source.String(),
			"give one of them another name")
	}
	p.moves, p.to[i] = append(p.moves, m), m
	return config.Refusal{}
}

// belongs refuses an entry that isn't its user's to move, or that its host can't spare or be
// written without.
func (p *planner) belongs(i int) config.Refusal {
	c := p.all[i]
	e, src := c.Written, c.Written.Source
	h := hostNamed(src.Host)
	switch {
	case e.Plugin != nil:
		return config.Refuse("a plugin of "+src.Host+" brings it along",
			"disable the plugin there, and list the server in the bridge's own file")
	case slices.Contains([]string{"managed", "system", "system defaults"}, src.Scope):
		return config.Refuse("an administrator has set it up", "ask the administrator")
	case e.File.InProject():
		return config.Refuse("it is of a project's file, which others use too", "")
	case src.Scope == config.LocalScope:
		return config.Refuse("it is of one project only, and the bridge's own file is for all", "")
	case h == nil || h.Install == nil || !slices.Contains(h.Install.User, src.Scope):
		return config.Refuse("the bridge can't be put into that file", "move it by hand")
	case !p.bridge[[2]string{src.Host, src.Scope}]:
		next := "type: mcp-bridge install " + h.Install.ID
		if h.Install.Extension {
			next += "; then remove the extension mcp-bridge there, if that is how it has the bridge"
		}
		return config.Refuse(src.Host+" doesn't have the bridge in its file, and would lose it", next)
	}
	_, was, err := entryPath(h, e)
	if err == nil {
		p.was[i] = was
		_, err = p.in.switchedOff(nil, c, was, &Move{Name: e.Name})
	}
	if err != nil {
		return config.Refuse(err.Error(), text.Hint(err))
	}
	return config.Refusal{}
}

func hostNamed(name string) *config.Host {
	i := slices.IndexFunc(hosts.All, func(h *config.Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return hosts.All[i]
}

// asks reports whether a secret has to be asked for, which is why the entry can't be used as it is.
func asks(secrets []config.Asked) bool {
	return slices.ContainsFunc(secrets, func(a config.Asked) bool { return a.Value() == "" })
}

// ownEntry returns an entry as the reader of the bridge's own files has it.
func ownEntry(e config.OwnEntry) config.Entry {
	read, _ := (&config.File{Format: hosts.OwnFormat}).ReadEntry(object(e))
	return read
}

func object(e config.OwnEntry) config.Object {
	o, _, _ := config.Parse("entry.json", e.JSON())
	return o
}

// sameEntry reports whether two entries of the bridge's own files are the same as they are written.
func sameEntry(a, b config.Entry) bool {
	b.Source, a.Tools.Rules, b.Tools.Rules = a.Source, nil, nil
	b.Name, b.File = a.Name, a.File
	a.Disabled, a.OfProject, a.Written = b.Disabled, b.OfProject, b.Written
	return reflect.DeepEqual(a, b)
}

// merge adds an entry to a move of the same server, whose tools it doesn't hide otherwise.
func (p *planner) merge(i int) bool {
	c := p.all[i]
	usable := c.Problem == nil || c.Problem.State == discovery.Duplicate
	at := slices.IndexFunc(p.moves, func(m *Move) bool {
		twice := slices.ContainsFunc(m.From, func(o discovery.Candidate) bool {
			return o.Written.Source.Host == c.Written.Source.Host
		})
		// Two of one host's are two, as its user wanted it.
		return usable && !twice && m.From[0].Server.Same(c.Server)
	})
	if at < 0 {
		return false
	}
	m := p.moves[at]
	allow, deny, why := c.Written.Tools.Own()
	switch {
	case why.Refused(), m.There && c.Written.Tools.Says():
		return false
	case allow != nil && m.Entry.AllowedTools == nil:
		m.Entry.AllowedTools = allow
	case allow != nil && !slices.Equal(allow, m.Entry.AllowedTools):
		return false // what both show can't be said by patterns
	}
	for _, pattern := range deny {
		if !slices.Contains(m.Entry.DisabledTools, pattern) {
			m.Entry.DisabledTools = append(m.Entry.DisabledTools, pattern)
		}
	}
	m.From, m.was, p.to[i] = append(m.From, c), append(slices.Clone(m.was), p.was[i]), m
	return true
}

// dropContested takes back a move in whose place the bridge would find an entry that stays, since
// hosts' files come before its own. It reports whether there was one.
func (p *planner) dropContested() bool {
	for at, m := range p.moves {
		for i, c := range p.all {
			if p.to[i] != nil || !contests(c, m) {
				continue
			}
			for j := range p.all {
				if p.to[j] == m {
					p.to[j], p.why[j] = nil, config.Refuse(c.Written.Source.String()+" has a server of this name, or the "+
						"same one, which stays there, and would be used in its place", "move both, or give one of them "+
						"another name")
				}
			}
			p.moves = slices.Delete(p.moves, at, at+1)
			return true
		}
	}
	return false
}

// contests reports whether an entry that stays would take the name of a server that has moved. The
// same server does no harm, unless it has tools that the moved one's filters hide: with its secrets
// in another place, it is no longer known for the same.
func contests(c discovery.Candidate, m *Move) bool {
	used := slices.Contains([]discovery.State{"", discovery.Duplicate, discovery.Shadowed}, stateOf(c))
	if c.Written.Source.Host == config.Own || c.Written.File.InProject() || !used {
		return false
	}
	if !c.Server.Same(m.From[0].Server) {
		return c.Written.Name == m.Name
	}
	return len(m.Secrets) > 0 && (m.Entry.AllowedTools != nil || m.Entry.DisabledTools != nil)
}

// loads counts what definitions take of each host's context.
func (p *planner) loads() (all []Load) {
	loaded := map[[2]string]bool{} // host and name
	moved := map[string]bool{}     // host
	for i, c := range p.all {
		host := c.Written.Source.Host
		at := slices.IndexFunc(all, func(l Load) bool { return l.Host == host })
		if at < 0 {
			at, all = len(all), append(all, Load{Host: host})
		}
		l, key, sent := &all[at], [2]string{host, c.Written.Name}, SentBy(host)
		l.SearchOff = sent.SearchOff
		switch stateOf(c) {
		case discovery.Itself:
			l.add(p.wish.Own(sent), false)
			l.Whole.add(p.wish.Own(sent.Whole()), false)
			continue
		case "", discovery.Unusable, discovery.Duplicate, discovery.Shadowed: // its host uses it
		default:
			continue
		}
		if loaded[key] {
			continue
		}
		loaded[key] = true
		n, known := p.wish.Tokens(c.Server, sent)
		if !known {
			l.Unknown = append(l.Unknown, c.Written.Name)
		}
		whole, _ := p.wish.Tokens(c.Server, sent.Whole())
		l.add(n, p.to[i] != nil)
		l.Whole.add(whole, p.to[i] != nil)
		moved[host] = moved[host] || p.to[i] != nil
	}
	return slices.DeleteFunc(all, func(l Load) bool { return !moved[l.Host] })
}
