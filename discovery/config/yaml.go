package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

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
	v := c.value(&doc, 0)
	if c.bad.Refused() {
		return nil, c.bad
	}
	o, ok := v.Object()
	if !ok && !v.Absent() {
		return nil, Refusal{"it holds " + v.Kind() + ", not a mapping",
			"write `mcpServers:` or what the host has"}
	}
	return o, Refusal{}
}

var yamlLine = regexp.MustCompile(`line \d+`)

// yamlTree makes values of nodes, aliases followed, within a bound.
type yamlTree struct {
	left, bytes int
	bad         Refusal // set when a bound is reached: then nothing more is read
}

func (c *yamlTree) value(n *yaml.Node, depth int) Value {
	c.left--
	c.bytes -= len(n.Value)
	const fewer = "take out what isn't needed"
	switch {
	case c.bad.Refused():
		return Value{}
	case c.left < 0:
		c.bad = Refusal{fmt.Sprintf("it has more than %d values, aliases followed", maxNodes), fewer}
		return Value{}
	case c.bytes < 0:
		c.bad = Refusal{fmt.Sprintf("its values have more than %d bytes, aliases followed", maxBytes), fewer}
		return Value{}
	case depth > maxDepth:
		c.bad = Refusal{fmt.Sprintf("it nests more than %d levels deep at line %d", maxDepth, n.Line),
			"correct it there"}
		return Value{}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return c.value(n.Content[0], depth)
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		a := []Value{}
		for _, e := range n.Content {
			a = append(a, c.value(e, depth+1))
		}
		return Value{a}
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return scalar(n)
}

// mapping returns an object. What is merged into it comes first, so that its own members count.
func (c *yamlTree) mapping(n *yaml.Node, depth int) Value {
	var merged, own Object
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		c.bytes -= len(key.Value)
		v := c.value(n.Content[i+1], depth+1)
		if key.ShortTag() == "!!merge" {
			merged = append(merged, mergedBy(v)...)
		} else {
			own = append(own, Member{key.Value, v})
		}
	}
	merged = slices.DeleteFunc(merged, func(m Member) bool { return own.Get(m.Name).v != nil })
	return Value{append(merged, own...)}
}

// mergedBy returns the members that a merge key stands for: those of an object, or of some, of
// which the first one counts.
func mergedBy(v Value) (members Object) {
	members, _ = v.Object()
	list, _ := v.Array()
	for _, e := range slices.Backward(list) {
		o, _ := e.Object()
		members = append(members, o...)
	}
	return slices.Clone(members)
}

func scalar(n *yaml.Node) Value {
	switch n.ShortTag() {
	case "!!null":
		return Value{null{}}
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return Value{b}
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return Value{number(n.Value)}
		}
	}
	return Value{n.Value}
}
