// Package stubs writes Python declarations of a server's tools from their JSON Schemas. People and
// models read them to know how a tool is called, mypy and pyright check code against them, and the
// guest shows the signature and documentation of each as the tool's own (guest/signatures.py).
//
// The guest parses a declaration and never executes it. Metadata is foreign: whatever it holds, the
// text compiles under Python 3.10 and newer, declares every tool, and stays within maxModule or a
// little more. The same metadata always gives the same text.
package stubs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

const (
	maxModule     = 1 << 20 // bytes after which tools are declared without their types and documentation
	maxParameters = 500     // of one tool; further ones go by **kwargs
	maxTypes      = 2000    // types made of one schema; what is beyond is Any
	// keys and items looked at in one schema, and textStep bytes of its text; what is beyond is Any
	maxSteps    = 100_000
	textStep    = 8
	maxAllSteps = 2 << 20 // of one module, after which tools are declared as after maxModule
	maxDepth    = 12      // of schemas in each other; what is beyond is Any
	maxUnion    = 100     // alternatives of one type; more are Any
	maxLiterals = 100     // of one enum; a longer one is the type of its values
)

// Module returns the stub of a server as one Python module, its tools in the order of their
// aliases.
func Module(p entrypoint.Provider) string {
	p.Tools = maps.Clone(p.Tools)
	Declare(&p)
	return p.Stub + inOrder(p.Tools)
}

// inOrder returns the declarations of tools in the order of their aliases.
func inOrder(tools map[string]entrypoint.Tool) string {
	var all strings.Builder
	for _, alias := range slices.Sorted(maps.Keys(tools)) {
		all.WriteString(tools[alias].Stub)
	}
	return all.String()
}

// Declare sets what a guest is told of how the tools of p are called: the declaration of each, and
// what comes before them all in a module.
func Declare(p *entrypoint.Provider) {
	m := newModule()
	for _, name := range reservedClasses {
		m.taken[name] = true
	}
	length := 0
	for _, alias := range slices.Sorted(maps.Keys(p.Tools)) {
		t := p.Tools[alias]
		m.declare(alias, &t, length > maxModule || m.steps > maxAllSteps)
		length += len(t.Stub)
		p.Tools[alias] = t
	}
	p.Stub = header(*p) + imports(inOrder(p.Tools))
}

// Declarations returns what Module says of the tools alone: no header and no imports.
func Declarations(p entrypoint.Provider) string {
	p.Tools = maps.Clone(p.Tools)
	Declare(&p)
	body := strings.ReplaceAll(inOrder(p.Tools), unimplemented, "    ...\n")
	return strings.TrimLeft(body, "\n")
}

// Signature returns how one tool is called, on one line: name(parameter: type = default, ...) ->
// type.
func Signature(alias string, t entrypoint.Tool) string {
	m := newModule()
	f := m.read(alias, t)
	return fmt.Sprintf("%s(%s) -> %s", alias, strings.Join(f.declared(), ", "), f.result.text())
}

// module is what the declarations of one module share.
type module struct {
	taken   map[string]bool // names of classes
	numbers map[string]int  // the next one to set a name apart
	steps   int             // spent on all schemas
}

func newModule() *module {
	return &module{taken: map[string]bool{}, numbers: map[string]int{}}
}

// function is one tool, read.
type function struct {
	parameters []parameter
	rest       string // the name of **kwargs, when it takes others too
	result     pyType
	wrapped    bool // the server's library sends the result as {"result": result}
	classes    []class
}

// declared returns the parameters as they stand between the parentheses.
func (f function) declared() []string {
	var out []string
	for _, p := range f.parameters {
		out = append(out, p.declared())
	}
	if f.rest != "" {
		out = append(out, "**"+f.rest+": Any")
	}
	return out
}

func (m *module) read(alias string, t entrypoint.Tool) function {
	input := parse(t.InputSchema)
	b := newBuilder(m, input, className(alias))
	f := function{}
	f.parameters, f.rest = b.parameters(input)
	f.classes = b.classes
	m.steps += maxSteps - b.document.left
	output, ok := parse(t.OutputSchema).(*object)
	if !ok {
		f.result = anything
		return f
	}
	b = newBuilder(m, output, className(alias))
	inner := unwrapped(output)
	f.wrapped = inner != any(output)
	f.result = b.typeOf(inner, "Result", 0)
	f.classes = append(f.classes, b.classes...)
	m.steps += maxSteps - b.document.left
	return f
}

// unimplemented is the body of each function.
const unimplemented = "    raise NotImplementedError\n"

// declare sets the declaration of one tool, with its classes before it.
func (m *module) declare(alias string, t *entrypoint.Tool, bare bool) {
	if bare {
		t.Stub = fmt.Sprintf("\n\ndef %s(**kwargs: Any) -> Any:  # not declared in full: "+
			"this module is long enough\n%s", alias, unimplemented)
		return
	}
	f := m.read(alias, *t)
	var text strings.Builder
	for _, c := range f.classes {
		text.WriteString(c.text())
	}
	declared := f.declared()
	line := fmt.Sprintf("def %s(%s) -> %s:", alias, strings.Join(declared, ", "), f.result.text())
	if len(line) > lineWidth && len(declared) > 0 {
		line = fmt.Sprintf("def %s(\n    %s,\n) -> %s:", alias, strings.Join(declared, ",\n    "), f.result.text())
	}
	fmt.Fprintf(&text, "\n\n%s\n", line)
	if doc := documentation(alias, *t, f.parameters); doc != "" {
		fmt.Fprintf(&text, "    %s\n", docstring(doc, "    "))
	}
	t.Stub, t.Wrapped, t.Keys = text.String()+unimplemented, f.wrapped, nil
	for _, p := range f.parameters {
		if p.name != p.property {
			if t.Keys == nil {
				t.Keys = map[string]string{}
			}
			t.Keys[p.name] = p.property
		}
	}
}

// imports returns the imports of what the declarations use.
func imports(declared string) string {
	var used []string
	for _, name := range []string{"Any", "Literal", "TypedDict"} {
		if strings.Contains(declared, name) {
			used = append(used, name)
		}
	}
	text := "from __future__ import annotations\n"
	if len(used) > 0 {
		text += "\nfrom typing import " + strings.Join(used, ", ") + "\n"
	}
	return text
}

func header(p entrypoint.Provider) string {
	var text strings.Builder
	fmt.Fprintf(&text, "The tools of the MCP server %s as code calls them: mcp_%s.<tool>(name=value).\n",
		quote(oneLine(p.Name, maxLine)), p.Alias)
	if d := strings.TrimSpace(p.Description); d != "" {
		fmt.Fprintf(&text, "\n%s\n", d)
	}
	text.WriteString("\nThese are declarations, made from the server's own list; nothing here calls a tool. " +
		"Where an event loop runs, await the call.\nAn optional parameter that is None isn't sent. " +
		"A tool that fails raises ToolError. Where no type of a result is declared (Any),\n" +
		"a text that is one JSON object or array is that dict or list; any other text is a str.")
	return docstring(text.String(), "") + "\n\n"
}
