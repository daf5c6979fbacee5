package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const (
	openCode = "OpenCode"
	kilo     = "Kilo Code" // made from OpenCode, with files of its own
)

// maxRules is how many rules about tools are looked through for each name; with more, all tools are hidden.
const maxRules = 1000

// openCodeRules are what the files of OpenCode, or of Kilo Code, say of tools: the user's alone, and with those of the project and the
// administrator. A tool has to pass both, so that what a project brings along shows nothing that the user has hidden.
type openCodeRules struct {
	lists [][]ToolRule
	off   map[string]Source // servers that the administrator has switched off
}

// readOpenCode reads tools and permission of a host's files. Each file's go on top of those before, in OpenCode's own order, and
// permission goes on top of tools, which is its older name.
func (s *scan) readOpenCode(host string) openCodeRules {
	rules := openCodeRules{off: map[string]Source{}}
	tools, permission := &hujson.Object{}, &hujson.Object{}
	from := map[string]Source{}
	var last, blind Source
	for _, scope := range []string{"user", "OPENCODE_CONFIG", "project", "managed"} {
		for i := range sources {
			r := &sources[i]
			if r.host != host || r.scope != scope {
				continue
			}
			paths := s.places.expand(r.where)
			if scope == "project" {
				slices.Reverse(paths) // the nearest last
			}
			for _, p := range paths {
				if scope == "project" && s.usersOwn(host, p) {
					continue
				}
				src := Source{host, r.scope, p}
				f := s.load(src, false, false)
				if f.exposed && scope != "project" || f.broken && scope == "managed" {
					blind = src // what it hides isn't known, or others could have it show what another file hides
				}
				if f.rules == nil {
					continue
				}
				last = src
				for _, o := range []*hujson.Object{objectIn(f.rules, "tools"), permissions(get(f.rules, "permission"))} {
					for _, m := range o.Members {
						from[nameOf(m)] = src
					}
				}
				tools = onTop(tools, objectIn(f.rules, "tools"))
				permission = onTop(permission, permissions(get(f.rules, "permission")))
				if scope == "managed" {
					rules.switchedOff(f.rules, src)
				}
			}
		}
		if scope == "user" || scope == "project" {
			continue // what OPENCODE_CONFIG names is the user's too
		}
		list := toolRules(tools, permission, from)
		if blind != (Source{}) {
			list = []ToolRule{{"*", true, blind}}
		}
		if s.places.windows { // where OpenCode's patterns are of any case
			for i := range list {
				list[i].Pattern = strings.ToLower(list[i].Pattern)
			}
		}
		if len(list) > maxRules {
			if len(rules.lists) == 0 {
				s.problem(last, "", fmt.Sprintf("with it there are more than %d rules about tools; all tools of %s's servers are hidden", maxRules, host), "take out what isn't needed")
			}
			list = []ToolRule{{"*", true, last}}
		}
		if list != nil && (len(rules.lists) == 0 || !slices.Equal(rules.lists[0], list)) {
			rules.lists = append(rules.lists, list)
		}
	}
	return rules
}

// switchedOff notes the servers that a file switches off: it need not say what they are.
func (o openCodeRules) switchedOff(root *hujson.Object, src Source) {
	group := objectIn(root, "mcp")
	for _, entries := range []*hujson.Object{group, objectIn(group, "servers")} {
		for _, m := range entries.Members {
			if e, ok := objectOf(&m.Value); ok && (kind(get(e, "enabled")) == "false" || kind(get(e, "disabled")) == "true") {
				o.off[nameOf(m)] = src
			}
		}
	}
}

// of is the lists for one server.
func (o openCodeRules) of(server string, anyCase bool) (lists []RuleList) {
	prefix := plain(server) + "_"
	if anyCase {
		prefix = strings.ToLower(prefix)
	}
	for _, rules := range o.lists {
		lists = append(lists, RuleList{Prefix: prefix, Rules: rules, AnyCase: anyCase})
	}
	return lists
}

// objectIn is the object under a key, an empty one if there is none.
func objectIn(o *hujson.Object, key string) *hujson.Object {
	if inner, ok := objectOf(get(o, key)); ok {
		return inner
	}
	return &hujson.Object{}
}

// permissions is what is said of permission: one word is about all tools.
func permissions(v *hujson.Value) *hujson.Object {
	if _, ok := stringOf(v); ok {
		return &hujson.Object{Members: []hujson.ObjectMember{{Name: hujson.Value{Value: hujson.String("*")}, Value: *v}}}
	}
	if o, ok := objectOf(v); ok {
		return o
	}
	return &hujson.Object{}
}

// onTop is both objects in one. The members of the second count, in the place of the first's, and what is an object in both is put
// together likewise.
func onTop(under, over *hujson.Object) *hujson.Object {
	both := &hujson.Object{}
	index := map[string]int{}
	for _, o := range []*hujson.Object{under, over} {
		for _, m := range o.Members {
			name := nameOf(m)
			i, ok := index[name]
			if !ok {
				index[name] = len(both.Members)
				both.Members = append(both.Members, m)
				continue
			}
			first, isObject := objectOf(&both.Members[i].Value)
			if second, too := objectOf(&m.Value); isObject && too {
				m.Value = hujson.Value{Value: onTop(first, second)}
			}
			both.Members[i] = m
		}
	}
	return both
}

// toolRules makes one list of both. A permission that depends on what a tool is called with says nothing of the tool, but for what
// it says of *, which is how OpenCode asks about a server's tools. What is to be asked about isn't hidden.
func toolRules(tools, permission *hujson.Object, from map[string]Source) (rules []ToolRule) {
	older := make([]hujson.ObjectMember, 0, len(tools.Members))
	for _, m := range tools.Members {
		action := "deny"
		if kind(&m.Value) == "true" {
			action = "allow"
		}
		if slices.Contains([]string{"write", "edit", "patch"}, nameOf(m)) {
			from["edit"] = from[nameOf(m)]
			m.Name = hujson.Value{Value: hujson.String("edit")}
		}
		m.Value = hujson.Value{Value: hujson.String(action)}
		older = append(older, m)
	}
	for _, m := range onTop(&hujson.Object{Members: older}, permission).Members {
		if word, ok := stringOf(&m.Value); ok {
			rules = append(rules, ToolRule{nameOf(m), word == "deny", from[nameOf(m)]})
			continue
		}
		inner, _ := objectOf(&m.Value)
		if inner == nil {
			continue
		}
		for _, when := range inner.Members {
			if word, ok := stringOf(&when.Value); ok && (ToolRule{Pattern: nameOf(when)}).matches("*") {
				rules = append(rules, ToolRule{nameOf(m), word == "deny", from[nameOf(m)]})
			}
		}
	}
	return rules
}
