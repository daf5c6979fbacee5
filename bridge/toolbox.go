package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/index"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
)

// What a guest is told of a server has to fit into a frame, entrypoint.MaxFrame, as JSON: text counts as it is escaped there. Names
// come first. A schema that doesn't fit is left out: the tool takes any arguments then, and its server checks them. So is a
// description, and a tool whose very name doesn't fit, which code can still call by runtime.call_tool.
const (
	maxProvider    = 12 << 20 // bytes of all of it
	maxNames       = 4 << 20  // bytes of these for the tools' names
	maxStub        = 2 << 20  // bytes of these that the declarations may take
	maxSchema      = 1 << 20  // bytes of one schema, before and after it is escaped
	maxDescription = 16 << 10 // bytes of one description, before it is escaped
)

// toolbox is the tools of one server with what is made of them. It doesn't change.
type toolbox struct {
	server   entry
	listed   []upstream.Tool            // all that the server has
	tools    []upstream.Tool            // those of them that code may know of
	denied   map[string]policy.Decision // the others, by real name
	aliases  map[string]string          // of all, by real name: what is denied changes no other tool's alias
	byAlias  map[string]string          // real name by alias
	provider func() entrypoint.Provider
	part     func() *index.Part                 // for the index of a search
	seen     func(tool string, most int) string // the shape of results, by real name; nil for none
	asOf     time.Time                          // when the server listed them, where that was kept on disk; zero: in this process
}

// newToolbox leaves out what judge denies.
func newToolbox(s entry, tools []upstream.Tool, judge func(entry, upstream.Tool) policy.Decision) *toolbox {
	b := &toolbox{server: s, listed: tools, denied: map[string]policy.Decision{}, byAlias: make(map[string]string, len(tools))}
	for _, t := range tools {
		if d := judge(s, t); d.Verdict == policy.Deny {
			b.denied[t.Name] = d
		} else {
			b.tools = append(b.tools, t)
		}
	}
	b.aliases = entrypoint.Aliases(names(tools))
	for name, alias := range b.aliases {
		b.byAlias[alias] = name
	}
	b.provider = sync.OnceValue(b.makeProvider)
	b.part = sync.OnceValue(b.makePart)
	return b
}

func (b *toolbox) names() []string { return names(b.tools) }

func names(tools []upstream.Tool) []string {
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

// find gives a tool by its alias or real name. An alias comes first: that is what frames have, and another tool's real name may
// look the same.
func (b *toolbox) find(name string) (upstream.Tool, bool) {
	real := b.real(name)
	i := slices.IndexFunc(b.tools, func(t upstream.Tool) bool { return t.Name == real })
	if i < 0 {
		return upstream.Tool{}, false
	}
	return b.tools[i], true
}

// real is the name of the tool that find looks for.
func (b *toolbox) real(name string) string {
	if real, ok := b.byAlias[name]; ok {
		return real
	}
	return name
}

// unknown is the error of a call of a tool that find doesn't have.
func (b *toolbox) unknown(name string) error {
	if d, ok := b.denied[b.real(name)]; ok {
		return deniedBy(b.server, b.real(name), d)
	}
	return invalid("server %q has no tool %q%s; it has: %s", b.server.name, name, text.DidYouMean(name, b.names()), text.List(b.names()))
}

// maxRefusal bounds, in bytes, what a guest is told of why a tool may not be called.
const maxRefusal = 500

// refusals are the names and aliases of tools that are denied, with the reasons, for a guest: as many as of tools that are gone.
func (b *toolbox) refusals() map[string]string {
	told := map[string]string{}
	for _, t := range b.listed {
		d, denied := b.denied[t.Name]
		for _, name := range []string{t.Name, b.aliases[t.Name]} {
			if denied && len(name) <= maxGoneName && len(told) < maxGone {
				told[name] = text.First(text.Safe(d.Why()), maxRefusal)
			}
		}
	}
	return told
}

// makeProvider is the server as the guest is told of it: with its tools, and their declarations to read.
func (b *toolbox) makeProvider() entrypoint.Provider {
	p := provider(b.server)
	p.Tools = make(map[string]entrypoint.Tool, len(b.tools))
	named, names := b.fitting()
	room := budget(maxProvider - maxStub - names)
	if !room.takes(p, maxProvider) {
		p.Description = ""
	}
	for _, t := range named {
		told := b.told(t)
		for _, schema := range []*json.RawMessage{&told.InputSchema, &told.OutputSchema} {
			if len(*schema) > 0 && !room.takes(*schema, maxSchema) {
				*schema = nil
			}
		}
		if !room.takes(told.Description, maxProvider) {
			told.Description = ""
		}
		p.Tools[told.SafeName] = told
	}
	stubs.Declare(&p)
	room = maxStub
	if !room.takes(p.Stub, maxStub) {
		p.Stub = ""
	}
	for _, t := range named {
		if told := p.Tools[b.aliases[t.Name]]; !room.takes([]any{told.Stub, told.Keys}, maxStub) {
			told.Stub, told.Keys = "", nil
			p.Tools[told.SafeName] = told
		}
	}
	return p
}

// fitting are the tools whose names fit, with the bytes that these take.
func (b *toolbox) fitting() ([]upstream.Tool, int) {
	room := budget(maxNames)
	named := make([]upstream.Tool, 0, len(b.tools))
	for _, t := range b.tools {
		alias := b.aliases[t.Name]
		if room.takes(map[string]entrypoint.Tool{alias: {SafeName: alias, OriginalName: t.Name}}, maxNames) {
			named = append(named, t)
		}
	}
	return named, maxNames - int(room)
}

// budget is how many bytes of JSON there is room for.
type budget int

// keyRoom is more than a member of an object takes besides its value.
const keyRoom = 20

// takes says whether there is room for a value of at most so many bytes, and takes it. For what is no JSON there is none.
func (b *budget) takes(v any, most int) bool {
	text, err := json.Marshal(v)
	size := len(text) + keyRoom
	if err != nil || size > min(most+keyRoom, int(*b)) {
		return false
	}
	*b -= budget(size)
	return true
}

// told is a tool in the words of the protocol, without schemas that are too long.
func (b *toolbox) told(t upstream.Tool) entrypoint.Tool {
	told := entrypoint.Tool{SafeName: b.aliases[t.Name], OriginalName: t.Name, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
	if len(told.Description) > maxDescription {
		told.Description = text.First(told.Description, maxDescription) + " […]"
	}
	told.Description = strings.TrimSpace(told.Description + "\n\n" + b.seenNote(t))
	for _, schema := range []*json.RawMessage{&told.InputSchema, &told.OutputSchema} {
		if len(*schema) > maxSchema {
			*schema = nil
		}
	}
	return told
}

// signature is how code calls a tool, on one line.
func (b *toolbox) signature(t upstream.Tool) string {
	return b.withSeen(fmt.Sprintf("mcp_%s.%s", b.server.alias, stubs.Signature(b.aliases[t.Name], b.told(t))), t)
}
