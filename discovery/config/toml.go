package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxMembers bounds what a TOML file has of tables, keys and their parts: the parser takes time in
// proportion to the square of their number, and recurses. Those in strings and comments count too.
const maxMembers = 1 << 13

// parseTOML returns what a TOML file holds. A refusal quotes nothing of the file.
func parseTOML(data []byte) (Object, Refusal) {
	members := 0
	for _, c := range data {
		if strings.IndexByte("=.[{", c) >= 0 {
			members++
		}
	}
	if members > maxMembers {
		return nil, Refusal{fmt.Sprintf("it has more than %d tables, keys and parts of keys", maxMembers),
			"take out what isn't needed"}
	}
	var root map[string]any
	if err := toml.Unmarshal(data, &root); err != nil {
		where := ""
		if p := new(toml.DecodeError); errors.As(err, &p) {
			line, column := p.Position()
			where = fmt.Sprintf(" at line %d, column %d", line, column)
		}
		return nil, Refusal{"it is not valid TOML" + where, "correct it there"}
	}
	v, deep := fromTOML(root, 0)
	if deep {
		return nil, Refusal{fmt.Sprintf("it nests more than %d levels deep", maxDepth), "make it flatter"}
	}
	o, _ := v.Object()
	return o, Refusal{}
}

// fromTOML returns what the parser found, its tables in alphabetical order, unless it nests too
// deep.
func fromTOML(v any, depth int) (value Value, deep bool) {
	if depth > maxDepth {
		return value, true
	}
	switch v := v.(type) {
	case map[string]any:
		o := Object{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner, tooDeep := fromTOML(v[name], depth+1)
			o, deep = append(o, Member{name, inner}), deep || tooDeep
		}
		return Value{o}, deep
	case []any:
		a := []Value{}
		for _, e := range v {
			inner, tooDeep := fromTOML(e, depth+1)
			a, deep = append(a, inner), deep || tooDeep
		}
		return Value{a}, deep
	case string, bool:
		return Value{v}, false
	case int64, float64:
		return Value{number(fmt.Sprint(v))}, false
	}
	return Value{fmt.Sprint(v)}, false // a date or a time
}
