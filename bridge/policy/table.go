package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// table is one table of the file, or the file itself. Its keys are those that it was asked for.
type table struct {
	reader *reader
	path   string // such as rule.0; empty for the file itself
	values map[string]any
	asked  []string
	wrong  bool // something is wrong with a key: what the table seems to lack may be that
}

// at returns the path of a key.
func (t *table) at(key string) string { return strings.Trim(t.path+"."+key, ".") }

// fail keeps a mistake of a key.
func (t *table) fail(key, format string, a ...any) {
	t.wrong = true
	t.reader.fail(t.at(key), format, a...)
}

// lacks keeps a mistake of a table that has no such key, unless one of its keys is wrong.
func (t *table) lacks(key, why string) {
	if !t.wrong {
		t.reader.fail(t.at(key), "%s", why)
	}
}

// value returns a key's value. ok is false if there isn't one of the kind that wants names.
func value[T any](t *table, key, wants string) (v T, ok bool) {
	t.asked = append(t.asked, key)
	raw, there := t.values[key]
	if v, ok = raw.(T); there && !ok {
		t.fail(key, "it must be %s, not %s", wants, kindOf(raw))
	}
	return v, ok
}

// list returns the values of a list.
func list[T any](t *table, key, wants string) []T {
	t.asked = append(t.asked, key)
	raw, there := t.values[key]
	items, ok := raw.([]any)
	out := make([]T, 0, len(items))
	for _, item := range items {
		v, is := item.(T)
		out, ok = append(out, v), ok && is
	}
	if there && !ok {
		t.fail(key, "it must be %s, not %s", wants, kindOf(raw))
		return nil
	}
	return out
}

// verdict returns a verdict, or 0 without one.
func (t *table) verdict(key string) Verdict {
	word, ok := value[string](t, key, `"allow", "ask" or "deny", in quotes`)
	if !ok {
		return 0
	}
	v := Verdict(slices.Index(verdictNames, word))
	if v < Allow {
		t.fail(key, "%q is no verdict: say allow, ask or deny", word)
		return 0
	}
	return v
}

// table returns a table in this one, or an empty one.
func (t *table) table(key string) *table {
	values, _ := value[map[string]any](t, key, "a table")
	return &table{reader: t.reader, path: t.at(key), values: values}
}

// tables returns those that each begin with the key in two pairs of brackets.
func (t *table) tables(key string) (out []*table) {
	for i, values := range list[map[string]any](t, key, fmt.Sprintf("tables that begin with [[%s]]", key)) {
		out = append(out, &table{reader: t.reader, path: t.at(key) + "." + strconv.Itoa(i), values: values})
	}
	return out
}

// end keeps a mistake for each key that the table was not asked for.
func (t *table) end() {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		near := text.DidYouMean(key, t.asked)
		switch {
		case slices.Contains(t.asked, key):
		case slices.Contains(t.asked, strings.ToLower(key)):
			t.fail(key, "there is no such key; it is written in small letters")
		default:
			t.fail(key, "there is no such key%s; there are: %s", near, strings.Join(t.asked, ", "))
		}
	}
}

// kindOf returns a value as people name it.
func kindOf(v any) string {
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
			if _, ok := item.(string); !ok {
				return "a list with " + kindOf(item) + " in it"
			}
		}
		return "a list of strings"
	}
	return "a date or a time"
}
