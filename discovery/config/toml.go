package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
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
	v := valueOf(root)
	if tooDeep(v.Pack()) >= 0 {
		return nil, Refusal{fmt.Sprintf("it nests more than %d levels deep", maxDepth), "make it flatter"}
	}
	o, _ := Value{&v}.Object()
	return o, Refusal{}
}

func valueOf(v any) hujson.Value {
	switch v := v.(type) {
	case map[string]any:
		o := &hujson.Object{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			o.Members = append(o.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(k)},
				Value: valueOf(v[k])})
		}
		return hujson.Value{Value: o}
	case []any:
		a := &hujson.Array{}
		for _, e := range v {
			a.Elements = append(a.Elements, valueOf(e))
		}
		return hujson.Value{Value: a}
	}
	text, err := json.Marshal(v)
	if err != nil { // not a number
		return hujson.Value{Value: hujson.String(fmt.Sprint(v))}
	}
	return hujson.Value{Value: hujson.Literal(text)}
}
