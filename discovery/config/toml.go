package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// parseTOML returns what a TOML file holds. A refusal quotes nothing of the file.
func parseTOML(data []byte) (Object, Refusal) {
	if bad := tooMuchTOML(data); bad.Refused() {
		return nil, bad
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
	o, _ := Value{&hujson.Value{Value: tableOf(root)}}.Object()
	return o, Refusal{}
}

func tableOf(table map[string]any) *hujson.Object {
	o := &hujson.Object{}
	for _, k := range slices.Sorted(maps.Keys(table)) {
		name := hujson.Value{Value: hujson.String(k)}
		o.Members = append(o.Members, hujson.ObjectMember{Name: name, Value: valueOf(table[k])})
	}
	return o
}

func valueOf(v any) hujson.Value {
	switch v := v.(type) {
	case map[string]any:
		return hujson.Value{Value: tableOf(v)}
	case []any:
		a := &hujson.Array{}
		for _, e := range v {
			a.Elements = append(a.Elements, valueOf(e))
		}
		return hujson.Value{Value: a}
	case bool:
		return hujson.Value{Value: hujson.Bool(v)}
	case int64:
		return hujson.Value{Value: hujson.Int(v)}
	case float64:
		return hujson.Value{Value: hujson.Float(v)}
	case time.Time:
		return hujson.Value{Value: hujson.String(v.Format(time.RFC3339))}
	case string:
		return hujson.Value{Value: hujson.String(v)}
	}
	return hujson.Value{Value: hujson.String(fmt.Sprint(v))}
}

const maxMembers = 1 << 13 // tables and keys of one TOML file

// tooMuchTOML refuses a file whose brackets, or parts of one dotted key, are more than maxDepth, or
// whose tables, keys and their parts are more than maxMembers. The parser recurses, and takes time in
// proportion to the square of the number of keys.
func tooMuchTOML(data []byte) Refusal {
	depth, dots, members := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '[', '{':
			depth++
			members++
			dots = 0
		case ']', '}':
			depth--
			dots = 0
		case '=':
			members++
			dots = 0
		case ',', '\n':
			dots = 0
		case '.':
			members++
			dots++
		case '#':
			for i+1 < len(data) && data[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			i = endOfString(data, i)
		}
		if depth > maxDepth || dots > maxDepth {
			where := at(data, min(i, len(data)-1))
			return Refusal{fmt.Sprintf("it nests more than %d levels deep%s", maxDepth, where), "correct it there"}
		}
		if members > maxMembers {
			return Refusal{fmt.Sprintf("it has more than %d tables, keys and parts of keys", maxMembers), "take out what isn't needed"}
		}
	}
	return Refusal{}
}

// endOfString returns the index of the last byte of the string that begins at i.
func endOfString(data []byte, i int) int {
	quote := string(data[i])
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(string(data[i:min(i+3, len(data))]), triple) {
		quote = triple
	}
	for i += len(quote); i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote[0] == '"':
			i++
		case data[i] == '\n' && len(quote) == 1:
			return i - 1 // it isn't closed: the parser says so
		case strings.HasPrefix(string(data[i:min(i+len(quote), len(data))]), quote):
			return i + len(quote) - 1
		}
	}
	return len(data) - 1
}
