package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const openCode = "OpenCode"

// maxRules is how many rules about tools are looked through for each name; with more, all tools are hidden.
const maxRules = 1000

// openCodeRules are what OpenCode's files say of tools: the user's alone, and with those of the project. A tool has to pass both,
// so that what a project brings along shows nothing that the user has hidden.
type openCodeRules [][]ToolRule

// readOpenCode reads tools and permission of OpenCode's files. Each file's go on top of those before, in OpenCode's own order, and
// permission goes on top of tools, which is its older name.
func (s *scan) readOpenCode() (lists openCodeRules) {
	tools, permission := &hujson.Object{}, &hujson.Object{}
	var last Source
	exposed := false
	for _, scope := range []string{"user", "OPENCODE_CONFIG", "project"} {
		for _, r := range sources {
			if r.host != openCode || r.scope != scope {
				continue
			}
			paths := s.places.expand(r.where)
			if scope == "project" {
				slices.Reverse(paths) // the nearest last
			}
			for _, p := range paths {
				if scope == "project" && s.usersOwn(openCode, p) {
					continue
				}
				src := Source{openCode, r.scope, p}
				f := s.load(src, false, false)
				exposed = exposed || f.exposed && scope != "project" // what others show, the user may have hidden elsewhere
				if f.rules == nil {
					continue
				}
				last = src
				tools = onTop(tools, objectIn(f.rules, "tools"))
				permission = onTop(permission, permissions(get(f.rules, "permission")))
			}
		}
		if scope == "user" {
			continue // what OPENCODE_CONFIG names is the user's too
		}
		rules := toolRules(tools, permission)
		if exposed {
			rules = []ToolRule{{"*", true}}
		}
		if s.places.windows { // where OpenCode's patterns are of any case
			for i := range rules {
				rules[i].Pattern = strings.ToLower(rules[i].Pattern)
			}
		}
		if len(rules) > maxRules {
			if len(lists) == 0 {
				s.problem(last, "", fmt.Sprintf("with it there are more than %d rules about tools; all tools of OpenCode's servers are hidden", maxRules), "take out what isn't needed")
			}
			rules = []ToolRule{{"*", true}}
		}
		if rules != nil && (len(lists) == 0 || !slices.Equal(lists[0], rules)) {
			lists = append(lists, rules)
		}
	}
	return lists
}

// of is the lists for one server.
func (o openCodeRules) of(server string, anyCase bool) (lists []RuleList) {
	prefix := plain(server) + "_"
	if anyCase {
		prefix = strings.ToLower(prefix)
	}
	for _, rules := range o {
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
func toolRules(tools, permission *hujson.Object) (rules []ToolRule) {
	older := make([]hujson.ObjectMember, 0, len(tools.Members))
	for _, m := range tools.Members {
		action := "deny"
		if kind(&m.Value) == "true" {
			action = "allow"
		}
		if slices.Contains([]string{"write", "edit", "patch"}, nameOf(m)) {
			m.Name = hujson.Value{Value: hujson.String("edit")}
		}
		m.Value = hujson.Value{Value: hujson.String(action)}
		older = append(older, m)
	}
	for _, m := range onTop(&hujson.Object{Members: older}, permission).Members {
		if word, ok := stringOf(&m.Value); ok {
			rules = append(rules, ToolRule{nameOf(m), word == "deny"})
			continue
		}
		inner, _ := objectOf(&m.Value)
		if inner == nil {
			continue
		}
		for _, when := range inner.Members {
			if word, ok := stringOf(&when.Value); ok && (ToolRule{Pattern: nameOf(when)}).matches("*") {
				rules = append(rules, ToolRule{nameOf(m), word == "deny"})
			}
		}
	}
	return rules
}
