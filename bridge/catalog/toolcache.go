package catalog

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// toolCache keeps the latest toolset of each server: to make what a guest is told of one takes
// about 5 ms. It is safe for concurrent use.
type toolCache struct {
	ranking ranking

	// Real names of servers that a search has waited for in vain since they last listed their tools.
	late sync.Map

	mu   sync.Mutex
	sets map[string]*Toolset // by real name
}

func newToolCache() *toolCache { return &toolCache{sets: map[string]*Toolset{}} }

// Listed returns the toolset of a list that a server has just given. It is the one that is there
// while the list stays the same.
func (c *Catalog) Listed(s Server, tools []upstream.Tool) *Toolset {
	k := c.tools
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late.Delete(s.Name)
	t := k.sets[s.Name]
	switch {
	case t == nil || !slices.EqualFunc(t.listed, tools, sameTool):
		before := t
		t = c.toolset(s, tools)
		if before != nil {
			older := *before
			older.before = nil
			t.before = &older
		}
	case !t.asOf.IsZero():
		current := *t
		current.asOf = time.Time{}
		t = &current
	}
	k.sets[s.Name] = t
	return t
}

// known returns the toolset of a server that was asked for its tools before, by this process or an
// earlier one, else nil.
func (c *Catalog) known(server string) *Toolset {
	s, ok := c.byName[server]
	if !ok {
		return nil
	}
	k := c.tools
	k.mu.Lock()
	t := k.sets[server]
	k.mu.Unlock()
	if t != nil {
		return t
	}
	list, ok := c.cfg.Store.Load(c.identities[server]())
	if !ok {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sets[server] == nil { // else the server has just told
		t = c.toolset(s, list.Tools)
		t.asOf = list.AsOf
		k.sets[server] = t
	}
	return k.sets[server]
}

// renew replaces a server's toolset, whose texts are then made again at the next use.
func (c *Catalog) renew(server string) {
	k := c.tools
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.sets[server]; old != nil {
		t := c.toolset(old.Server, old.listed)
		t.asOf, t.before = old.asOf, old.before
		k.sets[server] = t
	}
}

// sameTool reports whether two tools are the same. It is quick for copies of one, whose raw fields
// share their memory.
func sameTool(a, b upstream.Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.Invalid == b.Invalid &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) &&
		bytes.Equal(a.Annotations, b.Annotations)
}

// age returns how long ago something was, in one unit.
func age(since time.Time) string { return strings.ToLower(units.HumanDuration(time.Since(since))) }
