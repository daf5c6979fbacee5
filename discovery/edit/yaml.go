package edit

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// yaml returns the splices that make a change in YAML. What stands in a block stays one; in a flow
// mapping a member is put in front.
func (d *document) yaml(c Change) ([]splice, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(d.text), &doc); err != nil {
		return nil, err // Apply has parsed it before
	}
	if c.Add {
		return nil, unable("an element can't be added to a sequence of YAML")
	}
	if len(doc.Content) == 0 {
		return d.lastInYAML(config.Member{Name: c.Path[0], Value: nested(c.Path[1:], c.Value)}), nil
	}
	at := doc.Content[0]
	var key *yaml.Node
	for i, name := range c.Path {
		m := config.Member{Name: name, Value: nested(c.Path[i+1:], c.Value)}
		if at.Kind != yaml.MappingNode {
			if at.Kind == yaml.ScalarNode && key == nil {
				return d.lastInYAML(m), nil // an empty document
			}
			return d.replaceYAML(key, at, nested(c.Path[i:], c.Value))
		}
		k := -1
		for j := 0; j+1 < len(at.Content); j += 2 {
			if at.Content[j].Value == name {
				k = j
			}
		}
		switch {
		case k < 0 && at.Style&yaml.FlowStyle != 0:
			return d.intoFlow(at, m), nil
		case k < 0 && key == nil:
			return d.lastInYAML(m), nil
		case k < 0:
			line := d.lineEnd(d.yamlAt(key))
			indent := strings.Repeat(" ", at.Content[0].Column-1)
			return []splice{{line, line, d.onNewLine(line) + d.renderYAML(m, indent)}}, nil
		case i+1 == len(c.Path) && c.Value.Is("nothing"):
			return d.removeYAML(key, at, k)
		}
		key, at = at.Content[k], at.Content[k+1]
	}
	return d.replaceYAML(key, at, c.Value)
}

// yamlAt returns where a node begins.
func (d *document) yamlAt(n *yaml.Node) int {
	at := 0
	for range n.Line - 1 {
		at = d.lineEnd(at)
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(d.text[at:])
		at += size
	}
	return at
}

// lastInYAML puts a member behind everything else.
func (d *document) lastInYAML(m config.Member) []splice {
	end := len(d.text)
	return []splice{{end, end, d.onNewLine(end) + d.renderYAML(m, "")}}
}

func (d *document) intoFlow(at *yaml.Node, m config.Member) []splice {
	open := d.yamlAt(at)
	open += strings.IndexByte(d.text[open:], '{') + 1 // behind an anchor
	text := inYAML.member(m)
	if len(at.Content) > 0 {
		text += ", "
	}
	return []splice{{open, open, text}}
}

// replaceYAML puts another value in the place of a scalar.
func (d *document) replaceYAML(key, at *yaml.Node, v config.Value) ([]splice, error) {
	start := d.yamlAt(at)
	switch {
	case at.Kind != yaml.ScalarNode || at.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return nil, unable("only a single word or line of YAML can be replaced")
	case at.Value == "" && at.Style == 0: // nothing stands there
		line := d.lineEnd(d.yamlAt(key))
		if o, ok := v.Object(); ok && len(o) > 0 {
			text, indent := "", strings.Repeat(" ", key.Column+1)
			for _, m := range o {
				text += d.renderYAML(m, indent)
			}
			return []splice{{line, line, d.onNewLine(line) + text}}, nil
		}
		return nil, unable("it has no value that could be replaced")
	}
	end := start + len(at.Value)
	if at.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		end = start + 1
		for end < len(d.text) && d.text[end] != d.text[start] {
			if d.text[end] == '\\' && d.text[start] == '"' {
				end++
			}
			end++
		}
		end = min(end+1, len(d.text))
	}
	return []splice{{start, min(end, len(d.text)), inYAML.line(v)}}, nil
}

// removeYAML takes a member out of a mapping: its lines, as far as lines are indented more than it,
// without the comments and blank lines behind it.
func (d *document) removeYAML(around, at *yaml.Node, k int) ([]splice, error) {
	key := at.Content[k]
	start := d.yamlAt(key)
	if at.Style&yaml.FlowStyle != 0 {
		if k+2 < len(at.Content) {
			return []splice{{start, d.yamlAt(at.Content[k+2]), ""}}, nil
		}
		end := start + closing(d.text[start:])
		if k > 0 {
			start = len(strings.TrimRight(d.text[:start], ", \n"))
		}
		return []splice{{start, end, ""}}, nil
	}
	line := d.lineStart(start)
	if strings.TrimSpace(d.text[line:start]) != "" {
		return nil, unable("it stands in a line with something else")
	}
	end, next := d.lineEnd(start), d.lineEnd(start)
	for next < len(d.text) {
		after := d.lineEnd(next)
		text := strings.TrimRight(d.text[next:after], "\r\n")
		inner := strings.TrimLeft(text, " ")
		if inner != "" && len(text)-len(inner) < key.Column && !strings.HasPrefix(inner, "- ") {
			break
		}
		if inner != "" && len(text)-len(inner) < key.Column-1 {
			break
		}
		next = after
		if inner != "" && !strings.HasPrefix(inner, "#") || len(text)-len(inner) >= key.Column {
			end = after
		}
	}
	made := []splice{{line, end, ""}}
	if len(at.Content) == 2 && around != nil {
		colon := d.yamlAt(around) + len(around.Value) + 1
		made = append(made, splice{colon, colon, " {}"})
	}
	return made, nil
}

// closing returns where the brace is that closes what a text begins within. A brace in a string may
// mislead it, which Apply notices.
func closing(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return len(text)
}
