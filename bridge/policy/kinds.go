package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kind is what a value of the file has to be.
type kind struct {
	wants string // in the file's words
	is    func(v any) bool
}

var (
	word   = kind{`"allow", "ask" or "deny", in quotes`, isA[string]}
	words  = kind{"a string, in quotes", isA[string]}
	texts  = kind{`a list of strings such as ["github.*"]`, isList[string]}
	number = kind{"a whole number such as 100", isA[int64]}
	table  = kind{"a table", isA[map[string]any]}
)

// tables returns several of them, each with the name in brackets.
func tables(name string) kind {
	return kind{fmt.Sprintf("tables that begin with [[%s]]", name), isList[map[string]any]}
}

// kinds are those of all keys that there are.
var kinds = map[string]kind{
	"default": word,
	"rule":    tables("rule"), "rule.tools": texts, "rule.except": texts, "rule.verdict": word,
	"rule.reason": words,
	"limit":       tables("limit"), "limit.tools": texts, "limit.except": texts, "limit.per": words,
	"limit.calls": number, "limit.argument_bytes": number,
	"hints": table, "hints.read_only": word, "hints.destructive": word, "hints.idempotent": word,
	"hints.open_world": word,
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isList[T any](v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool { return !isA[T](item) })
}

// check looks whether the values are what their keys need. The decoder doesn't do that alone: it
// speaks of Go's types, and takes a number for a verdict. And it takes a key in any case for the
// one in small letters, so that one of two would count.
func (r *reader) check(file map[string]any) {
	type mistake struct{ key, says string }
	var found []mistake
	look := func(key, name string, v any) {
		switch k, known := kinds[name]; {
		case known && !k.is(v):
			found = append(found, mistake{key, fmt.Sprintf("it must be %s, not %s", k.wants, stands(v))})
		case !known && kinds[strings.ToLower(name)].is != nil:
			found = append(found, mistake{key, "there is no such key; it is written in small letters"})
		case !known && !strings.HasPrefix(name, "hints."): // those are looked at later
			found = append(found, mistake{key, "there is no such key" + nearestKey(strings.Split(name, "."))})
		}
	}
	for name, v := range file {
		look(name, name, v)
		if kinds[name].is == nil {
			continue
		}
		for i, t := range tablesOf(v) {
			key := name
			if !isA[map[string]any](v) {
				key += "." + strconv.Itoa(i)
			}
			for part, v := range t {
				look(key+"."+part, name+"."+part, v)
			}
		}
	}
	slices.SortFunc(found, func(a, b mistake) int {
		return cmp.Or(cmp.Compare(r.line(a.key), r.line(b.key)), cmp.Compare(a.key, b.key))
	})
	for _, m := range found {
		r.fail(m.key, "%s", m.says)
		if i := strings.LastIndexByte(m.key, '.'); i > 0 {
			r.misspelt[m.key[:i]] = true
		}
	}
}

// tablesOf returns a table, or those in a list.
func tablesOf(v any) (all []map[string]any) {
	if t, ok := v.(map[string]any); ok {
		return []map[string]any{t}
	}
	list, _ := v.([]any)
	for _, item := range list {
		t, _ := item.(map[string]any)
		all = append(all, t)
	}
	return all
}

// stands returns a value as people name it.
func stands(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %.60q", v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case bool:
		return strconv.FormatBool(v)
	case map[string]any:
		return "a table"
	case []any:
		for _, item := range v {
			if !isA[string](item) {
				return "a list with " + stands(item) + " in it"
			}
		}
		return "a list of strings"
	}
	return "a date or a time"
}
