package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// What one YAML file may hold, each counted as often as an alias stands for it.
const (
	maxNodes = 1 << 16
	maxBytes = 4 << 20 // of keys and scalars
)

// parseYAML returns what the first document of a YAML file holds. A refusal quotes nothing of the
// file.
func parseYAML(data []byte) (Object, Refusal) {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return nil, Refusal{}
	case err != nil:
		where := strings.Replace(yamlLine.FindString(err.Error()), "line", " at line", 1)
		return nil, Refusal{"it is not valid YAML" + where, "correct it there"}
	}
	c := yamlTree{left: maxNodes, bytes: maxBytes}
	v, bad := c.value(&doc, 0)
	if bad.Refused() {
		return nil, bad
	}
	o, ok := Value{&v}.Object()
	if !ok && !(Value{&v}).Absent() {
		return nil, Refusal{"it holds " + Value{&v}.Kind() + ", not a mapping",
			"write `mcpServers:` or what the host has"}
	}
	return o, Refusal{}
}

var yamlLine = regexp.MustCompile(`line \d+`)

// yamlTree makes JSON of nodes, aliases followed, within a bound.
type yamlTree struct{ left, bytes int }

func (c *yamlTree) value(n *yaml.Node, depth int) (v hujson.Value, bad Refusal) {
	if c.left--; c.left < 0 {
		return v, Refusal{fmt.Sprintf("it has more than %d values, aliases followed", maxNodes),
			"take out what isn't needed"}
	}
	if c.bytes -= len(n.Value); c.bytes < 0 {
		return v, Refusal{fmt.Sprintf("its values have more than %d bytes, aliases followed", maxBytes),
			"take out what isn't needed"}
	}
	if depth > maxDepth {
		return v, Refusal{fmt.Sprintf("it nests more than %d levels deep at line %d", maxDepth, n.Line),
			"correct it there"}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return c.value(n.Content[0], depth)
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		a := &hujson.Array{}
		for _, e := range n.Content {
			item, bad := c.value(e, depth+1)
			if bad.Refused() {
				return v, bad
			}
			a.Elements = append(a.Elements, item)
		}
		return hujson.Value{Value: a}, Refusal{}
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return hujson.Value{Value: scalar(n)}, Refusal{}
}

// mapping returns an object. What is merged into it comes first, so that its own members count.
func (c *yamlTree) mapping(n *yaml.Node, depth int) (v hujson.Value, bad Refusal) {
	var merged, own []hujson.ObjectMember
	names := map[string]bool{} // of own
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		c.bytes -= len(key.Value) // the next value is asked about it
		item, bad := c.value(n.Content[i+1], depth+1)
		if bad.Refused() {
			return v, bad
		}
		if key.ShortTag() == "!!merge" {
			for _, o := range objects(item) {
				merged = append(merged, o.Members...)
			}
			continue
		}
		names[key.Value] = true
		name := hujson.Value{Value: hujson.String(key.Value)}
		own = append(own, hujson.ObjectMember{Name: name, Value: item})
	}
	kept := merged[:0]
	for _, m := range merged {
		if !names[nameOf(m)] {
			kept = append(kept, m)
		}
	}
	return hujson.Value{Value: &hujson.Object{Members: append(kept, own...)}}, Refusal{}
}

// objects returns what a merge key stands for: an object, or some.
func objects(v hujson.Value) (list []*hujson.Object) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		return []*hujson.Object{v}
	case *hujson.Array:
		for _, e := range v.Elements {
			if o, ok := e.Value.(*hujson.Object); ok {
				list = append([]*hujson.Object{o}, list...) // the first one counts
			}
		}
	}
	return list
}

func scalar(n *yaml.Node) hujson.Literal {
	switch n.ShortTag() {
	case "!!null":
		return hujson.Literal("null")
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return hujson.Bool(b)
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return hujson.Literal(n.Value)
		}
	}
	return hujson.String(n.Value)
}
